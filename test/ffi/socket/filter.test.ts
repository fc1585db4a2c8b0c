/** Filters: what the kernel lets through of datagrams, by rules. No address is needed for that. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { EAGAIN } from "../../../src/ffi/errno.ts";
import { closeFile } from "../../../src/ffi/files.ts";
import { bind, check, lastErrno } from "../../../src/ffi/libc.ts";
import {
  behindHeader,
  type FilterRule,
  has,
  hasNoBit,
  ofThisHost,
  setFilter,
} from "../../../src/ffi/socket/filter.ts";
import { receiveMessage, sendMessage } from "../../../src/ffi/socket/message.ts";
import { AF_UNIX, SOCK_CLOEXEC, SOCK_DGRAM, SOCK_NONBLOCK } from "../../../src/ffi/socket/socket.ts";

const { socketpair } = bind({ socketpair: { args: ["i32", "i32", "i32", "ptr"], returns: "i32" } });

let ours: number, theirs: number;
beforeEach(() => {
  const both = new Int32Array(2);
  check("socketpair", socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both));
  [ours, theirs] = [both[0]!, both[1]!];
});
afterEach(() => [ours, theirs].forEach(closeFile));

/** Whether the datagram comes through, as it was sent. */
function passes(...datagram: number[]): boolean {
  sendMessage(theirs, Uint8Array.from(datagram));
  const bytes = new Uint8Array(64), length = receiveMessage(ours, bytes);
  if (length < 0) {
    expect(lastErrno()).toBe(EAGAIN);
    return false;
  }
  expect([...bytes.subarray(0, length)]).toEqual(datagram);
  return true;
}

const keep = (...when: FilterRule["when"]): FilterRule => ({ keeps: true, when });
const drop = (...when: FilterRule["when"]): FilterRule => ({ keeps: false, when });

test("what no rule keeps is dropped, and the first rule that holds counts", () => {
  setFilter(ours, []);
  expect(passes(1)).toBe(false);
  setFilter(ours, [keep()]);
  expect(passes(1)).toBe(true);
  setFilter(ours, [drop(...has(0, [1])), keep(...has(1, [2])), drop(...has(0, [3])), keep()]);
  expect([passes(1, 2), passes(3, 2), passes(3, 3), passes(4, 4)]).toEqual([false, true, false, true]);
});

test("all conditions of a rule have to hold", () => {
  setFilter(ours, [keep(...has(0, [1]), ...has(2, [3]), ...hasNoBit(4, 0x1fff)), keep(...has(0, [9]))]);
  expect(passes(1, 0, 3, 0, 0x20, 0)).toBe(true);
  expect(passes(1, 0, 4, 0, 0x20, 0)).toBe(false);
  expect(passes(2, 0, 3, 0, 0x20, 0)).toBe(false);
  expect(passes(1, 0, 3, 0, 0x20, 1)).toBe(false);
  expect(passes(1, 0, 3, 0, 0x10, 0)).toBe(false);
  expect(passes(9, 0, 4, 0, 0, 0)).toBe(true);
});

test.each([1, 2, 3, 4, 5, 6, 7, 9])("%d bytes are compared, each of them, at their place", (length) => {
  const wanted = Array.from({ length }, (_, index) => 0xf0 + index);
  setFilter(ours, [keep(...has(3, wanted))]);
  expect(passes(0, 0, 0, ...wanted, 0)).toBe(true);
  for (let at = 0; at < length; at++) {
    expect(passes(0, 0, 0, ...wanted.with(at, 7), 0)).toBe(false);
  }
  expect(passes(0, 0, ...wanted, 0, 0)).toBe(false);
});

test("a datagram that ends before the place is dropped, unless a rule before has kept it", () => {
  setFilter(ours, [keep(...has(0, [5])), keep(...has(4, [1])), keep()]);
  expect([passes(0, 0, 0, 0), passes(5), passes(0, 0, 0, 0, 0)]).toEqual([false, true, true]);
});

test("behind a header of IPv4, whose length is in its first byte", () => {
  setFilter(ours, [keep(...behindHeader(has(1, [7, 8])), ...has(0, [0x45])), keep(...behindHeader(has(0, [9])))]);
  const header = (words: number) => [0x40 | words, ...Array<number>(4 * words - 1).fill(0)];
  expect(passes(...header(5), 0, 7, 8)).toBe(true);
  expect(passes(...header(5), 7, 8, 0)).toBe(false);
  expect(passes(...header(6), 9, 0, 0)).toBe(true);
  expect(passes(...header(6), 0, 9, 0)).toBe(false);
});

test("what this host sends itself is told from what arrives", () => {
  // A datagram between processes is for this host, and not on its way out.
  setFilter(ours, [drop(...ofThisHost), keep()]);
  expect(passes(1)).toBe(true);
  setFilter(ours, [drop(...ofThisHost.map((one) => ({ ...one, isWanted: false }))), keep()]);
  expect(passes(1)).toBe(false);
});
