/** What the status adds up from the board. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { secondsSinceBoot } from "../../../src/ffi/clock.ts";
import { statusOf } from "../../../src/frontends/resident/status.ts";

/** No process has it: it is above the kernel's limit. */
const NOBODY = 5_000_000;

test("a status has the sums of all counts, each worker's own, and who it would decline from here", () => {
  const now = secondsSinceBoot();
  const counts = (served: number, more: Record<string, number> = {}) => new Map(Object.entries({ served, ...more }));
  const board = {
    parent: { pid: 7, begun: now - 100, counts: counts(10, { "declined: uid": 1, "worker replaced": 2 }) },
    workers: [
      { pid: NOBODY, begun: now - 50, counts: new Map([["declined: uid", 2]]) },
      { pid: process.pid, begun: now - 10, counts: counts(20, { "declined: DHCP": 4, "taken back": 3 }) },
    ],
  };
  const descriptors = () => readdirSync("/proc/self/fd").length, before = descriptors();
  const status = statusOf(process.pid, "this", board), passed = secondsSinceBoot() - now;
  expect(descriptors()).toBe(before);
  const own = { pid: process.pid, served: 20 }, gone = { pid: NOBODY, served: 0, memoryKib: 0, ownMemoryKib: 0 };
  expect(status).toMatchObject({
    socket: "/run/patchbay/serve.sock",
    pid: process.pid,
    build: "this",
    served: 30,
    takenBack: 3,
    declined: { uid: 3, DHCP: 4 },
    workersReplaced: 2,
    workers: [own, gone],
  });
  expect([status.declinesFromHere, status.refusedUpgrade]).toEqual([undefined, undefined]);
  const { memoryKib, ownMemoryKib } = status.workers[0]!;
  expect([memoryKib > ownMemoryKib, ownMemoryKib > 1000]).toEqual([true, true]);
  for (const [age, least] of [[status.ageSeconds, 100], [status.workers[0]!.ageSeconds, 10]] as const) {
    expect([age >= least, age <= least + passed]).toEqual([true, true]);
  }
});

test("a status of nothing counted is all zero, and a process that has ended is in another place", () => {
  const board = { parent: { pid: 7, begun: 0, counts: new Map<string, number>() }, workers: [] };
  const { served, takenBack, declined, workersReplaced, declinesFromHere, refusedUpgrade } = statusOf(
    NOBODY,
    "another",
    board,
  );
  expect({ served, takenBack, declined, workersReplaced }).toEqual({
    served: 0,
    takenBack: 0,
    declined: {},
    workersReplaced: 0,
  });
  expect([declinesFromHere, refusedUpgrade]).toEqual(["namespace", undefined]);
});
