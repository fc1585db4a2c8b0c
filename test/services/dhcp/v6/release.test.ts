/** RELEASE, in simulated time (RFC 8415 section 18.2.7). */
import { expect, test } from "bun:test";
import { ADVERTISE, REPLY } from "../../../../src/services/dhcp/v6/message/message.ts";
import {
  address,
  addressIn,
  has,
  kinds,
  leaseFor,
  rapid,
  type Sent,
  server,
  Simulation6,
} from "../../../support/dhcp6-simulation.ts";

test("RELEASE goes to the server once, and nothing is asked any more", () => {
  const it = new Simulation6();
  it.bind();
  const [release] = it.take(it.client.release()) as [Sent];
  expect([release.kind, addressIn(release), has(release, 2), has(release, 8)]).toEqual([
    "RELEASE",
    address,
    server,
    new Uint8Array(2),
  ]);
  expect([it.client.state, it.client.lease, it.client.due, it.did]).toEqual(["idle", undefined, Infinity, ["use"]]);
  expect([it.client.release(), it.answer(REPLY), it.pass(10_000)]).toEqual([[], [], []]);
});

test("RELEASE: what a server may have given already, and nothing when there is nothing", () => {
  const idle = new Simulation6();
  expect(idle.client.release()).toEqual([]);
  const soliciting = new Simulation6();
  soliciting.start();
  expect(soliciting.client.release()).toEqual([]);
  expect([soliciting.client.state, soliciting.pass(1000)]).toEqual(["idle", []]);
  const requesting = new Simulation6();
  requesting.start();
  requesting.answer(ADVERTISE);
  expect(kinds(requesting.take(requesting.client.release()))).toEqual(["RELEASE"]);
  const probing = new Simulation6({ probe: true });
  probing.start();
  probing.answer(REPLY, rapid);
  const [release] = probing.take(probing.client.release()) as [Sent];
  expect([release.kind, addressIn(release)]).toEqual(["RELEASE", address]);
  expect(probing.client.probed(false, probing.now)).toEqual([]);
  const confirming = new Simulation6();
  confirming.take(confirming.client.confirm(confirming.now, leaseFor()));
  expect(kinds(confirming.take(confirming.client.release()))).toEqual(["RELEASE"]);
  const expired = new Simulation6({ probe: true });
  expired.start();
  expired.answer(REPLY, rapid);
  expired.take(expired.client.probed(false, expired.now));
  expired.pass(1100);
  expect(expired.client.release()).toEqual([]);
});
