/**
 * One request and the kernel's whole answer (netlink(7)).
 *
 * A reply counts only if the kernel sent it and it carries our sequence number. A dump that the kernel calls
 * interrupted is asked for again. An overrun is an error, never a shorter answer.
 */
import { EINTR } from "../errno.ts";
import { type AnyTable, attributeAt } from "./attrs.ts";
import { ackStatus, extendedAck, NetlinkError } from "./netlink-error.ts";
import { receiveFromKernel, type Transport } from "./transport.ts";
import {
  eachMessage,
  HEADER_BYTES,
  type NetlinkMessage,
  NLM_F_ACK,
  NLM_F_DUMP,
  NLM_F_DUMP_INTR,
  NLM_F_REQUEST,
  NLMSG_DONE,
  NLMSG_ERROR,
  Writer,
} from "./wire.ts";

/** All sockets share the bytes that were sent last, and their numbers: requests are strictly one after another. */
export const writer = new Writer();
let sequence = 0;

export function nextSequence(): number {
  return ++sequence;
}

/** When a hundred calls run at once, each commits several times while others list their rules. */
const DUMP_ATTEMPTS = 500;

export interface NetlinkRequest {
  /** How the request is called in errors: `RTM_NEWLINK eth0`. */
  what: string;
  type: number;
  flags?: number;
  /** Writes fixed header and attributes. */
  body: (writer: Writer) => void;
  /** For naming the attribute the kernel objects to: its table, and the size of the fixed header before it. */
  table?: AnyTable;
  fixedBytes?: number;
  /** How often a dump is asked for, until the kernel is not interrupted. */
  attempts?: number;
  /** The kernel takes it in the same call, so that no death comes between the two. Only the first is answered. */
  together?: NetlinkRequest;
}

/** Sends one request and waits for its ACK; `onReply` gets the messages that come before it. */
export function sendRequest(
  transport: Transport,
  request: NetlinkRequest,
  onReply?: (message: NetlinkMessage) => void,
): void {
  exchange(transport, request, NLM_F_ACK, onReply);
}

/** Asks for all objects. When the kernel was interrupted, calls `onRestart`, and `onReply` again from the start. */
export function dumpAll(
  transport: Transport,
  request: NetlinkRequest,
  onReply: (message: NetlinkMessage) => void,
  onRestart?: () => void,
): void {
  const { attempts = DUMP_ATTEMPTS } = request;
  for (let attempt = 1; exchange(transport, request, NLM_F_DUMP, onReply); attempt++) {
    if (attempt === attempts) {
      throw new NetlinkError(request.what, EINTR, "the dump was interrupted every time");
    }
    onRestart?.();
  }
}

/** Sends, and reads until the ACK or the end of the dump. Returns whether the kernel called it interrupted. */
function exchange(
  transport: Transport,
  request: NetlinkRequest,
  flags: number,
  onReply?: (message: NetlinkMessage) => void,
): boolean {
  const ours = nextSequence();
  write(writer.reset(), request, flags, ours);
  if (request.together !== undefined) write(writer, request.together, 0, nextSequence());
  transport.send(writer.bytes.subarray(0, writer.length), request.what);
  let finished = false, interrupted = false;
  while (!finished) {
    eachMessage(receiveFromKernel(transport)!, (message) => {
      if (message.sequence !== ours || finished) return;
      if ((message.flags & NLM_F_DUMP_INTR) !== 0) interrupted = true;
      if (message.type === NLMSG_ERROR || message.type === NLMSG_DONE) {
        finished = true;
        throwRefusal(request, message);
      } else {
        onReply?.(message);
      }
    });
  }
  return interrupted;
}

function write(writer: Writer, { type, flags = 0, body }: NetlinkRequest, more: number, number: number): void {
  writer.start(type, NLM_F_REQUEST | more | flags, number);
  body(writer);
  writer.finish();
}

/** Does nothing when the message says that all went well. */
function throwRefusal(request: NetlinkRequest, message: NetlinkMessage): void {
  const errno = -ackStatus(message);
  if (message.type === NLMSG_DONE) {
    if (errno > 0) throw new NetlinkError(request.what, errno);
  } else if (errno !== 0) {
    const { text, offset } = extendedAck(message);
    throw new NetlinkError(request.what, errno, text, attributeOf(request, offset));
  }
}

/** The name of the attribute `offset` bytes into the request that was sent last. */
function attributeOf({ table, fixedBytes = 0 }: NetlinkRequest, offset: number): string | undefined {
  if (offset === 0 || table === undefined) return undefined;
  const start = HEADER_BYTES + fixedBytes;
  return attributeAt(table, writer.bytes.subarray(start, writer.length), offset - start);
}
