/** How long a DHCPv6 client waits before it asks again, by RFC 8415's numbers (sections 7.6 and 15). */
import { expect, test } from "bun:test";
import { type Asking, nextPause, type Timer, timerOf } from "../../../../src/services/dhcp/v6/lease/timers.ts";
import { leaseFor, pauses, Simulation6, times } from "../../../support/dhcp6-simulation.ts";

test("while somebody waits, no pause is longer than 16 seconds, and a REQUEST has 4 tries", () => {
  const of = (state: Asking, isAwaited: boolean) => {
    const { longest, tries } = timerOf(state, 60, isAwaited);
    return [longest, tries];
  };
  expect([of("soliciting", true), of("requesting", true), of("confirming", true)]).toEqual([
    [16, Infinity],
    [16, 4],
    [4, Infinity],
  ]);
  expect([of("soliciting", false), of("requesting", false), of("renewing", false)]).toEqual([
    [60, Infinity],
    [30, 10],
    [600, Infinity],
  ]);
});

test.each<[before: number, random: number, grows: boolean, pause: number]>([
  [0, 0, false, 0.9],
  [0, 0.75, false, 1.05],
  // The first SOLICIT is never too early.
  [0, 0, true, 1.1],
  [0, 0.75, true, 1.025],
  [2, 0, false, 3.8],
  [2, 0.75, true, 4.1],
  [20, 0.75, false, 31.5],
  [20, 0, false, 27],
  // Exactly the longest one is not too long.
  [30 / 2.05, 0.75, false, 30],
])("after %d seconds, by chance %d, growing %p: %d", (before, random, grows, pause) => {
  const timer: Timer = { first: 1, longest: 30, tries: 4 };
  expect(nextPause(before, timer, random, grows)).toBeCloseTo(pause, 9);
});

test("a renewal is repeated every ten minutes at last, a CONFIRM every four seconds", () => {
  const it = new Simulation6();
  it.bind({ renew: 100, rebind: 50_000, addresses: [{ valid: Infinity }] });
  expect(pauses(it.pass(5000)).slice(0, 7).map(Math.round)).toEqual([10, 20, 40, 80, 160, 320, 600]);
  const confirming = new Simulation6({ random: () => 0 });
  confirming.now = 1100;
  confirming.take(confirming.client.confirm(confirming.now, leaseFor()));
  expect(times(confirming.pass(9.9)).map((at) => Math.round((at - 100) * 100) / 100)).toEqual([
    0.9,
    2.61,
    5.86,
    9.46,
  ]);
});

test("a lease is not renewed within a second of the last message, whatever T1 is", () => {
  const it = new Simulation6();
  it.bind({ renew: 1, rebind: 2 });
  expect(it.client.due).toBe(it.now + 1);
});
