/** Descriptors that come with a message: so many as are wanted, and no other one stays open. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { closeFile } from "../../../src/ffi/files.ts";
import { bind, check } from "../../../src/ffi/libc.ts";
import {
  type Received,
  receiveMessage,
  receiveSender,
  receiveWithDescriptors,
  sendMessage,
} from "../../../src/ffi/socket/message.ts";

const { socketpair } = bind({ socketpair: { args: ["i32", "i32", "i32", "ptr"], returns: "i32" } });
const SOCK_STREAM = 1, SOCK_SEQPACKET = 5, SOCK_CLOEXEC = 0o2000000;

function pair(type: number): [number, number] {
  const both = new Int32Array(2);
  check("socketpair", socketpair(1, type | SOCK_CLOEXEC, 0, both));
  return [both[0]!, both[1]!];
}

const open = () => readdirSync("/proc/self/fd").length;

const receivers: Record<string, (fd: number, bytes: Uint8Array) => Received> = {
  receiveMessage: (fd, bytes) => ({ length: receiveMessage(fd, bytes), descriptors: [] }),
  receiveSender: (fd) => ({ length: receiveSender(fd) === undefined ? 0 : 1, descriptors: [] }),
  "receiveWithDescriptors, none": (fd, bytes) => receiveWithDescriptors(fd, bytes, 0),
  "receiveWithDescriptors, one": (fd, bytes) => receiveWithDescriptors(fd, bytes, 1),
  "receiveWithDescriptors, two": (fd, bytes) => receiveWithDescriptors(fd, bytes, 2),
};
const wanted: Record<string, number> = { "receiveWithDescriptors, one": 1, "receiveWithDescriptors, two": 2 };

test.each(Object.keys(receivers))("%s: what it returns is all that is open", (name) => {
  const found: unknown[] = [], expected: unknown[] = [];
  for (const type of [SOCK_SEQPACKET, SOCK_STREAM]) {
    // A stream carries no empty messages.
    for (const size of type === SOCK_STREAM ? [1] : [0, 1]) {
      for (const count of [0, 1, 2, 3, 12]) {
        const [ours, theirs] = pair(type), before = open();
        const sent = sendMessage(theirs, new Uint8Array(size), Array.from({ length: count }, () => theirs));
        const { descriptors } = receivers[name]!(ours, new Uint8Array(8));
        found.push({ type, size, count, sent, descriptors: descriptors.length, more: open() - before });
        for (const fd of [...descriptors, ours, theirs]) closeFile(fd);
        const some = size === 0 ? 0 : Math.min(count, wanted[name] ?? 0);
        expected.push({ type, size, count, sent: size, descriptors: some, more: some });
      }
    }
  }
  expect(found).toEqual(expected);
});
