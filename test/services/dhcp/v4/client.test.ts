/** The life of a lease in simulated time. Every packet is looked at (RFC 2131 section 4.4). */
import { expect, test } from "bun:test";
import { endOf } from "../../../../src/services/dhcp/v4/lease/client.ts";
import { ACK, NAK, OFFER, option } from "../../../../src/services/dhcp/v4/message/message.ts";
import { clientId, ip, seconds, type Sent, Simulation } from "../../../support/dhcp-simulation.ts";

const kinds = (sent: readonly Sent[]) => sent.map(({ kind, how }) => `${kind} ${how}`);
const has = ({ message }: Sent, number: number) => message.options.get(number);

test("four messages make a lease", () => {
  const it = new Simulation();
  it.take(it.client.start(it.now));
  it.now += 1;
  it.answer(OFFER);
  it.answer(ACK);
  expect(kinds(it.sent)).toEqual(["DISCOVER broadcast", "REQUEST broadcast"]);
  const [discover, request] = it.sent as [Sent, Sent];
  expect(request.message.xid).toBe(discover.message.xid);
  expect([discover.message.secs, request.message.secs]).toEqual([0, 1]);
  expect([has(discover, 50), has(discover, 54), has(discover, 61)]).toEqual([undefined, undefined, clientId]);
  expect([has(request, 50), has(request, 54), has(request, 61)]).toEqual([
    ip("192.168.77.50"),
    ip("192.168.77.1"),
    clientId,
  ]);
  expect(request.message.clientAddress).toEqual(ip("0.0.0.0"));
  expect(it.did).toEqual(["use"]);
  // The lease counts from the sending of the request.
  expect(endOf(it.client.lease!)).toBe(1001 + 1000);
});

test("without an answer it asks again, later each time, with secs that grow; sooner while somebody waits", () => {
  const hurried = new Simulation(), patient = new Simulation({}, false);
  hurried.take(hurried.client.start(hurried.now));
  patient.take(patient.client.start(patient.now));
  expect(hurried.pass(31).map(({ at }) => at - 1000)).toEqual([0.25, 1.25, 3.25, 7.25, 15.25]);
  expect(patient.pass(200).map(({ at }) => at - 1000)).toEqual([4, 12, 28, 60, 124, 188]);
  expect(patient.sent.map(({ message }) => message.secs)).toEqual([0, 4, 12, 28, 60, 124, 188]);
});

test("a request without an answer is repeated four times, then everything begins again", () => {
  const it = new Simulation();
  it.take(it.client.start(it.now));
  it.answer(OFFER);
  expect(kinds(it.pass(7.3))).toEqual([
    "REQUEST broadcast",
    "REQUEST broadcast",
    "REQUEST broadcast",
    "DISCOVER broadcast",
  ]);
  expect(it.sent.at(-1)!.message.xid).not.toBe(it.sent[0]!.message.xid);
  expect(it.client.obstacle).toBe("server 192.168.77.1 offered 192.168.77.50, but has not answered REQUEST");
});

test.each([
  ["of another exchange", [], { xid: 99 }],
  ["for another MAC", [], { mac: Uint8Array.of(2, 0, 0, 0, 0, 8) }],
  ["for another client id", [[61, Uint8Array.of(1)]], {}],
  ["for another address", [], { yourAddress: ip("192.168.77.51") }],
  ["of another server", [[54, ip("192.168.77.2")]], {}],
  ["without a mask", [[1, Uint8Array.of(1)]], {}],
  ["for no time", [[51, seconds(0)]], {}],
])("an acknowledgement %s is not believed", (_what, options, change) => {
  const it = new Simulation();
  it.take(it.client.start(it.now));
  it.answer(OFFER);
  it.answer(ACK, options as [number, Uint8Array][], change);
  expect([it.client.state, it.client.lease]).toEqual(["requesting", undefined]);
  it.answer(ACK);
  expect(it.client.state).toBe("bound");
});

test("T1: unicast from the leased address, without 50 and 54; T2: broadcast; the end: the address goes at once", () => {
  const it = new Simulation();
  it.bind();
  const sent = it.pass(999);
  const renewing = sent.filter(({ at }) => at < 1000 + 875), rebinding = sent.filter(({ at }) => at >= 1000 + 875);
  expect(new Set(kinds(renewing))).toEqual(new Set(["REQUEST unicast"]));
  expect(new Set(kinds(rebinding))).toEqual(new Set(["REQUEST broadcast"]));
  // T1 is spread by up to a twentieth; then half of what is left, but a minute at least.
  expect(renewing.map(({ at }) => Math.round(at - 1000))).toEqual([488, 681, 778, 838]);
  expect(rebinding.map(({ at }) => Math.round(at - 1000))).toEqual([875, 938, 998]);
  for (const one of sent) {
    expect([has(one, 50), has(one, 54), has(one, 61)]).toEqual([undefined, undefined, clientId]);
    expect(one.message.clientAddress).toEqual(ip("192.168.77.50"));
  }
  expect(new Set(sent.map(({ message }) => message.xid)).size).toBe(2);
  expect(it.did).toEqual(["use"]);
  it.pass(1);
  expect(it.did).toEqual(["use", "stopUsing"]);
  expect(kinds(it.sent.slice(-1))).toEqual(["DISCOVER broadcast"]);
  expect(has(it.sent.at(-1)!, 50)).toEqual(ip("192.168.77.50"));
  // For ever, and never faster.
  const later = it.pass(10_000);
  expect(later.length).toBeGreaterThan(100);
  expect(Math.min(...later.slice(1).map(({ at }, index) => at - later[index]!.at))).toBeGreaterThan(3);
});

test("an answered renewal counts from its sending; another server's is believed when rebinding", () => {
  const it = new Simulation();
  it.bind();
  it.pass(500);
  const asked = it.sent.at(-1)!;
  it.now += 3;
  it.answer(ACK);
  expect([it.client.state, it.client.lease!.since]).toEqual(["bound", asked.at]);
  it.pass(880);
  expect(it.client.state).toBe("rebinding");
  it.answer(ACK, [[54, ip("192.168.77.9")]]);
  expect([it.client.state, it.client.lease!.offered.server]).toEqual(["bound", ip("192.168.77.9")]);
  expect(it.did).toEqual(["use", "use", "use"]);
});

test("a renewal for another address is not believed", () => {
  const it = new Simulation();
  it.bind();
  it.pass(500);
  it.answer(ACK, [], { yourAddress: ip("192.168.77.51") });
  expect(it.client.state).toBe("renewing");
});

test("a NAK ends the lease at once, and says what the server said", () => {
  const it = new Simulation();
  it.bind();
  it.pass(500);
  const sent = it.answer(NAK, [[option.text, new TextEncoder().encode("moved\n")]]);
  expect(kinds(sent)).toEqual(["DISCOVER broadcast"]);
  expect(it.did.slice(-2)).toEqual(["server 192.168.77.1 refused (NAK): moved\\x0a", "stopUsing"]);
  expect(it.client.obstacle).toContain("moved");
});

test("a server that offers and refuses in turn is asked slowly", () => {
  const it = new Simulation();
  it.take(it.client.start(it.now));
  for (let count = 0; count < 50; count++) {
    it.answer(OFFER);
    it.answer(NAK);
    it.pass(2);
  }
  expect(it.sent.length).toBeLessThan(110);
});

test("a NAK is not believed while nothing is asked, nor from a server that is not allowed", () => {
  const it = new Simulation({ allowsServer: (server) => server[3] === 1 });
  it.bind();
  it.answer(NAK);
  expect(it.client.state).toBe("bound");
  it.pass(500);
  it.answer(NAK, [[54, ip("192.168.77.66")]]);
  expect(it.client.state).toBe("renewing");
  expect(it.did.at(-1)).toBe("server 192.168.77.66 is not allowed");
});

test("a FORCERENEW is obeyed in no state, whoever sends it (CVE-2020-13529)", () => {
  const FORCERENEW = 9;
  for (const [passed, state] of [[0, "bound"], [500, "renewing"], [900, "rebinding"]] as const) {
    const it = new Simulation();
    it.bind();
    it.pass(passed);
    const before = { state: it.client.state, due: it.client.due, sent: it.sent.length };
    expect(before.state).toBe(state);
    for (const server of ["192.168.77.1", "192.168.77.66"]) it.answer(FORCERENEW, [[54, ip(server)]]);
    expect({ state: it.client.state, due: it.client.due, sent: it.sent.length }).toEqual(before);
  }
});

test("a NAK of another server is not believed while one server is asked, but when all are", () => {
  const other: [number, Uint8Array][] = [[54, ip("192.168.77.2")]], it = new Simulation();
  it.take(it.client.start(it.now));
  it.answer(OFFER);
  it.answer(NAK, other);
  expect(it.client.state).toBe("requesting");
  it.answer(ACK);
  it.pass(500);
  it.answer(NAK, other);
  it.answer(NAK, [[54, new Uint8Array()]]);
  expect(it.client.state).toBe("renewing");
  it.pass(400);
  expect(it.client.state).toBe("rebinding");
  it.answer(NAK, other);
  expect(it.client.state).toBe("selecting");
});

test("a probe that has no end, because its link has gone, is given up", () => {
  const it = new Simulation({ probe: true });
  it.take(it.client.start(it.now));
  it.answer(OFFER);
  it.answer(ACK);
  expect([it.client.state, it.did]).toEqual(["probing", ["probe"]]);
  expect(kinds(it.pass(10))).toEqual(["DISCOVER broadcast"]);
  expect(it.client.probed(false, it.now)).toEqual([]);
});

test("an address that somebody has is declined, and asked for again ten seconds later", () => {
  const it = new Simulation({ probe: true });
  it.take(it.client.start(it.now));
  it.answer(OFFER);
  it.answer(ACK);
  expect([it.client.state, it.did]).toEqual(["probing", ["probe"]]);
  const [declined] = it.take(it.client.probed(true, it.now)) as [Sent];
  expect([declined.kind, declined.how, has(declined, 50), has(declined, 54), has(declined, 55)]).toEqual([
    "DECLINE",
    "broadcast",
    ip("192.168.77.50"),
    ip("192.168.77.1"),
    undefined,
  ]);
  expect(it.client.lease).toBeUndefined();
  expect(it.pass(9)).toEqual([]);
  expect(kinds(it.pass(1))).toEqual(["DISCOVER broadcast"]);
  it.answer(OFFER);
  it.answer(ACK);
  it.take(it.client.probed(false, it.now));
  expect([it.client.state, it.did.at(-1)]).toEqual(["bound", "use"]);
});

test("an address from before: asked for without 54; silence begins anew, with the address as a wish", () => {
  const it = new Simulation();
  const [asked] = it.take(it.client.reboot(it.now, ip("192.168.77.50"))) as [Sent];
  expect([asked.kind, has(asked, 50), has(asked, 54), asked.message.clientAddress]).toEqual([
    "REQUEST",
    ip("192.168.77.50"),
    undefined,
    ip("0.0.0.0"),
  ]);
  it.answer(ACK);
  expect(it.client.state).toBe("bound");

  const silent = new Simulation();
  silent.take(silent.client.reboot(silent.now, ip("192.168.77.50")));
  const sent = silent.pass(10);
  expect(kinds(sent).slice(0, 2)).toEqual(["REQUEST broadcast", "DISCOVER broadcast"]);
  expect(has(sent[1]!, 50)).toEqual(ip("192.168.77.50"));

  const refused = new Simulation();
  refused.take(refused.client.reboot(refused.now, ip("192.168.77.50")));
  const [anew] = refused.answer(NAK) as [Sent];
  expect([anew.kind, has(anew, 50)]).toEqual(["DISCOVER", undefined]);
});

test("a lease from before goes on by its own times", () => {
  const before = new Simulation();
  before.bind();
  const lease = before.client.lease!;
  for (
    const [later, state, kind] of [
      [100, "bound", undefined],
      [600, "renewing", "REQUEST unicast"],
      [900, "rebinding", "REQUEST broadcast"],
      [1000, "selecting", "DISCOVER broadcast"],
    ] as const
  ) {
    const it = new Simulation();
    it.now = lease.since + later;
    it.client.resume(it.now, lease, 0);
    it.take(it.client.tick(it.now));
    expect<[string, string | undefined]>([it.client.state, kinds(it.sent)[0]]).toEqual([state, kind]);
  }
});

test("a lease for ever is never renewed; one of a second makes no storm", () => {
  const forever = new Simulation();
  forever.bind([[option.leaseTime, seconds(0xffffffff)]]);
  expect(forever.pass(1e9)).toEqual([]);

  const short = new Simulation();
  short.bind([[option.leaseTime, seconds(1)]]);
  for (let count = 0; count < 60; count++) {
    short.pass(1);
    const last = short.sent.at(-1)!;
    if (last.at < short.now - 1) continue;
    short.answer(last.kind === "DISCOVER" ? OFFER : ACK, [[option.leaseTime, seconds(1)]]);
    if (short.client.state === "requesting") short.answer(ACK, [[option.leaseTime, seconds(1)]]);
  }
  expect(short.sent.length).toBeLessThan(130);

  const unanswered = new Simulation();
  unanswered.bind([[option.leaseTime, seconds(3)]]);
  expect(kinds(unanswered.pass(2.9))).toEqual(["REQUEST unicast"]);
});
