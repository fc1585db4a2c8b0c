/** One launcher's connection: messages with descriptors, and who is at the other end (unix(7)). */
import { EAGAIN, EINTR, SyscallError } from "../ffi/errno.ts";
import { closeFile } from "../ffi/files.ts";
import { bind, check, lastErrno, libc } from "../ffi/libc.ts";
import { peerOf, receiveWithDescriptors, sendMessage } from "../ffi/message.ts";
import { poll } from "../ffi/poll.ts";
import { MESSAGE_BYTES } from "./protocol.ts";

const symbols = bind({ accept4: { args: ["i32", "ptr", "ptr", "i32"], returns: "i32" } });

const SOL_SOCKET = 1, SO_RCVTIMEO = 20, SO_SNDTIMEO = 21;
const SOCK_CLOEXEC = 0o2000000;
/** A launcher has its message ready when it connects, and answers at once. */
const PATIENCE_MS = 100;

export interface Received {
  message: Uint8Array;
  /** Of stdin, or none. Two are a mistake, and more of a mistake the kernel closes. */
  descriptors: readonly number[];
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
    const peer = peerOf(this.fd);
    if (peer === undefined) throw new SyscallError("getsockopt", lastErrno());
    return peer.pid;
  }

  /** Undefined when the other end is gone, or says nothing in time. */
  receive(): Received | undefined {
    const { length, descriptors } = receiveWithDescriptors(this.fd, messageBytes, 2);
    return length > 0 ? { message: messageBytes.slice(0, length), descriptors } : undefined;
  }

  /** Answers whether the other end is there to receive it. */
  send(message: Uint8Array, descriptors: readonly number[] = []): boolean {
    return sendMessage(this.fd, message, descriptors) === message.length;
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

const messageBytes = new Uint8Array(MESSAGE_BYTES);
