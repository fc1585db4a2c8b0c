/** Looking again whenever a notification comes, whatever is in it. */
import { expect, test } from "bun:test";
import { EBADF, ENOBUFS, SyscallError } from "../../../src/ffi/errno.ts";
import { lookUntil, untilQuiet } from "../../../src/ffi/netlink/events.ts";
import { FakeKernel, message } from "./fake-kernel.ts";

/** Answers yes from the `nth` look on. */
function yesAt(nth: number): { looks: () => number; isSo: () => boolean } {
  let looks = 0;
  return { looks: () => looks, isSo: () => ++looks >= nth };
}

test("what is so already is not waited for", () => {
  const kernel = new FakeKernel(), { isSo } = yesAt(1);
  expect(lookUntil(kernel, 1000, isSo)).toBe(true);
  expect(kernel.patience).toEqual([]);
});

test("each notification is a reason to look, a forged one and the loss of many included", () => {
  const kernel = new FakeKernel(), { looks, isSo } = yesAt(4);
  kernel.reply(message(16, 0));
  kernel.replyFrom(4711, message(16, 0));
  kernel.queue.push(new SyscallError("recvfrom AF_NETLINK", ENOBUFS));
  expect(lookUntil(kernel, 10_000, isSo)).toBe(true);
  expect(looks()).toBe(4);
  expect(kernel.patience.every((timeoutMs) => timeoutMs! > 0 && timeoutMs! <= 10_000)).toBe(true);
});

test("it is over when the time is, even if notifications keep coming", () => {
  const flood = { send() {}, receive: () => ({ bytes: new Uint8Array(0), sentBytes: 0, sender: 0 }) };
  expect(lookUntil(flood, 20, () => false)).toBe(false);
  expect(lookUntil(new FakeKernel(), 0, () => false)).toBe(false);
  untilQuiet(flood, 20);
});

test("it is quiet when none has come for a moment after the first, which may take any time", () => {
  const kernel = new FakeKernel();
  kernel.reply(message(16, 0));
  kernel.queue.push(new SyscallError("recvfrom AF_NETLINK", ENOBUFS));
  kernel.reply(message(16, 0));
  untilQuiet(kernel);
  expect(kernel.patience).toEqual([undefined, 100, 100, 100]);
  kernel.queue.push(new SyscallError("recvfrom AF_NETLINK", EBADF));
  expect(() => untilQuiet(kernel)).toThrow("bad file descriptor");
});

test("any other error is passed on", () => {
  const kernel = new FakeKernel();
  kernel.queue.push(new SyscallError("recvfrom AF_NETLINK", EBADF));
  expect(() => lookUntil(kernel, 1000, () => false)).toThrow("bad file descriptor");
});
