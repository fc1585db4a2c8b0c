/**
 * Netlink sockets: opening one, sending requests, and getting the kernel's whole answer.
 *
 * All waiting and all retrying of this program's netlink traffic is here. A reply counts only if the kernel itself
 * sent it (port 0) and it carries our sequence number; a dump the kernel calls interrupted is asked for again; an
 * overrun is an error, never a shorter answer. See netlink(7).
 *
 * Sockets are opened through libnl-3 where the host has it and through plain socket(2) where not;
 * PATCHBAY_NETLINK=libnl|raw forces one.
 */
import { EAGAIN, EINTR, EMSGSIZE, ENOBUFS, errnoText, isErrno, SyscallError } from "../errno.ts";
import { bind, check, lastErrno, libc, retrying } from "../libc.ts";
import { type AnyTable, attributeAt } from "./attrs.ts";
import {
  eachAttribute,
  eachMessage,
  HEADER_BYTES,
  type Message,
  NLM_F_ACK,
  NLM_F_ACK_TLVS,
  NLM_F_CAPPED,
  NLM_F_DUMP,
  NLM_F_DUMP_INTR,
  NLM_F_REQUEST,
  NLMSG_DONE,
  NLMSG_ERROR,
  Writer,
} from "./wire.ts";

export const NETLINK_ROUTE = 0;
export const NETLINK_NETFILTER = 12;

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const SOL_NETLINK = 270;
const NETLINK_ADD_MEMBERSHIP = 1;
const NETLINK_CAP_ACK = 10;
const NETLINK_EXT_ACK = 11;
const NETLINK_GET_STRICT_CHK = 12;
const SOL_SOCKET = 1;
const SO_SNDBUF = 7;
const SO_RCVBUF = 8;
const SO_SNDBUFFORCE = 32;
const NLMSGERR_ATTR_MSG = 1;
const NLMSGERR_ATTR_OFFS = 2;
const MSG_DONTWAIT = 0x40;
const DUMP_ATTEMPTS = 5;
/** Twice what the kernel puts into one datagram of a dump. A longer one is an error, never a shorter answer. */
const RECEIVE_BYTES = 64 * 1024;
/** What fits into the send buffer that libnl asks for, which is smaller than the kernel's default. */
const SEND_BYTES = 32 * 1024;

/** What the kernel said no to, and why, in its own words where it gave any. */
export class NetlinkError extends Error {
  constructor(readonly request: string, readonly errno: number, readonly text = "", readonly attribute = "") {
    const hint = [text, attribute && `attribute ${attribute}`].filter(Boolean).join(", ");
    super(`${request}: ${errnoText(errno)}${hint === "" ? "" : ` (${hint})`}`);
    this.name = "NetlinkError";
  }
}

export function isNetlinkError(error: unknown, ...errnos: number[]): error is NetlinkError {
  return error instanceof NetlinkError && (errnos.length === 0 || errnos.includes(error.errno));
}

export interface Request {
  /** How the request is called in errors: `RTM_NEWLINK eth0`. */
  what: string;
  type: number;
  flags?: number;
  /** Writes fixed header and attributes. */
  body: (writer: Writer) => void;
  /** For naming the attribute the kernel objects to: its table, and the size of the fixed header before it. */
  table?: AnyTable;
  fixedBytes?: number;
}

export interface NetlinkSocket {
  readonly fd: number;
  readonly opened: "libnl" | "raw";
  /** Sends one request and waits for its ACK; `onReply` gets the messages that come before it. */
  request(request: Request, onReply?: (message: Message) => void): void;
  /** Asks for all objects; `onReply` may be called again from the start when the kernel had to interrupt. */
  dump(request: Request, onReply: (message: Message) => void, onRestart?: () => void): void;
  /**
   * Sends a netfilter batch, which its first message opens. `next` gives each message its sequence number, and `write`
   * answers that of the one that asks for an ACK. Answers what the kernel refused, in order; nothing when it did all.
   */
  transact(what: string, write: (writer: Writer, next: () => number) => number): BatchError[];
  /** Joins a multicast group. Needs a socket of its own: see `openNetlink`. */
  join(group: number): void;
  /** Waits for one datagram of notifications; false when none came in time. */
  receive(timeoutMs: number, onMessage: (message: Message) => void): boolean;
  /** Set by who deletes nftables objects: the kernel lets the last to close such a socket wait for RCU, 6 to 14 ms. */
  closesSlowly: boolean;
  close(): void;
}

export interface BatchError {
  /** Counts the messages of the batch, the opening one included. */
  index: number;
  errno: number;
  text: string;
  /** Of the attribute the kernel objects to, from the start of the message; 0 when it named none. */
  offset: number;
}

// Requests are strictly one after another, so one pair of buffers serves every socket.
const writer = new Writer();
let receiveBuffer: Uint8Array | undefined;
let sequence = 0;

function openDescriptor(protocol: number): { fd: number; opened: "libnl" | "raw" } {
  const forced = process.env.PATCHBAY_NETLINK;
  if (forced !== "raw") {
    const fd = openThroughLibnl(protocol);
    if (fd !== undefined) return { fd, opened: "libnl" };
    if (forced === "libnl") throw new Error("PATCHBAY_NETLINK=libnl, but libnl-3.so.200 cannot be loaded");
  }
  const fd = check("socket AF_NETLINK", libc.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  const address = new Uint8Array(12); // struct sockaddr_nl: family u16, pad u16, port u32, groups u32
  address[0] = AF_NETLINK;
  check("bind AF_NETLINK", libc.bind(fd, address, address.length));
  return { fd, opened: "raw" };
}

let libnl: ReturnType<typeof bindLibnl> | null | undefined;

function bindLibnl() {
  return bind({
    nl_socket_alloc: { args: [], returns: "ptr" },
    nl_connect: { args: ["ptr", "i32"], returns: "i32" },
    nl_socket_get_fd: { args: ["ptr"], returns: "i32" },
    nl_socket_free: { args: ["ptr"], returns: "void" },
  }, "libnl-3.so.200");
}

function openThroughLibnl(protocol: number): number | undefined {
  if (libnl === undefined) {
    try {
      libnl = bindLibnl();
    } catch {
      libnl = null;
    }
  }
  if (libnl === null) return undefined;
  const handle = libnl.nl_socket_alloc();
  if (handle === null) return undefined;
  if (libnl.nl_connect(handle, protocol) < 0) {
    libnl.nl_socket_free(handle);
    return undefined;
  }
  return libnl.nl_socket_get_fd(handle);
}

/** Opens a socket in the namespace the thread is in. It keeps that namespace when the thread leaves. */
export function openNetlink(protocol: number): NetlinkSocket {
  const { fd, opened } = openDescriptor(protocol);
  const on = new Uint8Array([1, 0, 0, 0]);
  // Old kernels lack these; they only make answers shorter and errors clearer.
  libc.setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, on, 4);
  libc.setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, on, 4);
  if (protocol === NETLINK_ROUTE) libc.setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, on, 4);
  const sender = new Uint8Array(12);
  const senderView = new DataView(sender.buffer);
  const senderLength = new Uint8Array(4);

  /** One datagram of the kernel's, or undefined when `flags` say not to wait and there is none. */
  function receiveDatagram(flags = 0): Uint8Array | undefined {
    receiveBuffer ??= new Uint8Array(RECEIVE_BYTES);
    for (;;) {
      senderLength[0] = sender.length;
      const MSG_TRUNC = 0x20;
      const length = Number(
        libc.recvfrom(fd, receiveBuffer, receiveBuffer.length, flags | MSG_TRUNC, sender, senderLength),
      );
      if (length < 0) {
        const errno = lastErrno();
        if (errno === EINTR) continue;
        if (errno === EAGAIN) return undefined;
        throw new SyscallError("recvfrom AF_NETLINK", errno);
      }
      // Anyone with a socket in the namespace can send to ours; only port 0 is the kernel.
      if (senderView.getUint32(4, true) !== 0) continue;
      if (length > receiveBuffer.length) throw new SyscallError("recvfrom AF_NETLINK", EMSGSIZE, `${length} bytes`);
      return receiveBuffer.subarray(0, length);
    }
  }

  function send(what: string): void {
    retrying("sendto AF_NETLINK", () => Number(libc.sendto(fd, writer.bytes, writer.length, 0, null, 0)), what);
  }

  function failure(request: Request, errno: number, message: Message): NetlinkError {
    const { text, offset } = extendedAck(message);
    let attribute: string | undefined;
    if (offset > 0 && request.table !== undefined) {
      const start = HEADER_BYTES + (request.fixedBytes ?? 0);
      attribute = attributeAt(request.table, writer.bytes.subarray(start, writer.length), offset - start);
    }
    return new NetlinkError(request.what, errno, text, attribute);
  }

  /** Sends, and reads until the ACK or the end of the dump. Answers whether the kernel called it interrupted. */
  function exchange(request: Request, flags: number, onReply?: (message: Message) => void): boolean {
    const ours = ++sequence;
    writer.reset().start(request.type, NLM_F_REQUEST | flags | (request.flags ?? 0), ours);
    request.body(writer);
    writer.finish();
    send(request.what);
    let finished = false, interrupted = false;
    while (!finished) {
      eachMessage(receiveDatagram()!, (message) => {
        if (message.sequence !== ours || finished) return;
        if ((message.flags & NLM_F_DUMP_INTR) !== 0) interrupted = true;
        if (message.type === NLMSG_ERROR) {
          finished = true;
          const errno = -new DataView(message.payload.buffer, message.payload.byteOffset).getInt32(0, true);
          if (errno !== 0) throw failure(request, errno, message);
        } else if (message.type === NLMSG_DONE) {
          finished = true;
          const status = message.payload.length >= 4
            ? new DataView(message.payload.buffer, message.payload.byteOffset).getInt32(0, true)
            : 0;
          if (status < 0) throw new NetlinkError(request.what, -status);
        } else {
          onReply?.(message);
        }
      });
    }
    return interrupted;
  }

  return {
    fd,
    opened,
    request: (request, onReply) => void exchange(request, NLM_F_ACK, onReply),
    dump(request, onReply, onRestart) {
      for (let attempt = 1;; attempt++) {
        if (!exchange(request, NLM_F_DUMP, onReply)) return;
        if (attempt === DUMP_ATTEMPTS) throw new NetlinkError(request.what, 4, "the dump was interrupted every time");
        onRestart?.();
      }
    },
    transact(what, write) {
      const first = sequence + 1;
      writer.reset();
      const acknowledged = write(writer, () => ++sequence) - first, last = sequence - first;
      if (writer.length > SEND_BYTES) raiseSendBuffer(fd, writer.length);
      send(what);
      const errors: BatchError[] = [];
      // The kernel handles every message whatever happened to the ones before, unless it refuses the batch as a whole,
      // and has put all answers into our queue before sendto returned.
      let finished = false, flags = 0;
      while (!finished) {
        let datagram: Uint8Array | undefined;
        try {
          datagram = receiveDatagram(flags);
        } catch (error) {
          // More refusals than the queue holds, which the kernel says once. The queue has to be emptied, or it would have
          // no room for later answers.
          if (!isErrno(error, ENOBUFS) || flags !== 0) throw error;
          flags = MSG_DONTWAIT;
          continue;
        }
        // Something was lost, but a refusal or the ACK of the last message says how it ended all the same.
        if (datagram === undefined) {
          if (errors.length === 0) throw new SyscallError("recvfrom AF_NETLINK", ENOBUFS, what);
          return errors;
        }
        eachMessage(datagram, (message) => {
          const index = message.sequence - first;
          if (message.type !== NLMSG_ERROR || index < 0 || index > last) return;
          const errno = -new DataView(message.payload.buffer, message.payload.byteOffset).getInt32(0, true);
          if (errno !== 0) errors.push({ index, errno, ...extendedAck(message) });
          if (index === 0 || (index === acknowledged && (flags === 0 || errno === 0))) finished = true;
        });
      }
      return errors;
    },
    join(group) {
      const value = new Uint8Array(4);
      new DataView(value.buffer).setUint32(0, group, true);
      check("setsockopt NETLINK_ADD_MEMBERSHIP", libc.setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, value, 4));
      new DataView(value.buffer).setUint32(0, 1 << 20, true);
      libc.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, value, 4);
    },
    receive(timeoutMs, onMessage) {
      const pollfd = new Uint8Array(8);
      const view = new DataView(pollfd.buffer);
      view.setInt32(0, fd, true);
      view.setInt16(4, 1, true); // POLLIN
      if (retrying("poll", () => libc.poll(pollfd, 1, timeoutMs)) === 0) return false;
      const datagram = receiveDatagram(MSG_DONTWAIT);
      if (datagram !== undefined) eachMessage(datagram, onMessage);
      return true;
    },
    closesSlowly: false,
    close() {
      if (this.closesSlowly) (require("../reaper.ts") as typeof import("../reaper.ts")).closeBehind(fd);
      else libc.close(fd);
    },
  };
}

/** A datagram may not be larger than the socket's send buffer, of which the kernel counts twice what was asked for. */
function raiseSendBuffer(fd: number, bytes: number): void {
  const value = new Uint8Array(4);
  new DataView(value.buffer).setUint32(0, bytes, true);
  if (libc.setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, value, 4) < 0) {
    libc.setsockopt(fd, SOL_SOCKET, SO_SNDBUF, value, 4);
  }
}

function extendedAck(message: Message): { text: string; offset: number } {
  let text = "", offset = 0;
  if ((message.flags & NLM_F_ACK_TLVS) !== 0) {
    // struct nlmsgerr: error s32, then the request's header, and its payload unless capped.
    const view = new DataView(message.payload.buffer, message.payload.byteOffset);
    const echoed = (message.flags & NLM_F_CAPPED) !== 0 ? HEADER_BYTES : view.getUint32(4, true);
    eachAttribute(message.payload.subarray(4 + ((echoed + 3) & ~3)), (type, payload) => {
      if (type === NLMSGERR_ATTR_MSG) text = new TextDecoder().decode(payload.subarray(0, -1));
      if (type === NLMSGERR_ATTR_OFFS) offset = new DataView(payload.buffer, payload.byteOffset).getUint32(0, true);
    });
  }
  return { text, offset };
}
