/** How long a verb waits altogether for each program that it asks. The clock is the test's. */
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { endCall } from "../../src/process/calls.ts";
import { setNonblocking } from "../../src/ffi/descriptors.ts";
import { closeFile, writeAll } from "../../src/ffi/files.ts";
import { patienceLeftMs, renewPatience, waitingFor, withOwnPatience } from "../../src/process/patience.ts";
import { openPipe } from "../../src/ffi/spawn.ts";
import { libc } from "../../src/ffi/libc.ts";

let now = 0, clock: ReturnType<typeof spyOn>;
beforeEach(() => void (clock = spyOn(performance, "now").mockImplementation(() => now)));
afterEach(() => {
  clock.mockRestore();
  endCall();
});

const wait = (whom: string, ms: number) => waitingFor(whom, () => void (now += ms));

test("waits add up, for each by itself, and what passes between them does not count", () => {
  wait("a", 9.5);
  now += 1000;
  wait("a", 0.2);
  expect([patienceLeftMs("a", 10), patienceLeftMs("b", 10)]).toEqual([1, 10]);
  wait("a", 50);
  expect(patienceLeftMs("a", 10)).toBe(0);
});

test("a wait that fails counts", () => {
  expect(() =>
    waitingFor("a", () => {
      now += 7;
      throw new Error("no");
    })
  ).toThrow("no");
  expect(patienceLeftMs("a", 10)).toBe(3);
});

test("a verb within a verb waits on its own account, also when it fails", () => {
  wait("a", 4);
  expect(withOwnPatience(() => [patienceLeftMs("a", 10), wait("a", 8), patienceLeftMs("a", 10)])).toEqual([
    10,
    undefined,
    2,
  ]);
  expect(patienceLeftMs("a", 10)).toBe(6);
  expect(() =>
    withOwnPatience(() => {
      throw new Error("no");
    })
  ).toThrow("no");
  expect(patienceLeftMs("a", 10)).toBe(6);
});

test("what takes back waits anew, and so does the next call", () => {
  wait("a", 8);
  wait("b", 8);
  renewPatience("a");
  expect([patienceLeftMs("a", 10), patienceLeftMs("b", 10)]).toEqual([10, 2]);
  endCall();
  expect(patienceLeftMs("b", 10)).toBe(10);
});

test("whoever reads a little of what is written, each time in time, does not keep the writer", () => {
  const [readEnd, writeEnd] = openPipe();
  setNonblocking(writeEnd);
  let reads = 0;
  // A page is free again whenever somebody looks at the clock.
  clock.mockImplementation(() => {
    if (reads++ > 0) libc.read(readEnd, new Uint8Array(4096), 4096);
    return now += 900;
  });
  expect(() => writeAll(writeEnd, new Uint8Array(1 << 20), "the pipe", 5000)).toThrow(
    "the pipe: connection timed out",
  );
  expect(reads).toBeLessThan(12);
  for (const fd of [readEnd, writeEnd]) closeFile(fd);
});
