/** UDP from an address that a link has: the kernel finds the way, and tells nobody that the port is closed (udp(7)). */
import { closeFile } from "../files.ts";
import { check, cString, libc } from "../libc.ts";
import { type FilterRule, setFilter } from "./filter.ts";
import { type InternetEnd, socketAddress } from "./internet-end.ts";
import { AF_INET, AF_INET6, openSocket, preparing, setOption, SOCK_DGRAM, SOCK_NONBLOCK } from "./socket.ts";

const LONGEST_BYTES = 65536;

const SOURCE_AT = 8, SOURCE_AT_V4 = 4;

let buffer: Uint8Array | undefined;
const sender = new Uint8Array(28), senderLength = new Int32Array(1);

export class UdpSocket {
  private constructor(readonly fd: number) {}

  /** Opens a socket in the namespace that the thread is in. It sends only over the link, whatever the routes say. */
  static open(from: InternetEnd, ifName: string): UdpSocket {
    const family = from.address.length === 4 ? AF_INET : AF_INET6;
    return preparing(openSocket("socket", family, SOCK_DGRAM | SOCK_NONBLOCK), (fd) => {
      setOption(fd, "SO_REUSEADDR", Int32Array.of(1));
      setOption(fd, "SO_BINDTODEVICE", cString(ifName), ifName);
      const address = socketAddress(from);
      check("bind", libc.bind(fd, address, address.length), `port ${from.port}`);
      return new UdpSocket(fd);
    });
  }

  send(to: InternetEnd, bytes: Uint8Array): void {
    const address = socketAddress(to);
    check("sendto", Number(libc.sendto(this.fd, bytes, bytes.length, 0, address, address.length)));
  }

  /** From now on the socket gets only what the rules keep. Their places are counted from the header of UDP. */
  setFilter(rules: readonly FilterRule[]): void {
    setFilter(this.fd, rules);
  }

  /** Returns undefined when nothing has arrived. `from` is the sender's address. */
  receive(): { bytes: Uint8Array; from: Uint8Array } | undefined {
    buffer ??= new Uint8Array(LONGEST_BYTES);
    senderLength[0] = sender.length;
    const length = Number(libc.recvfrom(this.fd, buffer, buffer.length, 0, sender, senderLength));
    if (length < 0) return undefined;
    const isV4 = sender[0] === AF_INET;
    const from = isV4 ? sender.slice(SOURCE_AT_V4, SOURCE_AT_V4 + 4) : sender.slice(SOURCE_AT, SOURCE_AT + 16);
    return { bytes: buffer.slice(0, length), from };
  }

  close(): void {
    closeFile(this.fd);
  }
}
