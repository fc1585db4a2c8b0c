/** A transport with a test at its other end: it reads what was sent, and queues what is to be received. */
import type { Datagram, Transport } from "../../../src/ffi/netlink/transport.ts";
import {
  eachMessage,
  type NetlinkMessage,
  NLM_F_ACK_TLVS,
  NLM_F_CAPPED,
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
  const writer = new Writer();
  writer.start(type, flags, sequence);
  payload(writer);
  writer.finish();
  return writer.bytes.slice(0, writer.length);
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
