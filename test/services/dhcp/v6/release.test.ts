/** RELEASE, and information without an address, in simulated time (RFC 8415 sections 18.2.6 and 18.2.7). */
import { expect, test } from "bun:test";
import { ADVERTISE, option, REPLY } from "../../../../src/services/dhcp/v6/message/message.ts";
import {
  address,
  addressIn,
  has,
  kinds,
  leaseFor,
  other,
  rapid,
  type Sent,
  server,
  Simulation6,
  times,
  uint32,
} from "../../../support/dhcp6-simulation.ts";

test("information without an address is asked for again when it is old", () => {
  const it = new Simulation6();
  expect(kinds(it.take(it.client.inform(it.now)))).toEqual(["INFORMATION-REQUEST"]);
  expect(times(it.pass(8))).toEqual([1, 3, 7]);
  it.answer(REPLY, { addresses: null, status: 1 });
  expect(it.client.state).toBe("informing");
  const answered = it.now;
  it.answer(REPLY, { addresses: null, more: [[option.refresh, uint32(700)], [option.nameServers, address]] });
  expect(it.actions.at(-1)).toMatchObject({ do: "informed", reply: { nameServers: [address] } });
  expect([it.client.state, it.client.due]).toEqual(["informed", answered + 700]);
  const again = it.pass(701);
  expect([kinds(again), again[0]!.at]).toEqual([["INFORMATION-REQUEST"], answered + 700.5]);
  it.answer(REPLY, { addresses: null, more: [[option.refresh, uint32(1)]] });
  expect(it.client.due).toBe(it.now + 600);
  it.pass(601);
  it.answer(REPLY, { addresses: null });
  expect(it.client.due).toBe(it.now + 86400);
  it.pass(86401);
  it.answer(REPLY, { addresses: null, more: [[option.refresh, uint32(0xffffffff)]] });
  expect(it.client.due).toBe(Infinity);
});

test("RELEASE: every second until the server has heard, four times at most", () => {
  for (const answers of [true, false]) {
    const it = new Simulation6();
    it.bind();
    it.now += 10;
    const [release] = it.take(it.client.release(it.now)) as [Sent];
    expect([release.kind, addressIn(release), has(release, 2)]).toEqual(["RELEASE", address, server]);
    expect([it.client.state, it.client.lease, it.did]).toEqual(["releasing", undefined, ["use"]]);
    expect(it.client.release(it.now)).toEqual([]);
    if (answers) {
      it.answer(REPLY, { server: other });
      expect(it.client.state).toBe("releasing");
      it.answer(REPLY, { addresses: [], iaStatus: 3 });
    } else {
      expect(times(it.pass(3.9))).toEqual([11, 12, 13]);
      it.pass(0.1);
      expect(it.did.at(-2)).toBe("server 00030001020000000001 has not answered the release");
    }
    expect([it.client.state, it.did.at(-1), it.client.due]).toEqual(["idle", "released", Infinity]);
    expect(it.pass(10_000)).toEqual([]);
  }
});

test("RELEASE: what a server may have given already, and nothing when there is nothing", () => {
  const idle = new Simulation6();
  expect(idle.client.release(idle.now)).toEqual([{ do: "released" }]);
  const soliciting = new Simulation6();
  soliciting.start();
  expect(soliciting.client.release(soliciting.now)).toEqual([{ do: "released" }]);
  expect([soliciting.client.state, soliciting.pass(1000)]).toEqual(["idle", []]);
  const requesting = new Simulation6();
  requesting.start();
  requesting.answer(ADVERTISE);
  expect(kinds(requesting.take(requesting.client.release(requesting.now)))).toEqual(["RELEASE"]);
  const probing = new Simulation6({ probe: true });
  probing.start();
  probing.answer(REPLY, rapid);
  const [release] = probing.take(probing.client.release(probing.now)) as [Sent];
  expect([release.kind, addressIn(release)]).toEqual(["RELEASE", address]);
  expect(probing.client.probed(false, probing.now)).toEqual([]);
  const confirming = new Simulation6();
  confirming.take(confirming.client.confirm(confirming.now, leaseFor()));
  expect(kinds(confirming.take(confirming.client.release(confirming.now)))).toEqual(["RELEASE"]);
  const expired = new Simulation6({ probe: true });
  expired.start();
  expired.answer(REPLY, rapid);
  expired.take(expired.client.probed(false, expired.now));
  expired.pass(1100);
  expect(expired.client.release(expired.now)).toEqual([{ do: "released" }]);
});
