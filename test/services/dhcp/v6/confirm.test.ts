/** Whether an address is ours to use: probes, DECLINE, CONFIRM, and leases from before (RFC 8415 sections 18.2.3 and 18.2.8). */
import { expect, test } from "bun:test";
import { endOf } from "../../../../src/services/dhcp/v6/lease/lease.ts";
import { ADVERTISE, REPLY } from "../../../../src/services/dhcp/v6/message/message.ts";
import {
  address,
  addressIn,
  another,
  has,
  kinds,
  leaseFor,
  other,
  rapid,
  said,
  type Sent,
  server,
  Simulation6,
  times,
} from "../../../support/dhcp6-simulation.ts";

test("an address is probed once: not when it is renewed, again when it is another", () => {
  const it = new Simulation6({ probe: true });
  it.start();
  it.answer(ADVERTISE);
  it.answer(REPLY);
  expect([it.client.state, it.did, it.client.due]).toEqual(["probing", ["probe"], 1010]);
  it.take(it.client.probed(false, it.now));
  it.pass(300);
  it.answer(REPLY);
  expect(it.did).toEqual(["probe", "use", "use"]);
  it.pass(endOf(it.client.lease!) - it.now - 5);
  it.answer(REPLY, { addresses: [{ address: another }] });
  expect([it.client.state, it.did.at(-1)]).toEqual(["probing", "probe"]);
  // The old lease may end meanwhile.
  it.pass(5);
  expect([it.client.state, it.did.at(-1), it.client.lease]).toEqual(["probing", "stopUsing", undefined]);
  it.take(it.client.probed(false, it.now));
  expect(it.actions.at(-1)).toMatchObject({ do: "use", before: undefined });
  expect(it.client.probed(true, it.now)).toEqual([]);
});

test("a probe that has no end, because its link has gone, is given up", () => {
  for (const isAwaited of [true, false]) {
    const it = new Simulation6({ probe: true }, isAwaited);
    it.start();
    it.pass(1);
    it.answer(REPLY, rapid);
    expect([it.client.state, it.client.due - it.now, it.pass(9.9)]).toEqual(["probing", 10, []]);
    expect(kinds(it.pass(1))).toEqual(["SOLICIT"]);
    expect(it.client.probed(false, it.now)).toEqual([]);
  }
});

test("an address that somebody has is declined until the server has heard, then another is asked for", () => {
  const it = new Simulation6({ probe: true });
  const conflict = () => {
    it.answer(ADVERTISE);
    it.answer(REPLY);
    return it.take(it.client.probed(true, it.now));
  };
  it.start();
  const [declined] = conflict() as [Sent];
  expect([declined.kind, addressIn(declined), has(declined, 2)]).toEqual(["DECLINE", address, server]);
  expect(it.client.lease).toBeUndefined();
  expect(it.client.obstacle).toBe("another host has fd00:77::50, which server 00030001020000000001 gave");
  expect(kinds(it.pass(1))).toEqual(["DECLINE"]);
  expect(it.answer(REPLY, { server: other })).toEqual([]);
  expect(it.client.state).toBe("declining");
  it.answer(REPLY, { addresses: null, status: 0 });
  const [solicit] = it.pass(3) as [Sent];
  expect([solicit.kind, addressIn(solicit)]).toEqual(["SOLICIT", undefined]);
  conflict();
  // Nobody hears it: four times.
  expect(kinds(it.pass(20)).slice(0, 4)).toEqual(["DECLINE", "DECLINE", "DECLINE", "SOLICIT"]);
  it.answer(ADVERTISE);
  it.answer(REPLY);
  it.take(it.client.probed(false, it.now));
  expect(it.client.state).toBe("bound");
});

test("what was wished for or given rapidly is declined, too, and not wished for again", () => {
  const it = new Simulation6({ probe: true });
  it.take(it.client.start(it.now, address));
  it.answer(REPLY, { ...rapid, server: other });
  const [declined] = it.take(it.client.probed(true, it.now)) as [Sent];
  expect([declined.kind, has(declined, 2)]).toEqual(["DECLINE", other]);
  it.answer(REPLY, { server: other, addresses: null });
  expect(it.pass(3).map((one) => [one.kind, addressIn(one)])).toEqual([["SOLICIT", undefined]]);
});

test("a server that gives taken addresses for ever is asked ever more slowly", () => {
  const it = new Simulation6({ probe: true });
  it.start();
  for (let count = 0; count < 300; count++) {
    if (it.client.state === "soliciting") it.answer(ADVERTISE);
    if (it.client.state === "requesting") it.answer(REPLY);
    if (it.client.state === "probing") it.take(it.client.probed(true, it.now));
    if (it.client.state === "declining") it.answer(REPLY, { addresses: null });
    it.pass(1);
  }
  expect(it.sent.length).toBeLessThan(80);
});

test("CONFIRM: a good answer and none keep the lease with its times", () => {
  const lease = leaseFor();
  for (const answers of [true, false]) {
    const it = new Simulation6({ probe: true });
    it.now = 1100;
    const [confirm] = it.take(it.client.confirm(it.now, lease)) as [Sent];
    expect([confirm.kind, addressIn(confirm), has(confirm, 2), it.client.lease]).toEqual([
      "CONFIRM",
      address,
      undefined,
      undefined,
    ]);
    if (answers) it.answer(REPLY, { server: other, addresses: null, status: 0 });
    else {
      expect(times(it.pass(9.9))).toEqual([101, 103, 107]);
      expect(it.client.state).toBe("confirming");
      expect(it.pass(0.1)).toEqual([]);
    }
    expect(it.did).toEqual(["probe"]);
    it.take(it.client.probed(false, it.now));
    expect([it.client.state, it.client.lease, it.actions.at(-1)!]).toEqual([
      "bound",
      lease,
      { do: "use", lease, before: undefined },
    ]);
    expect(it.client.due).toBe(1292.5);
  }
});

test("CONFIRM: an address of another link is not used, and another is asked for at once", () => {
  const it = new Simulation6();
  it.take(it.client.confirm(it.now, leaseFor()));
  it.answer(REPLY, { addresses: null, status: 1 });
  expect(it.client.state).toBe("confirming");
  const sent = it.answer(REPLY, { addresses: null, status: 4 });
  expect([kinds(sent), addressIn(sent[0]!)]).toEqual([["SOLICIT"], undefined]);
  expect(it.did.slice(-2)).toEqual(["server 00030001020000000001 answers NotOnLink: so\\x0a", "stopUsing"]);
});

test("CONFIRM of a lease that has ended, or ends meanwhile, is a SOLICIT", () => {
  const lease = leaseFor();
  const late = new Simulation6();
  late.now = 2000;
  const [solicit] = late.take(late.client.confirm(late.now, lease)) as [Sent];
  expect([solicit.kind, addressIn(solicit)]).toEqual(["SOLICIT", address]);
  const ending = new Simulation6();
  ending.now = 1999.5;
  ending.take(ending.client.confirm(ending.now, lease));
  const [next] = ending.pass(0.5) as [Sent];
  expect([next.kind, next.at, ending.did]).toEqual(["SOLICIT", 2000, []]);
});

test("after a restart nobody waits: CONFIRM is delayed by up to a second", () => {
  const confirming = new Simulation6({}, false);
  expect(confirming.take(confirming.client.confirm(confirming.now, leaseFor()))).toEqual([]);
  // Nothing is asked yet, so nothing is an answer.
  const early = said(REPLY, { type: 4, xid: 1, options: [] }, { addresses: null });
  expect(confirming.client.receive(early, confirming.now)).toEqual([]);
  expect(kinds(confirming.pass(1))).toEqual(["CONFIRM"]);
  expect(confirming.sent[0]!.at).toBe(1000.5);
  // Ten seconds from the first message.
  confirming.pass(9.4);
  expect(confirming.client.state).toBe("confirming");
  confirming.pass(0.1);
  expect(confirming.client.state).toBe("bound");
});

test("a lease from before goes on by its own times", () => {
  const lease = leaseFor();
  for (
    const [later, state, kind, did] of [
      [100, "bound", undefined, []],
      [400, "renewing", "RENEW", []],
      [500, "rebinding", "REBIND", []],
      [1000, "soliciting", undefined, ["stopUsing"]],
    ] as const
  ) {
    const it = new Simulation6();
    it.now = lease.since + later;
    it.take(it.client.resume(it.now, lease));
    expect<unknown[]>([it.client.state, kinds(it.sent)[0], it.did]).toEqual([state, kind, [...did]]);
  }
});
