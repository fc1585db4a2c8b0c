/** How a netfilter batch ends: done, refused in part or as a whole, and with more refusals than the queue holds. */
import { expect, test } from "bun:test";
import { EBUSY, EINVAL, ENOBUFS, ENOENT, ERESTART, SyscallError } from "../../../src/ffi/errno.ts";
import { sendBatch } from "../../../src/ffi/netlink/batch.ts";
import { ack, FakeKernel, type Sent } from "./fake-kernel.ts";

const OVERRUN = () => new SyscallError("recvfrom AF_NETLINK", ENOBUFS);

/** Sends a beginning, two messages of which the second asks for an ACK, and an end. */
function send(kernel: FakeKernel) {
  return sendBatch(kernel, "two messages", (writer, next) => {
    const numbers = [0x10, 1, 2, 0x11].map((type) => {
      const number = next();
      writer.start(type, 1, number);
      writer.finish();
      return number;
    });
    return numbers[2]!;
  });
}

test("a batch is one datagram of messages numbered in a row, over when the ACK is there", () => {
  const kernel = new FakeKernel((kernel, messages) => kernel.reply(ack(messages[2]!.sequence)));
  expect(send(kernel)).toEqual([]);
  expect(kernel.sent).toHaveLength(1);
  const [first, ...others] = kernel.sent[0]!.map(({ sequence }) => sequence) as [number, ...number[]];
  expect(others).toEqual([first + 1, first + 2, first + 3]);
});

test("refusals come out in order, each with its message", () => {
  const kernel = new FakeKernel((kernel, [, one, two]: Sent) => {
    kernel.reply(ack(one!.sequence, ENOENT, { text: "no such set", offset: 20 }));
    kernel.reply(ack(two!.sequence, EINVAL));
  });
  expect(send(kernel)).toEqual([
    { index: 1, errno: ENOENT, text: "no such set", offset: 20 },
    { index: 2, errno: EINVAL, text: "", offset: 0 },
  ]);
});

test("a refusal of the beginning is one of the whole, and nothing follows it", () => {
  const kernel = new FakeKernel((kernel, [begin]: Sent) => kernel.reply(ack(begin!.sequence, ERESTART)));
  expect(send(kernel)).toEqual([{ index: 0, errno: ERESTART, text: "", offset: 0 }]);
});

test("what other processes send, and what belongs to earlier batches, does not count", () => {
  const kernel = new FakeKernel((kernel, [begin, , two, end]: Sent) => {
    kernel.replyFrom(4711, ack(begin!.sequence, EBUSY));
    kernel.reply(ack(begin!.sequence - 1, EBUSY), ack(end!.sequence + 1, EBUSY), ack(two!.sequence));
  });
  expect(send(kernel)).toEqual([]);
});

test("after an overrun the queue is emptied without waiting, and the refusals in it count", () => {
  const kernel = new FakeKernel((kernel, [, one, two]: Sent) => {
    kernel.reply(ack(one!.sequence, ENOENT));
    kernel.queue.push(OVERRUN());
    kernel.reply(ack(two!.sequence, EINVAL));
  });
  expect(send(kernel).map(({ index }) => index)).toEqual([1, 2]);
  expect(kernel.queue).toEqual([]);
  expect(kernel.patience).toEqual([undefined, undefined, 0, 0]);
});

test("after an overrun the ACK says that it worked", () => {
  const kernel = new FakeKernel((kernel, [, , two]: Sent) => {
    kernel.queue.push(OVERRUN());
    kernel.reply(ack(two!.sequence));
  });
  expect(send(kernel)).toEqual([]);
});

test("after an overrun that lost every answer, the outcome is unknown, which is an error", () => {
  const lost = new FakeKernel((kernel) => void kernel.queue.push(OVERRUN()));
  expect(() => send(lost)).toThrow("recvfrom AF_NETLINK two messages: no buffer space available");
});

test("a second overrun, and any other error, is passed on", () => {
  const twice = new FakeKernel((kernel) => void kernel.queue.push(OVERRUN(), OVERRUN()));
  expect(() => send(twice)).toThrow("recvfrom AF_NETLINK: no buffer space available");
  const other = new FakeKernel((kernel) => void kernel.queue.push(new SyscallError("recvfrom AF_NETLINK", EBUSY)));
  expect(() => send(other)).toThrow("device or resource busy");
});
