/**
 * Enough of SCTP to show that its packets get through (RFC 9260): an INIT, and an INIT ACK whose cookie is a text. Uses
 * raw sockets (raw(7)), so the kernel need not support the protocol.
 *
 * Connection tracking takes only packets whose checksum and tag are right, and so does the receiver here.
 */
import { protocolNumbers } from "../../src/interop/iptables/rule.ts";
import { check, fromUtf8, libc, utf8 } from "../../src/ffi/libc.ts";
import { formatAddress, parseAddress } from "../../src/net/address.ts";

const AF_INET = 2, AF_INET6 = 10, SOCK_RAW = 3, MSG_DONTWAIT = 0x40;
const INIT = 1, INIT_ACK = 2, STATE_COOKIE = 7;
const HEADER_BYTES = 12, CHUNK_BYTES = 20, PARAMETER_BYTES = 4;
const POLL_MS = 10;

interface Packet {
  source: number;
  destination: number;
  verificationTag: number;
  chunk: typeof INIT | typeof INIT_ACK;
  /** The sender's tag, which the other must send back. */
  tag: number;
  cookie?: string;
}

/** Answers each INIT for the port. */
export function serveSctp(port: number, cookieFor: (address: string) => string): void {
  for (const family of [4, 6] as const) {
    const socket = openRaw(family, ({ source, destination, chunk, tag }, from) => {
      if (destination !== port || chunk !== INIT) return;
      socket.send(from, {
        source: port,
        destination: source,
        verificationTag: tag,
        chunk: INIT_ACK,
        tag: randomTag(),
        cookie: cookieFor(from),
      });
    });
  }
}

/** Tells the cookie when it comes, from where it is expected. */
export function askSctp(address: string, port: number, sourcePort: number, tell: (cookie: string) => void): void {
  const tag = randomTag(), source = sourcePort || 1024 + randomTag() % 60_000;
  const socket = openRaw(address.includes(":") ? 6 : 4, (packet, from) => {
    if (packet.destination !== source || packet.chunk !== INIT_ACK || packet.verificationTag !== tag) return;
    if (from === address && packet.source === port) tell(packet.cookie ?? "");
  });
  socket.send(address, { source, destination: port, verificationTag: 0, chunk: INIT, tag });
}

function randomTag(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]! || 1;
}

function openRaw(family: 4 | 6, received: (packet: Packet, from: string) => void) {
  const fd = check("socket", libc.socket(family === 4 ? AF_INET : AF_INET6, SOCK_RAW, protocolNumbers.sctp));
  const bytes = new Uint8Array(2000), address = new Uint8Array(28), addressSize = new Uint32Array(1);
  // struct sockaddr_in: family u16, port u16be, address 4; struct sockaddr_in6: family, port, flow u32, address 16
  const at = family === 4 ? 4 : 8, size = family === 4 ? 4 : 16;
  setInterval(() => {
    for (;;) {
      addressSize[0] = address.length;
      const length = Number(libc.recvfrom(fd, bytes, bytes.length, MSG_DONTWAIT, address, addressSize));
      if (length < 0) return;
      // Packets of IPv4 come with their header.
      const packet = decode(bytes.subarray(family === 4 ? (bytes[0]! & 15) * 4 : 0, length));
      if (packet !== undefined) received(packet, formatAddress(address.subarray(at, at + size)));
    }
  }, POLL_MS);
  return {
    send(to: string, packet: Packet) {
      const name = new Uint8Array(family === 4 ? 16 : 28), message = encode(packet);
      new DataView(name.buffer).setUint16(0, family === 4 ? AF_INET : AF_INET6, true);
      name.set(parseAddress(to)!, at);
      libc.sendto(fd, message, message.length, 0, name, name.length);
    },
  };
}

function encode({ source, destination, verificationTag, chunk, tag, cookie }: Packet): Uint8Array {
  const text = cookie === undefined ? undefined : utf8(cookie);
  const parameterBytes = text === undefined ? 0 : PARAMETER_BYTES + text.length;
  const bytes = new Uint8Array(HEADER_BYTES + CHUNK_BYTES + Math.ceil(parameterBytes / 4) * 4);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, source);
  view.setUint16(2, destination);
  view.setUint32(4, verificationTag);
  view.setUint8(HEADER_BYTES, chunk);
  view.setUint16(HEADER_BYTES + 2, CHUNK_BYTES + parameterBytes);
  view.setUint32(HEADER_BYTES + 4, tag);
  view.setUint32(HEADER_BYTES + 8, 65536); // receiver window
  view.setUint16(HEADER_BYTES + 12, 1); // outbound streams
  view.setUint16(HEADER_BYTES + 14, 1); // inbound streams
  if (text !== undefined) {
    view.setUint16(HEADER_BYTES + CHUNK_BYTES, STATE_COOKIE);
    view.setUint16(HEADER_BYTES + CHUNK_BYTES + 2, parameterBytes);
    bytes.set(text, HEADER_BYTES + CHUNK_BYTES + PARAMETER_BYTES);
  }
  view.setUint32(8, crc32c(bytes), true);
  return bytes;
}

/** Answers undefined for what another program sent, or what was spoiled on the way. */
function decode(bytes: Uint8Array): Packet | undefined {
  if (bytes.length < HEADER_BYTES + CHUNK_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const checksum = view.getUint32(8, true), chunk = view.getUint8(HEADER_BYTES);
  view.setUint32(8, 0);
  if (crc32c(bytes) !== checksum || (chunk !== INIT && chunk !== INIT_ACK)) return undefined;
  const end = HEADER_BYTES + view.getUint16(HEADER_BYTES + 2),
    cookieAt = HEADER_BYTES + CHUNK_BYTES + PARAMETER_BYTES;
  return {
    source: view.getUint16(0),
    destination: view.getUint16(2),
    verificationTag: view.getUint32(4),
    chunk,
    tag: view.getUint32(HEADER_BYTES + 4),
    cookie: end > cookieAt ? fromUtf8(bytes.subarray(cookieAt, end)) : undefined,
  };
}

/** Castagnoli's polynomial, as RFC 9260, appendix A, has it. */
function crc32c(bytes: Uint8Array): number {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (0x82f63b78 & -(crc & 1));
  }
  return ~crc >>> 0;
}
