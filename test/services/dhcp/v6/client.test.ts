/** How an IPv6 lease is got, in simulated time (RFC 8415 sections 18.2.1, 18.2.2 and 18.2.9). */
import { expect, test } from "bun:test";
import { endOf } from "../../../../src/services/dhcp/v6/lease/lease.ts";
import { ADVERTISE, option, RECONFIGURE, REPLY } from "../../../../src/services/dhcp/v6/message/message.ts";
import {
  address,
  addressIn,
  another,
  exchanges,
  has,
  ip6,
  kinds,
  other,
  pauses,
  rapid,
  type Said,
  type Sent,
  server,
  Simulation6,
  times,
  uint32,
} from "../../../support/dhcp6-simulation.ts";

test("four messages make a lease", () => {
  const it = new Simulation6();
  it.start();
  it.now += 0.5;
  it.answer(ADVERTISE);
  it.answer(REPLY);
  expect(kinds(it.sent)).toEqual(["SOLICIT", "REQUEST"]);
  const [solicit, request] = it.sent as [Sent, Sent];
  expect([exchanges([solicit, request]), addressIn(solicit), addressIn(request)]).toEqual([2, undefined, address]);
  expect([has(solicit, 2), has(request, 2)]).toEqual([undefined, server]);
  expect(it.did).toEqual(["use"]);
  // The lease counts from the sending of the request.
  expect(it.actions.at(-1)).toMatchObject({ do: "use", before: undefined, lease: { since: 1000.5 } });
  expect(endOf(it.client.lease!)).toBe(1000.5 + 1000);
});

test("two messages do, when the server knows how", () => {
  const it = new Simulation6();
  it.start();
  it.answer(REPLY);
  expect(it.client.state).toBe("soliciting");
  it.answer(REPLY, rapid);
  expect([it.client.state, kinds(it.sent)]).toEqual(["bound", ["SOLICIT"]]);
});

test("SOLICIT: later each time, up to 16 s while somebody waits, up to an hour while nobody does", () => {
  const hurried = new Simulation6(), patient = new Simulation6({}, false);
  expect(kinds(hurried.start())).toEqual(["SOLICIT"]);
  expect(patient.start()).toEqual([]);
  const sent = hurried.pass(80);
  expect(times(sent)).toEqual([1.05, 3.15, 7.35, 15.75, 31.75, 47.75, 63.75, 79.75]);
  expect(sent.map((one) => [...has(one, 8)!]).slice(0, 2)).toEqual([[0, 105], [1, 59]]);
  expect(exchanges(hurried.sent)).toBe(1);
  const later = patient.pass(20_000);
  // The first one is delayed by up to a second.
  expect(times(later).slice(0, 4)).toEqual([0.5, 1.55, 3.65, 7.85]);
  expect(pauses(later).slice(-2).map(Math.round)).toEqual([3600, 3600]);
  expect(patient.client.obstacle).toBe("no server has answered");
});

test("pauses are spread by a tenth; the first SOLICIT's is never shortened", () => {
  const least = new Simulation6({ random: () => 0 }), most = new Simulation6({ random: () => 0.999999 });
  for (const it of [least, most]) it.start();
  expect(times(least.pass(7))).toEqual([1.1, 3.19]);
  expect(times(most.pass(7))).toEqual([1, 3.1]);
  for (const it of [least, most]) it.answer(ADVERTISE);
  expect([least, most].map((it) => times(it.pass(3)).map((at) => Math.round((at - 7) * 100) / 100))).toEqual([
    [0.9, 2.61],
    [1.1],
  ]);
});

test("while nobody waits, ADVERTISEs are compared for the first second; 255 ends that", () => {
  const begun = () => {
    const it = new Simulation6({}, false);
    it.start();
    it.pass(0.5);
    return it;
  };
  const preference = (value: number) => ({ more: [[option.preference, Uint8Array.of(value)]] as const });
  const it = begun();
  it.answer(ADVERTISE);
  it.answer(ADVERTISE, { server: other, ...preference(3) });
  it.answer(ADVERTISE, preference(3));
  it.answer(ADVERTISE, preference(2));
  expect(times(it.pass(3)).slice(0, 1)).toEqual([1.55]);
  expect([it.sent[1]!.kind, has(it.sent[1]!, 2)]).toEqual(["REQUEST", other]);

  const best = begun();
  best.answer(ADVERTISE, { server: other });
  best.answer(ADVERTISE, preference(255));
  // But not two packets at once.
  expect(best.client.state).toBe("requesting");
  const [request] = best.pass(1.1) as [Sent];
  expect([request.kind, request.at, has(request, 2)]).toEqual(["REQUEST", 1001.5, server]);

  const late = begun();
  late.pass(1.1);
  late.now += 1;
  expect(kinds(late.answer(ADVERTISE))).toEqual(["REQUEST"]);
});

test.each<[string, Said]>([
  ["of another exchange", { xid: 99 }],
  ["without a client id", { clientId: null }],
  ["for another client", { clientId: Uint8Array.of(0, 4, 1) }],
  ["without a server", { server: null }],
  ["of another server", { server: other }],
  ["with a link-local address", { addresses: [{ address: ip6("fe80::1") }] }],
  ["with T1 after T2", { renew: 2, rebind: 1 }],
  ["that will succeed another time", { status: 1 }],
  ["that wants unicast", { status: 5 }],
])("a reply %s is not believed", (_what, say) => {
  const it = new Simulation6();
  it.start();
  it.answer(ADVERTISE);
  it.answer(REPLY, say);
  expect([it.client.state, it.client.lease]).toEqual(["requesting", undefined]);
  it.answer(REPLY);
  expect(it.client.state).toBe("bound");
});

test("what is not for a waiting client is no answer", () => {
  const it = new Simulation6();
  it.start();
  it.answer(RECONFIGURE);
  it.answer(1);
  expect([it.client.state, it.did]).toEqual(["soliciting", []]);
  it.answer(ADVERTISE);
  it.answer(ADVERTISE);
  expect(it.client.state).toBe("requesting");
  it.answer(REPLY);
  it.answer(REPLY);
  expect(it.did).toEqual(["use"]);
});

test("a server without addresses is named, and asking goes on as if it had been silent", () => {
  const it = new Simulation6();
  it.start();
  for (const say of [{ status: 2 }, { iaStatus: 2, addresses: [] }]) {
    expect(it.answer(ADVERTISE, say)).toEqual([]);
    expect(it.client.obstacle).toBe("server 00030001020000000001 answers NoAddrsAvail: so\\x0a");
  }
  it.answer(ADVERTISE, { addresses: [] });
  expect(it.client.obstacle).toBe("server 00030001020000000001 gives no address");
  it.answer(ADVERTISE, { addresses: [{ address: ip6("::1") }] });
  expect(it.client.obstacle).toBe("server 00030001020000000001: ::1 is no address of a host");
  expect(times(it.pass(2))).toEqual([1.05]);
  expect(kinds(it.answer(ADVERTISE, { server: other }))).toEqual(["REQUEST"]);
});

test("of several addresses in a renewal, the one in use stays", () => {
  const it = new Simulation6(), addresses = [{ address: another }, { address }];
  it.bind();
  it.pass(500);
  it.answer(REPLY, { addresses });
  expect([it.client.state, it.client.lease!.offered.binding.address]).toEqual(["bound", address]);
});

test("servers say how long the pauses may grow", () => {
  const it = new Simulation6({}, false);
  it.start();
  it.pass(10);
  it.answer(ADVERTISE, { status: 2, more: [[option.longestSolicitPause, uint32(60)]] });
  expect(Math.round(pauses(it.pass(1000)).at(-1)!)).toBe(60);
  it.answer(ADVERTISE, { status: 2, more: [[option.longestSolicitPause, uint32(59)]] });
  expect(Math.round(pauses(it.pass(1000)).at(-1)!)).toBe(60);
});

test("a REQUEST without an answer is repeated 10 times, or 4 while somebody waits; then everything begins again", () => {
  const it = new Simulation6();
  it.start();
  it.answer(ADVERTISE);
  const sent = it.pass(20);
  expect(kinds(sent).slice(0, 4)).toEqual(["REQUEST", "REQUEST", "REQUEST", "SOLICIT"]);
  expect(times(sent).slice(0, 3)).toEqual([1, 3, 7]);
  expect(it.client.obstacle).toBe("server 00030001020000000001 offered, then was silent");
  expect(exchanges(it.sent)).toBe(3);

  const patient = new Simulation6({}, false);
  patient.start();
  patient.pass(2);
  patient.answer(ADVERTISE);
  const later = [patient.sent.at(-1)!, ...patient.pass(300)].filter(({ kind }) => kind === "REQUEST");
  expect(pauses(later)).toEqual([1, 2, 4, 8, 16, 30, 30, 30, 30].map((pause) => expect.closeTo(pause, 5)));
});

test.each([2, 3, 4, 6])("status %i to a REQUEST: SOLICIT, after a pause that grows", (status) => {
  const it = new Simulation6();
  it.start();
  for (let count = 0; count < 50; count++) {
    it.answer(ADVERTISE);
    if (it.client.state === "requesting") it.answer(REPLY, { status });
    it.pass(1);
  }
  expect(it.client.obstacle).toContain(" answers ");
  expect(kinds(it.sent).slice(0, 4)).toEqual(["SOLICIT", "REQUEST", "SOLICIT", "REQUEST"]);
  expect(it.sent.length).toBeLessThan(16);
});

test("a server that has refused is asked anew, and later ones are compared for a second only", () => {
  const it = new Simulation6({}, false);
  it.start();
  it.pass(0.5);
  const kindsOfRounds: string[][] = [];
  for (let round = 0; round < 4; round++) {
    it.answer(ADVERTISE);
    const [request] = it.pass(1.1) as [Sent];
    expect([request.kind, request.at - it.sent.at(-2)!.at]).toEqual(["REQUEST", expect.closeTo(1.05, 5)]);
    it.answer(REPLY, { status: 2 });
    kindsOfRounds.push(kinds(it.pass(it.client.due - it.now)));
  }
  expect(kindsOfRounds).toEqual([["SOLICIT"], ["SOLICIT"], ["SOLICIT"], ["SOLICIT"]]);
});

test("an address from before is wished for, until a server has given one", () => {
  const it = new Simulation6();
  it.take(it.client.start(it.now, another));
  it.answer(REPLY, rapid);
  it.pass(300);
  it.answer(REPLY, { addresses: [{ address, preferred: 0, valid: 0 }] });
  expect([it.sent[0]!, ...it.pass(2)].map((one) => [one.kind, addressIn(one)])).toEqual([
    ["SOLICIT", another],
    ["SOLICIT", undefined],
  ]);
});

test("a REPLY without an address is a refusal", () => {
  const it = new Simulation6();
  it.start();
  it.answer(ADVERTISE);
  it.answer(REPLY, { addresses: [] });
  expect([it.client.state, it.client.obstacle]).toEqual([
    "soliciting",
    "server 00030001020000000001 gives no address",
  ]);
});
