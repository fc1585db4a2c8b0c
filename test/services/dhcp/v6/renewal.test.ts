/** How an IPv6 lease is kept, and how it ends, in simulated time (RFC 8415 sections 18.2.4, 18.2.5 and 18.2.10). */
import { expect, test } from "bun:test";
import { ADVERTISE, REPLY } from "../../../../src/services/dhcp/v6/message/message.ts";
import {
  address,
  addressIn,
  another,
  exchanges,
  has,
  kinds,
  other,
  pauses,
  rapid,
  type Said,
  type Sent,
  server,
  Simulation6,
  times,
} from "../../../support/dhcp6-simulation.ts";

test("T1: RENEW to the server; T2: REBIND to any; the end: the address goes at once, and is asked for", () => {
  const it = new Simulation6();
  it.bind();
  const sent = it.pass(999);
  const renewing = sent.filter(({ kind }) => kind === "RENEW"),
    rebinding = sent.filter(({ kind }) => kind === "REBIND");
  expect(sent.length).toBe(renewing.length + rebinding.length);
  // T1 is spread by up to a twentieth.
  expect(times(renewing)).toEqual([292.5, 302.5, 322.5, 362.5, 442.5]);
  expect(times(rebinding)).toEqual([480, 490, 510, 550, 630, 790]);
  for (const one of sent) expect([addressIn(one), has(one, 14)]).toEqual([address, undefined]);
  for (const one of renewing) expect(has(one, 2)).toEqual(server);
  for (const one of rebinding) expect(has(one, 2)).toBeUndefined();
  expect([exchanges(renewing), exchanges(rebinding), exchanges(it.sent)]).toEqual([1, 1, 4]);
  expect(has(rebinding[0]!, 8)).toEqual(Uint8Array.of(0, 0));
  expect([it.did, it.client.due]).toEqual([["use"], 2000]);
  it.pass(1);
  expect(it.did).toEqual(["use", "stopUsing"]);
  expect(it.actions.at(-1)).toMatchObject({ reason: "the lease has expired" });
  expect(it.client.lease).toBeUndefined();
  // In the background for ever, and never faster.
  const later = it.pass(100_000);
  expect([later[0]!.kind, later[0]!.at, addressIn(later[0]!)]).toEqual(["SOLICIT", 2000.5, address]);
  expect(later.length).toBeGreaterThan(30);
  expect(Math.min(...pauses(later))).toBeGreaterThan(1);
  it.answer(REPLY, rapid);
  expect(it.client.state).toBe("bound");
});

test("T1 is never later than the server says, and not all of a twentieth earlier", () => {
  const dueWith = (random: number) => {
    const it = new Simulation6({ random: () => random });
    it.bind({ renew: 100, rebind: 200 });
    return it.client.due - 1000;
  };
  expect([dueWith(0), dueWith(1)]).toEqual([100, 95]);
});

test("an answered renewal counts from its sending; another server's is believed when rebinding only", () => {
  const it = new Simulation6();
  it.bind();
  it.pass(300);
  const asked = it.sent.at(-1)!;
  it.now += 1;
  it.answer(REPLY, { server: other });
  expect([it.client.state, it.did.at(-1)]).toEqual(["renewing", "server 00030001020000000002 was not asked"]);
  it.answer(REPLY);
  expect([it.client.state, it.client.lease!.since]).toEqual(["bound", asked.at]);
  it.pass(600);
  expect(it.client.state).toBe("rebinding");
  it.answer(REPLY, { server: other });
  expect([it.client.state, it.client.lease!.offered.server]).toEqual(["bound", other]);
  const used = it.actions.filter((action) => action.do === "use");
  expect(used.map(({ before }) => before?.since)).toEqual([undefined, 1000, asked.at]);
});

test("NoBinding to a renewal: REQUEST to that server, with the lease in use all the while", () => {
  const it = new Simulation6();
  it.bind();
  it.pass(480);
  expect(it.client.state).toBe("rebinding");
  expect(it.answer(REPLY, { server: other, iaStatus: 3, addresses: [] })).toEqual([]);
  expect([it.client.state, it.did.slice(1)]).toEqual([
    "requesting",
    ["server 00030001020000000002 answers NoBinding: so\\x0a"],
  ]);
  const [request] = it.pass(1) as [Sent];
  expect([request.kind, has(request, 2), addressIn(request)]).toEqual(["REQUEST", other, address]);
  it.answer(REPLY, { server: other });
  expect([it.client.state, it.did.at(-1), it.client.lease!.offered.server]).toEqual(["bound", "use", other]);
});

test("a server that has forgotten the lease and refuses it: SOLICIT, with the lease in use to its end", () => {
  const it = new Simulation6();
  it.bind();
  it.pass(300);
  it.answer(REPLY, { status: 3 });
  it.pass(1);
  it.answer(REPLY, { status: 2 });
  expect([it.client.state, it.client.lease === undefined]).toEqual(["soliciting", false]);
  const kindsBefore = new Set(kinds(it.pass(2000 - it.now - 0.01)));
  expect(kindsBefore).toEqual(new Set(["SOLICIT"]));
  expect(it.did).not.toContain("stopUsing");
  const before = it.client.due;
  it.pass(0.01);
  expect([before, it.did.at(-1), it.client.lease, it.client.state]).toEqual([
    2000,
    "stopUsing",
    undefined,
    "soliciting",
  ]);
  // The pauses go on where they were.
  expect(Math.min(...pauses(it.pass(5000)))).toBeGreaterThan(500);
});

test("other answers to a renewal change nothing", () => {
  const it = new Simulation6();
  it.bind();
  it.pass(300);
  for (const say of [{ status: 1 }, { status: 4 }, { status: 5 }, { addresses: [] }, { addresses: null }] as Said[]) {
    expect(it.answer(REPLY, say)).toEqual([]);
    expect(it.client.state).toBe("renewing");
  }
  expect(it.did).not.toContain("stopUsing");
  expect(kinds(it.pass(100))).toContain("RENEW");
});

test("an address for 0 seconds goes at once; one given instead is used instead", () => {
  const gone = { address, preferred: 0, valid: 0 };
  const it = new Simulation6();
  it.bind();
  it.pass(300);
  it.answer(REPLY, { addresses: [gone, { address: another }] });
  expect(it.actions.at(-1)).toMatchObject({
    do: "use",
    lease: { offered: { binding: { address: another } } },
    before: { offered: { binding: { address } } },
  });
  const bare = new Simulation6();
  bare.bind();
  bare.pass(300);
  bare.answer(REPLY, { addresses: [{ ...gone, address: another }] });
  expect(bare.client.state).toBe("renewing");
  bare.answer(REPLY, { addresses: [gone] });
  expect([bare.client.state, bare.client.lease, bare.did.at(-1)]).toEqual(["soliciting", undefined, "stopUsing"]);
  expect(kinds(bare.pass(2))).toEqual(["SOLICIT"]);
});

test("a lease for ever is never renewed", () => {
  const it = new Simulation6();
  it.bind({ addresses: [{ preferred: Infinity, valid: Infinity }] });
  expect([it.client.due, it.pass(1e9)]).toEqual([Infinity, []]);
});

test.each<[string, Said]>([
  ["a second", { addresses: [{ preferred: 1, valid: 1 }] }],
  ["a second, not preferred", { addresses: [{ preferred: 0, valid: 1 }] }],
  ["ever, with T1 of a second", { renew: 1, rebind: 1, addresses: [{ preferred: Infinity, valid: Infinity }] }],
])("leases for %s make no storm: a second between two packets, whatever a server says", (_what, say) => {
  const it = new Simulation6();
  it.bind(say);
  const answers: Said[] = [say, { ...say, status: 3 }, { ...say, ...rapid }, { status: 2 }, { ...say, status: 4 }];
  const from = it.sent.length - 1;
  for (let count = 0; count < 3000; count++) {
    if (it.sent.at(-1)!.at > it.now - 0.1) {
      for (const type of [ADVERTISE, REPLY]) it.answer(type, answers[(count * 7 + type) % answers.length]!);
    }
    it.pass(0.1);
  }
  const after = it.sent.slice(from);
  expect(after.length).toBeGreaterThan(20);
  expect(Math.min(...pauses(after))).toBeGreaterThan(0.9999);
});
