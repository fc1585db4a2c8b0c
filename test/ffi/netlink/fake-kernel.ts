/** A transport with a test at its other end: it reads what was sent, and queues what is to be received. */
import { sendBatch } from "../../../src/ffi/netlink/batch.ts";
import { dumpAll, sendRequest } from "../../../src/ffi/netlink/exchange.ts";
import type { NetlinkSocket } from "../../../src/ffi/netlink/socket.ts";
import type { Datagram, Transport } from "../../../src/ffi/netlink/transport.ts";
import {
  eachMessage,
  type NetlinkMessage,
  NLM_F_ACK_TLVS,
  NLM_F_CAPPED,
  NLM_F_DUMP,
  NLM_F_DUMP_INTR,
  NLM_F_MULTI,
  NLMSG_DONE,
  NLMSG_ERROR,
  Writer,
} from "../../../src/ffi/netlink/wire.ts";

/** The messages of one datagram. */
export type Sent = [NetlinkMessage, ...NetlinkMessage[]];

export class FakeKernel implements Transport {
  readonly queue: (Datagram | Error)[] = [];
  readonly sent: Sent[] = [];
  /** How long each `receive` was willing to wait. */
  readonly patience: (number | undefined)[] = [];

  /** `answer` is called with the messages of each datagram that was sent. */
  constructor(private readonly answer: (kernel: FakeKernel, messages: Sent) => void = () => {}) {}

  send(bytes: Uint8Array): void {
    const messages: NetlinkMessage[] = [];
    eachMessage(bytes.slice(), (message) => void messages.push(message));
    this.sent.push(messages as Sent);
    this.answer(this, messages as Sent);
  }

  receive(timeoutMs?: number): Datagram | undefined {
    this.patience.push(timeoutMs);
    const next = this.queue.shift();
    if (next instanceof Error) throw next;
    if (next === undefined && timeoutMs === undefined) throw new Error("waits for an answer that does not come");
    return next;
  }

  /** Queues the messages as one datagram. */
  reply(...messages: Uint8Array[]): void {
    this.replyFrom(0, ...messages);
  }

  replyFrom(sender: number, ...messages: Uint8Array[]): void {
    const bytes = Uint8Array.from(messages.flatMap((message) => [...message]));
    this.queue.push({ bytes, sentBytes: bytes.length, sender });
  }
}

export function message(type: number, sequence: number, flags = 0, payload: (writer: Writer) => void = () => {}) {
  return bytesBy((writer) => {
    writer.start(type, flags, sequence);
    payload(writer);
    writer.finish();
  });
}

/** The kernel's answer to one request: struct nlmsgerr, with an extended acknowledgement where it has something to say. */
export function ack(sequence: number, errno = 0, { text = "", offset = 0 } = {}): Uint8Array {
  const isExtended = text !== "" || offset !== 0;
  return message(NLMSG_ERROR, sequence, isExtended ? NLM_F_CAPPED | NLM_F_ACK_TLVS : 0, (writer) => {
    writer.u32(-errno >>> 0).u32(0).u32(0).u32(0).u32(0);
    if (text !== "") writer.attribute(1, () => void writer.text(text));
    if (offset !== 0) writer.attribute(2, () => void writer.u32(offset));
  });
}

export function done(sequence: number, flags = 0, errno = 0): Uint8Array {
  return message(NLMSG_DONE, sequence, flags, (writer) => void writer.u32(-errno >>> 0));
}

/** A socket whose kernel is the fake one. It is no file, so what asks by ioctl cannot use it. */
export function socketTo(kernel: FakeKernel): NetlinkSocket {
  return {
    fd: -1,
    opened: "raw",
    request: (request, onReply) => sendRequest(kernel, request, onReply),
    dump: (request, onReply, onRestart) => dumpAll(kernel, request, onReply, onRestart),
    transact: (what, write) => sendBatch(kernel, what, write),
    closesSlowly: false,
    isQuiet: () => kernel.queue.length === 0,
    close() {},
  };
}

/** A body: its fixed header, then what `attributes` writes. */
export type Body = (writer: Writer) => void;

/**
 * A kernel that does what it is asked, and answers each question with these bodies, each of the type. The first dump is
 * interrupted at its end, and has to be asked for again.
 */
export function answering(type: number, ...bodies: Body[]): FakeKernel {
  return answeringEach(type, () => bodies);
}

/**
 * The same with bodies for each question, or the errno that refuses it. Without a type, each answer is of that which
 * follows from the question's, as RTM_NEWLINK from RTM_GETLINK.
 */
export function answeringEach(
  type: number | undefined,
  answerTo: (question: NetlinkMessage) => Body[] | number,
): FakeKernel {
  let interruption = NLM_F_DUMP_INTR;
  return new FakeKernel((kernel, [question]) => {
    const { sequence, flags } = question, isDump = (flags & NLM_F_DUMP) === NLM_F_DUMP, answer = answerTo(question);
    if (typeof answer === "number") return kernel.reply(ack(sequence, answer));
    const answers = answer.map((body) =>
      message(type ?? question.type - 2, sequence, isDump ? NLM_F_MULTI : 0, body)
    );
    kernel.reply(...answers, isDump ? done(sequence, NLM_F_MULTI | interruption) : ack(sequence));
    if (isDump) interruption = 0;
  });
}

/** struct and attributes in hexadecimal digits, as `sentAs` shows them. */
export function bodyOf(header: string, attributes: Record<number, string> = {}): Body {
  return (writer) => {
    writer.raw(Uint8Array.fromHex(header.replaceAll(" ", "")));
    for (const [type, value] of Object.entries(attributes)) {
      writer.attribute(Number(type), () => void writer.raw(Uint8Array.fromHex(value)));
    }
  };
}

/** A kernel that refuses everything. */
export function refusing(errno: number): FakeKernel {
  return new FakeKernel((kernel, [{ sequence }]) => kernel.reply(ack(sequence, errno)));
}

/**
 * The message that was sent last, a line each: `type 20, flags 0x605`, the fixed header in words of four bytes, and
 * attributes such as `1: 0a000001`, those in a nest behind its number: `18.1: 76657468`.
 */
export function sentAs(kernel: FakeKernel, headerBytes: number): string[] {
  const [{ type, flags, payload }] = kernel.sent.at(-1)!;
  const words = payload.subarray(0, headerBytes).toHex().match(/.{8}/g)!.join(" ");
  return [`type ${type}, flags 0x${flags.toString(16)}`, words, ...attributesIn(payload.subarray(headerBytes), "")];
}

/** What `work` sends last to a kernel that does all it is asked, in the same lines. */
export function sentBy(work: (socket: NetlinkSocket) => void, headerBytes: number): string[] {
  const kernel = answering(0);
  work(socketTo(kernel));
  return sentAs(kernel, headerBytes);
}

/** The same lines of attributes alone. */
export function attributesBy(write: Body): string[] {
  return attributesIn(bytesBy(write), "");
}

/** What it writes. */
export function bytesBy(write: Body): Uint8Array {
  const writer = new Writer();
  write(writer);
  return writer.bytes.slice(0, writer.length);
}

const NESTED = 0x8000;

function attributesIn(bytes: Uint8Array, outside: string): string[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), lines: string[] = [];
  for (let at = 0; at < bytes.length; at += (view.getUint16(at, true) + 3) & ~3) {
    const type = view.getUint16(at + 2, true), payload = bytes.subarray(at + 4, at + view.getUint16(at, true));
    const name = `${outside}${type & ~NESTED}`;
    lines.push(...(type & NESTED) !== 0 ? attributesIn(payload, `${name}.`) : [`${name}: ${payload.toHex()}`]);
  }
  return lines;
}
