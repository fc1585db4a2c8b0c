/** Which bytes count as the kernel's answer to a request, and what follows from those that do not. */
import { expect, test } from "bun:test";
import { EINTR, EINVAL, EMSGSIZE, ENOBUFS, ENODEV, SyscallError } from "../../../src/ffi/errno.ts";
import { attrTable, text, u32 } from "../../../src/ffi/netlink/attrs.ts";
import { dumpAll, sendRequest } from "../../../src/ffi/netlink/exchange.ts";
import { NetlinkError } from "../../../src/ffi/netlink/netlink-error.ts";
import {
  MalformedMessage,
  type NetlinkMessage,
  NLM_F_ACK,
  NLM_F_DUMP,
  NLM_F_DUMP_INTR,
  NLM_F_MULTI,
  NLM_F_REQUEST,
} from "../../../src/ffi/netlink/wire.ts";
import { outcomeOf } from "../../support/outcome.ts";
import { ack, done, FakeKernel, message, type Sent } from "./fake-kernel.ts";

const ASK = 18, TELL = 16;
const question = { what: "ASK eth0", type: ASK, body: () => {} };
const tell = (sequence: number, value: number, flags = NLM_F_MULTI) =>
  message(TELL, sequence, flags, (writer) => void writer.u32(value));

/** What came in, taken out of the receive buffer at once. */
function collector(): { values: number[]; take: (message: NetlinkMessage) => void } {
  const values: number[] = [];
  return { values, take: ({ payload }) => void values.push(payload[0]!) };
}

test("a request asks for an ACK, and its replies come before it, in one datagram or several", () => {
  for (const together of [true, false]) {
    const kernel = new FakeKernel((kernel, [{ sequence }]: Sent) => {
      if (together) return kernel.reply(tell(sequence, 1), tell(sequence, 2), ack(sequence));
      for (const one of [tell(sequence, 1), tell(sequence, 2), ack(sequence)]) kernel.reply(one);
    });
    const { values, take } = collector();
    sendRequest(kernel, { ...question, flags: 0x400, body: (writer) => void writer.u32(7) }, take);
    expect(values).toEqual([1, 2]);
    const [{ type, flags, payload }] = kernel.sent[0]!;
    expect([type, flags, payload[0]]).toEqual([ASK, NLM_F_REQUEST | NLM_F_ACK | 0x400, 7]);
  }
});

test("each request has a sequence number of its own", () => {
  const kernel = new FakeKernel((kernel, [{ sequence }]: Sent) => kernel.reply(ack(sequence)));
  for (let count = 0; count < 3; count++) sendRequest(kernel, question);
  expect(new Set(kernel.sent.map(([one]) => one!.sequence)).size).toBe(3);
});

test("answers with another sequence number, left over or made up, do not count", () => {
  const kernel = new FakeKernel((kernel, [{ sequence }]: Sent) => {
    kernel.reply(tell(sequence - 1, 1), ack(sequence - 1, ENODEV));
    kernel.reply(ack(0, ENODEV), ack(sequence + 1, ENODEV), tell(sequence, 2));
    kernel.reply(ack(sequence));
  });
  const { values, take } = collector();
  sendRequest(kernel, question, take);
  expect(values).toEqual([2]);
});

test("what follows the ACK in its datagram does not count", () => {
  const kernel = new FakeKernel((kernel, [{ sequence }]: Sent) =>
    kernel.reply(ack(sequence), tell(sequence, 1), ack(sequence, ENODEV))
  );
  const { values, take } = collector();
  sendRequest(kernel, question, take);
  expect(values).toEqual([]);
});

test("datagrams of other processes do not count, whatever they say and however long they are", () => {
  const kernel = new FakeKernel((kernel, [{ sequence }]: Sent) => {
    kernel.replyFrom(4711, ack(sequence, ENODEV));
    kernel.replyFrom(4711, tell(sequence, 1), ack(sequence));
    kernel.queue.push({ bytes: new Uint8Array(16), sentBytes: 1 << 20, sender: 4711 });
    kernel.reply(tell(sequence, 2), ack(sequence));
  });
  const { values, take } = collector();
  sendRequest(kernel, question, take);
  expect(values).toEqual([2]);
});

test("a datagram of the kernel's that was cut off is an error", () => {
  const kernel = new FakeKernel((kernel, [{ sequence }]: Sent) => {
    kernel.queue.push({ bytes: tell(sequence, 1), sentBytes: 70_000, sender: 0 });
  });
  const error = outcomeOf(() => sendRequest(kernel, question)) as SyscallError;
  expect([error.errno, error.message]).toEqual([
    EMSGSIZE,
    "recvfrom AF_NETLINK 70000 bytes: message too long",
  ]);
});

test("an answer whose lengths do not fit is an error", () => {
  const kernel = new FakeKernel((kernel, [{ sequence }]: Sent) => {
    kernel.reply(tell(sequence, 1).subarray(0, 18));
  });
  expect(() => sendRequest(kernel, question)).toThrow(MalformedMessage);
});

test("a refusal has the kernel's reason, its words, and the name of the attribute it objects to", () => {
  const table = attrTable("ASK", { name: text(1), mtu: u32(2) });
  const request = {
    ...question,
    table,
    fixedBytes: 4,
    body: (writer: Parameters<typeof table.encode>[0]) => {
      writer.u32(0);
      table.encode(writer, { name: "eth0", mtu: 1 });
    },
  };
  const refusals: [extended: { text?: string; offset?: number }, message: string][] = [
    [{}, "ASK eth0: invalid argument"],
    [{ text: "too small" }, "ASK eth0: invalid argument (too small)"],
    [{ offset: 32 }, "ASK eth0: invalid argument (attribute mtu)"],
    [{ text: "too small", offset: 20 }, "ASK eth0: invalid argument (too small, attribute name)"],
    [{ offset: 400 }, "ASK eth0: invalid argument"],
  ];
  for (const [extended, expected] of refusals) {
    const kernel = new FakeKernel((kernel, [{ sequence }]: Sent) => kernel.reply(ack(sequence, EINVAL, extended)));
    const error = outcomeOf(() => sendRequest(kernel, request)) as Error;
    expect(error).toBeInstanceOf(NetlinkError);
    expect([(error as NetlinkError).errno, error.message]).toEqual([EINVAL, expected]);
  }
});

test("the kernel's words are behind the request, where it repeats that", () => {
  for (const length of [16, 20, 21]) {
    const kernel = new FakeKernel((kernel, [{ sequence }]: Sent) =>
      kernel.reply(message(2, sequence, 0x200, (writer) => { // NLMSG_ERROR with NLM_F_ACK_TLVS, not capped
        writer.u32(-EINVAL >>> 0).u32(length).raw(new Uint8Array(length - 4)).align();
        writer.attribute(1, () => void writer.text("too small"));
      }))
    );
    expect(() => sendRequest(kernel, question)).toThrow("ASK eth0: invalid argument (too small)");
  }
});

test("a dump ends with NLMSG_DONE, and with its errno where that has one", () => {
  const kernel = new FakeKernel((kernel, [{ sequence }]: Sent) => {
    kernel.reply(tell(sequence, 1), tell(sequence, 2));
    kernel.reply(tell(sequence, 3), done(sequence, NLM_F_MULTI));
  });
  const { values, take } = collector();
  dumpAll(kernel, question, take);
  expect(values).toEqual([1, 2, 3]);
  expect(kernel.sent[0]![0]!.flags).toBe(NLM_F_REQUEST | NLM_F_DUMP);

  const refusing = new FakeKernel((kernel, [{ sequence }]: Sent) => kernel.reply(done(sequence, 0, EINVAL)));
  expect(() => dumpAll(refusing, question, () => {})).toThrow("ASK eth0: invalid argument");
});

test("an interrupted dump is asked for again, from the start and under another number", () => {
  let asked = 0;
  const kernel = new FakeKernel((kernel, [{ sequence }]: Sent) => {
    asked++;
    // Once the kernel says so on an object, once only at the end.
    const [early, late] = asked === 1 ? [NLM_F_DUMP_INTR, 0] : asked === 2 ? [0, NLM_F_DUMP_INTR] : [0, 0];
    kernel.reply(tell(sequence, asked, NLM_F_MULTI | early));
    kernel.reply(tell(sequence, asked * 10), done(sequence, NLM_F_MULTI | late));
  });
  let values: number[] = [], restarts = 0;
  dumpAll(kernel, question, ({ payload }) => void values.push(payload[0]!), () => {
    values = [];
    restarts++;
  });
  expect({ values, restarts, asked }).toEqual({ values: [3, 30], restarts: 2, asked: 3 });
});

test("a dump that is interrupted every time is an error, not a list that may lack something", () => {
  const kernel = new FakeKernel((kernel, [{ sequence }]: Sent) => kernel.reply(done(sequence, NLM_F_DUMP_INTR)));
  const error = outcomeOf(() => dumpAll(kernel, question, () => {})) as NetlinkError;
  expect([error.errno, error.message, kernel.sent.length]).toEqual([
    EINTR,
    "ASK eth0: interrupted system call (the dump was interrupted every time)",
    500,
  ]);
});

test("a dump is asked for as often as the request says, and no more", () => {
  const kernel = new FakeKernel((kernel, [{ sequence }]: Sent) => kernel.reply(done(sequence, NLM_F_DUMP_INTR)));
  expect((outcomeOf(() => dumpAll(kernel, { ...question, attempts: 1 }, () => {})) as NetlinkError).errno).toBe(
    EINTR,
  );
  expect(kernel.sent.length).toBe(1);
});

test("an overrun is an error, never a shorter answer", () => {
  const kernel = new FakeKernel((kernel, [{ sequence }]: Sent) => {
    kernel.reply(tell(sequence, 1));
    kernel.queue.push(new SyscallError("recvfrom AF_NETLINK", ENOBUFS));
    kernel.reply(done(sequence));
  });
  expect((outcomeOf(() => dumpAll(kernel, question, () => {})) as SyscallError).errno).toBe(ENOBUFS);
  // What is left of it in the queue is not taken for the answer to the next request.
  const next = new FakeKernel((next, [{ sequence }]: Sent) => next.reply(tell(sequence, 9), ack(sequence)));
  next.queue.push(...kernel.queue);
  const { values, take } = collector();
  sendRequest(next, question, take);
  expect(values).toEqual([9]);
});
