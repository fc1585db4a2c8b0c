/** Waiting for descriptors: which are ready, for how long, and whose turn it is when others wait, too. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { closeFile, readAt, writeAll } from "../../src/ffi/files.ts";
import { libc } from "../../src/ffi/libc.ts";
import { poll, POLLIN, POLLOUT, SharedWait } from "../../src/ffi/poll.ts";
import { openPipe } from "../../src/ffi/spawn.ts";

let one: [readEnd: number, writeEnd: number], other: [readEnd: number, writeEnd: number], open: number[];
beforeEach(() => {
  one = openPipe();
  other = openPipe();
  open = [...one, ...other];
});
afterEach(() => open.forEach(closeFile));

const fill = ([, writeEnd]: [number, number]) => writeAll(writeEnd, Uint8Array.of(1));
const empty = ([readEnd]: [number, number]) => libc.read(readEnd, new Uint8Array(1), 1);
const close = (fd: number) => {
  closeFile(fd);
  open = open.filter((each) => each !== fd);
};
const ready = (
  timeoutMs: number,
  ...wanted: [fd: number, events: number][]
) => [...poll(wanted.map(([fd, events]) => ({ fd, events })), timeoutMs)];

test("those that are ready are told, the others and negative ones are not", () => {
  // A call that fails leaves its errno behind, which is not poll's.
  expect(readAt(-1, new Uint8Array(1), 0)).toBe(-1);
  expect(ready(0, [one[0], POLLIN], [other[0], POLLIN])).toEqual([]);
  expect(ready(0.5, [one[0], POLLIN])).toEqual([]);
  fill(other);
  for (const timeoutMs of [0, 1000, -1, Infinity]) {
    expect(ready(timeoutMs, [one[0], POLLIN], [-1, POLLIN], [other[0], POLLIN])).toEqual([other[0]]);
  }
  expect(ready(0, [other[0], POLLIN], [one[1], POLLOUT], [one[0], POLLIN])).toEqual([other[0], one[1]]);
  expect(ready(0, [other[0], POLLOUT])).toEqual([]);
  expect(ready(0)).toEqual([]);
});

test("one whose other end is closed is ready", () => {
  close(one[1]);
  expect(ready(-1, [one[0], POLLIN], [other[0], POLLIN])).toEqual([one[0]]);
});

test("of what is waited for together, the own one comes first", () => {
  const wait = new SharedWait(one[0], other[0]);
  fill(one);
  expect([wait.next(), wait.next()]).toEqual([one[0], one[0]]);
  fill(other);
  expect(wait.next()).toBe(other[0]);
  empty(one);
  expect(wait.next()).toBe(other[0]);
  empty(other);
  close(one[1]);
  expect(wait.next()).toBe(one[0]);
});
