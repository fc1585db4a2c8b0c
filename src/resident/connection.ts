/** One launcher's connection: messages with descriptors, and who is at the other end (unix(7), cmsg(3)). */
import { EAGAIN, EINTR, SyscallError } from "../ffi/errno.ts";
import { closeFile } from "../ffi/files.ts";
import { bind, check, lastErrno, libc } from "../ffi/libc.ts";
import { FFIType, ptr } from "../ffi/native.ts";
import { poll } from "../ffi/poll.ts";
import { MESSAGE_BYTES } from "./protocol.ts";

const symbols = bind({
  accept4: { args: ["i32", "ptr", "ptr", "i32"], returns: "i32" },
  recvmsg: { args: ["i32", "ptr", "i32"], returns: FFIType.i64_fast },
  sendmsg: { args: ["i32", "ptr", "i32"], returns: FFIType.i64_fast },
});

const SOL_SOCKET = 1, SO_PEERCRED = 17, SO_RCVTIMEO = 20, SO_SNDTIMEO = 21, SCM_RIGHTS = 1;
const SOCK_CLOEXEC = 0o2000000, MSG_CMSG_CLOEXEC = 0x40000000, MSG_NOSIGNAL = 0x4000;
const CONTROL_HEADER_BYTES = 16;
/** A launcher has its message ready when it connects, and answers at once. */
const PATIENCE_MS = 100;

export interface Received {
  message: Uint8Array;
  descriptors: number[];
}

export class Connection {
  private constructor(readonly fd: number) {}

  /** Undefined when another worker was faster. */
  static accept(listening: number): Connection | undefined {
    const fd = symbols.accept4(listening, null, null, SOCK_CLOEXEC);
    if (fd < 0) {
      if (lastErrno() === EAGAIN || lastErrno() === EINTR) return undefined;
      throw new SyscallError("accept4", lastErrno());
    }
    for (const option of [SO_RCVTIMEO, SO_SNDTIMEO]) {
      check("setsockopt", libc.setsockopt(fd, SOL_SOCKET, option, patience, patience.length));
    }
    return new Connection(fd);
  }

  get peerPid(): number {
    const credentials = new Int32Array(3), length = Int32Array.of(12);
    check("getsockopt", libc.getsockopt(this.fd, SOL_SOCKET, SO_PEERCRED, credentials, length));
    return credentials[0]!;
  }

  /** Undefined when the other end is gone, or says nothing in time. */
  receive(): Received | undefined {
    fill(receiving, messageBytes, MESSAGE_BYTES, 64);
    const length = Number(symbols.recvmsg(this.fd, receiving.header, MSG_CMSG_CLOEXEC));
    if (length <= 0) return undefined;
    return { message: messageBytes.slice(0, length), descriptors: descriptorsIn(receiving) };
  }

  /** Answers whether the other end is there to receive it. */
  send(message: Uint8Array, descriptors: readonly number[] = []): boolean {
    fill(sending, message, message.length, descriptors.length === 0 ? 0 : CONTROL_HEADER_BYTES + 8);
    sending.control.setBigUint64(0, BigInt(CONTROL_HEADER_BYTES + 4 * descriptors.length), true);
    sending.control.setInt32(8, SOL_SOCKET, true);
    sending.control.setInt32(12, SCM_RIGHTS, true);
    descriptors.forEach((fd, index) => sending.control.setInt32(CONTROL_HEADER_BYTES + 4 * index, fd, true));
    return Number(symbols.sendmsg(this.fd, sending.header, MSG_NOSIGNAL)) === message.length;
  }

  /** The other end has ended. */
  get isGone(): boolean {
    return poll([{ fd: this.fd, events: 0 }], 0).has(this.fd);
  }

  close(): void {
    closeFile(this.fd);
  }
}

/** struct timeval */
const patience = new Uint8Array(new BigInt64Array([0n, BigInt(PATIENCE_MS * 1000)]).buffer);

/** struct msghdr, its struct iovec, and the control message. */
interface MessageHeader {
  header: Uint8Array;
  part: BigUint64Array;
  control: DataView<ArrayBuffer>;
}

function messageHeader(): MessageHeader {
  return { header: new Uint8Array(56), part: new BigUint64Array(2), control: new DataView(new ArrayBuffer(64)) };
}

const receiving = messageHeader(), sending = messageHeader();
const messageBytes = new Uint8Array(MESSAGE_BYTES);

function fill(
  { header, part, control }: MessageHeader,
  bytes: Uint8Array,
  length: number,
  controlLength: number,
): void {
  part[0] = BigInt(ptr(bytes));
  part[1] = BigInt(length);
  const fields = new BigUint64Array(header.buffer);
  fields.set([0n, 0n, BigInt(ptr(part)), 1n, controlLength === 0 ? 0n : BigInt(ptr(new Uint8Array(control.buffer)))]);
  fields[5] = BigInt(controlLength);
  fields[6] = 0n;
}

function descriptorsIn({ header, control }: MessageHeader): number[] {
  const length = Number(new BigUint64Array(header.buffer)[5]);
  if (length < CONTROL_HEADER_BYTES || control.getInt32(12, true) !== SCM_RIGHTS) return [];
  const end = Math.min(length, Number(control.getBigUint64(0, true)));
  const found: number[] = [];
  for (let at = CONTROL_HEADER_BYTES; at + 4 <= end; at += 4) found.push(control.getInt32(at, true));
  return found;
}
