/** One launcher's connection: messages with descriptors, and who is at the other end (unix(7)). */
import { ESRCH, SyscallError } from "../../ffi/errno.ts";
import { closeFile } from "../../ffi/files.ts";
import { poll, POLLIN, POLLOUT } from "../../ffi/poll.ts";
import { receiveSender, receiveWithDescriptors, sendMessage } from "../../ffi/socket/message.ts";
import { Peer } from "../../ffi/socket/peer.ts";
import { setOption, SOCK_NONBLOCK } from "../../ffi/socket/socket.ts";
import { acceptNext } from "../../ffi/socket/unix.ts";
import { MESSAGE_BYTES, plainMessage, PROVE } from "./protocol.ts";

/** A launcher has its message ready when it connects, and answers at once. */
const PATIENCE_MS = 100;

export interface Call {
  message: Uint8Array;
  /** Stdin, or nothing. Two are a mistake of the launcher; the kernel closes what is more than that. */
  descriptors: readonly number[];
}

export class Connection {
  private caller: Peer | undefined;

  private constructor(private readonly fd: number) {}

  /** Returns undefined when another worker was faster. */
  static accept(listening: number): Connection | undefined {
    const fd = acceptNext(listening, SOCK_NONBLOCK);
    return fd === undefined ? undefined : new Connection(fd);
  }

  /** Throws SyscallError when the process has ended, is hidden, or does not prove that it is the one that connected. */
  get peer(): Peer {
    if (this.caller !== undefined) return this.caller;
    const peer = Peer.of(this.fd);
    if (!peer.isHeld && !this.isSentBy(peer.pid)) {
      peer.close();
      throw new SyscallError("recvmsg", ESRCH);
    }
    return this.caller = peer;
  }

  /**
   * Whether the next message comes from the process. The kernel looks at the sender when it sends. So whatever can be read
   * of the process afterwards, through what was opened before, is the sender's, and no later process's with its number.
   */
  private isSentBy(pid: number): boolean {
    setOption(this.fd, "SO_PASSCRED", Int32Array.of(1));
    return this.send(plainMessage(PROVE)) && this.becomes(POLLIN) && receiveSender(this.fd) === pid;
  }

  /** Returns undefined when the other end is gone, or says nothing in time. */
  receive(): Call | undefined {
    const receive = () => receiveWithDescriptors(this.fd, messageBytes, 2);
    let { length, descriptors } = receive();
    if (length < 0 && this.becomes(POLLIN)) ({ length, descriptors } = receive());
    return length > 0 ? { message: messageBytes.slice(0, length), descriptors } : undefined;
  }

  /** Returns whether the other end is there to receive it. */
  send(message: Uint8Array, descriptors: readonly number[] = []): boolean {
    const send = () => sendMessage(this.fd, message, descriptors) === message.length;
    return send() || this.becomes(POLLOUT) && send();
  }

  private becomes(events: number): boolean {
    return poll([{ fd: this.fd, events }], PATIENCE_MS).has(this.fd);
  }

  /** The other end has ended. */
  get isGone(): boolean {
    return poll([{ fd: this.fd, events: 0 }], 0).has(this.fd);
  }

  close(): void {
    this.caller?.close();
    closeFile(this.fd);
  }
}

const messageBytes = new Uint8Array(MESSAGE_BYTES);
