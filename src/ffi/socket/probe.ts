/** One packet of a program, and what comes back to it: a connection, an empty datagram, an echo (tcp(7), udp(7), icmp(7)). */
import { ECHOES, ICMP, TCP, UDP } from "../../net/ip-protocol.ts";
import { EAGAIN, EINPROGRESS } from "../errno.ts";
import { closeFile } from "../files.ts";
import { check, lastErrno, libc } from "../libc.ts";
import { poll, POLLIN, POLLOUT } from "../poll.ts";
import { randomBytes } from "../random.ts";
import { socketAddress } from "./internet-end.ts";
import {
  AF_INET,
  AF_INET6,
  getOption,
  MSG_DONTWAIT,
  openSocket,
  preparing,
  setOption,
  SOCK_DGRAM,
  SOCK_NONBLOCK,
  SOCK_RAW,
  SOCK_STREAM,
} from "./socket.ts";

/** What has come back; undefined for nothing so far. */
export type FlowAnswer = "answered" | { errno: number } | undefined;

export class FlowProbe {
  private constructor(
    readonly fd: number,
    private readonly protocol: number,
    private readonly to: Uint8Array,
    /** The sender's port, or the echo's identifier: two bytes that nobody else's packets have. */
    readonly mark: Uint8Array,
  ) {}

  /** Opens a socket in the namespace that the thread is in; nothing is sent. Its end is told to the other side by RST. */
  static open(protocol: number, source: Uint8Array | undefined, destination: Uint8Array, port: number): FlowProbe {
    const type = protocol === TCP ? SOCK_STREAM : protocol === UDP ? SOCK_DGRAM : SOCK_RAW;
    const family = destination.length === 4 ? AF_INET : AF_INET6;
    const fd = openSocket("socket", family, type | SOCK_NONBLOCK, type === SOCK_RAW ? protocol : 0);
    return preparing(fd, () => {
      if (protocol === TCP) setOption(fd, "SO_LINGER", Int32Array.of(1, 0));
      const own = socketAddress({ address: source ?? new Uint8Array(destination.length), port: 0 });
      check("bind", libc.bind(fd, own, own.length));
      check("getsockname", libc.getsockname(fd, own, Int32Array.of(own.length)));
      const to = socketAddress({ address: destination, port: type === SOCK_RAW ? 0 : port });
      return new FlowProbe(fd, protocol, to, type === SOCK_RAW ? randomBytes(2) : own.slice(2, 4));
    });
  }

  /** What poll(2) tells when something has come back. */
  get awaits(): number {
    return this.protocol === TCP ? POLLOUT : POLLIN;
  }

  send(): FlowAnswer {
    if (libc.connect(this.fd, this.to, this.to.length) < 0) return this.failure();
    if (this.protocol === TCP) return "answered";
    const message = this.protocol === UDP ? new Uint8Array(0) : this.echo();
    return Number(libc.sendto(this.fd, message, message.length, 0, null, 0)) < 0 ? this.failure() : undefined;
  }

  look(): FlowAnswer {
    if (this.protocol !== TCP) return this.received();
    const error = new Int32Array(1);
    if (poll([{ fd: this.fd, events: POLLOUT }], 0).size === 0) return undefined;
    return getOption(this.fd, "SO_ERROR", error) && error[0] !== 0 ? { errno: error[0]! } : "answered";
  }

  close(): void {
    closeFile(this.fd);
  }

  private received(): FlowAnswer {
    const packet = new Uint8Array(128), hasHeader = this.protocol === ICMP;
    const length = Number(libc.recvfrom(this.fd, packet, packet.length, MSG_DONTWAIT, null, null));
    if (length < 0) return this.failure();
    if (this.protocol === UDP) return "answered";
    const at = hasHeader ? (packet[0]! & 0xf) * 4 : 0, [, answer] = ECHOES[this.protocol]!;
    const isOurs = packet[at] === answer && packet[at + 4] === this.mark[0] && packet[at + 5] === this.mark[1];
    return isOurs ? "answered" : undefined;
  }

  private failure(): FlowAnswer {
    const errno = lastErrno();
    return errno === EINPROGRESS || errno === EAGAIN ? undefined : { errno };
  }

  /** The kernel makes the sum for IPv6. */
  private echo(): Uint8Array {
    const [type] = ECHOES[this.protocol]!, [high, low] = this.mark as unknown as [number, number];
    const sum = (type << 8) + (high << 8 | low) + 1, folded = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
    return Uint8Array.of(type, 0, folded >> 8, folded & 0xff, high, low, 0, 1);
  }
}
