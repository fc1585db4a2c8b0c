/** What the status adds up from a process's pages of counters. This process has some. */
import { afterEach, expect, test } from "bun:test";
import { readdirSync, writeSync } from "node:fs";
import { secondsSinceBoot } from "../../../src/ffi/clock.ts";
import { closeFile } from "../../../src/ffi/files.ts";
import { Counters, makePage } from "../../../src/frontends/resident/counters.ts";
import { pagesOf, statusOf } from "../../../src/frontends/resident/status.ts";
import { TOTALS_PAGE, WORKER_PAGE } from "../../../src/frontends/resident/workers.ts";

/** No process has it: it is above the kernel's limit. */
const NOBODY = 5_000_000;

const open: number[] = [];
afterEach(() => {
  for (const fd of open.splice(0)) closeFile(fd);
});

/** A page with these counts; by `writer` it looks written by another process. */
function page(name: string, counts: Record<string, number>, writer = process.pid): void {
  const fd = makePage(name), counters = new Counters(fd);
  open.push(fd);
  for (const [counted, times] of Object.entries(counts)) counters.count(counted, times);
  writeSync(fd, Uint8Array.from(new Uint8Array(Uint32Array.of(writer).buffer)), 0, 4, 4);
}

test("pages are found by their names among what a process has open, and those of workers that have ended not", () => {
  page("patchbay-something", { served: 1 });
  page(WORKER_PAGE, { served: 2 });
  expect(pagesOf(process.pid)).toBeUndefined();
  page(TOTALS_PAGE, { served: 3 });
  page(WORKER_PAGE, { served: 4 }, 1);
  page(WORKER_PAGE, { served: 5 }, NOBODY);
  open.push(makePage(WORKER_PAGE));
  const { totals, workers } = pagesOf(process.pid)!;
  expect([totals, ...workers].map(({ pid, counts }) => [pid, counts.get("served")])).toEqual([
    [process.pid, 3],
    [process.pid, 2],
    [1, 4],
  ]);
  const before = readdirSync("/proc/self/fd").length;
  expect(pagesOf(process.pid)!.workers.length).toBe(2);
  expect(readdirSync("/proc/self/fd").length).toBe(before);
  expect(pagesOf(NOBODY)).toBeUndefined();
});

test("a status has the sums of all pages, each worker's own, and who it would decline from here", () => {
  const now = secondsSinceBoot();
  const counts = (served: number, more: Record<string, number> = {}) => new Map(Object.entries({ served, ...more }));
  const pages = {
    totals: { pid: 7, begun: now - 100, counts: counts(10, { "declined: uid": 1, "worker replaced": 2 }) },
    workers: [
      { pid: NOBODY, begun: now - 50, counts: new Map([["declined: uid", 2]]) },
      { pid: process.pid, begun: now - 10, counts: counts(20, { "declined: DHCP": 4, "taken back": 3 }) },
    ],
  };
  const descriptors = () => readdirSync("/proc/self/fd").length, before = descriptors();
  const status = statusOf(process.pid, "this", pages), passed = secondsSinceBoot() - now;
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
  const pages = { totals: { pid: 7, begun: 0, counts: new Map<string, number>() }, workers: [] };
  const { served, takenBack, declined, workersReplaced, declinesFromHere, refusedUpgrade } = statusOf(
    NOBODY,
    "another",
    { ...pages, workers: [] },
  );
  expect({ served, takenBack, declined, workersReplaced }).toEqual({
    served: 0,
    takenBack: 0,
    declined: {},
    workersReplaced: 0,
  });
  expect([declinesFromHere, refusedUpgrade]).toEqual(["namespace", undefined]);
});
