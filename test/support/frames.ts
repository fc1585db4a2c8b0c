/** Frames with whatever a sender claims, for send-frame.ts, as hex. Pure. */
import { parseAddress } from "../../src/net/address.ts";
import { parseMac } from "../../src/net/mac.ts";

const TCP = 6, UDP = 17, SCTP = 132, ICMP = 1, ICMP6 = 58, IPV4_TYPE = 0x0800, IPV6_TYPE = 0x86dd;
const SYN = 0x02, HOP_LIMIT = 255, LIFETIME_SECONDS = 1800;

export interface Ends {
  /** MAC addresses. */
  from: string;
  to: string;
  /** IP addresses. */
  source: string;
  destination: string;
}

/** A datagram with a few bytes. */
export function datagram(ends: Ends, sourcePort: number, port: number, message = new Uint8Array(4)): string {
  return packet(ends, UDP, udp(sourcePort, port, message), 6);
}

/** The first segment of a connection. */
export function connecting(ends: Ends, sourcePort: number, port: number): string {
  const sequence = [0, 0, 0, 1, 0, 0, 0, 0], header = [5 << 4, SYN, 0xff, 0xff, 0, 0, 0, 0];
  return packet(ends, TCP, Uint8Array.of(...u16(sourcePort), ...u16(port), ...sequence, ...header), 16);
}

/** The first chunk of an association, without the checksum: routers do not look at that. See RFC 9260. */
export function associating(ends: Ends, sourcePort: number, port: number): string {
  const chunk = [1, 0, ...u16(20), ...u32(1), ...u32(0xffff), ...u16(1), ...u16(1), ...u32(1)];
  const header = Uint8Array.of(...u16(sourcePort), ...u16(port), ...u32(0), ...u32(0), ...chunk);
  const isV4 = parseAddress(ends.source)!.length === 4;
  return isV4
    ? frame(ends.to, ends.from, IPV4_TYPE, ipv4(ends, SCTP, header))
    : frame(ends.to, ends.from, IPV6_TYPE, ipv6(ends, SCTP, header));
}

/** RFC 4861 section 4.2: a router for everything, with a prefix for addresses (4.6.2) and a route (RFC 4191). */
export function routerAdvertisement(ends: Ends, prefix: string): string {
  const header = [134, 0, 0, 0, 64, 0, ...u16(LIFETIME_SECONDS), ...u32(0), ...u32(0)];
  const onLink = [
    3,
    4,
    64,
    0xc0,
    ...u32(LIFETIME_SECONDS),
    ...u32(LIFETIME_SECONDS),
    ...u32(0),
    ...parseAddress(prefix)!,
  ];
  const mac = [1, 1, ...parseMac(ends.from)!];
  return packet(ends, ICMP6, Uint8Array.of(...header, ...onLink, ...mac), 2);
}

/** RFC 792: the sender is the router so far, and `router` shall be the next one for `about`, a packet of the receiver's. */
export function redirect(ends: Ends, router: string, about: Omit<Ends, "from" | "to">, port: number): string {
  const quoted = ipv4(about, UDP, udp(port, 9, new Uint8Array(4)));
  return packet(ends, ICMP, Uint8Array.of(5, 1, 0, 0, ...parseAddress(router)!, ...quoted.subarray(0, 28)), 2);
}

/** RFC 4861 section 4.5: what is for `destination` shall go to `target`. */
export function redirect6(ends: Ends, target: string, about: Omit<Ends, "from" | "to">): string {
  const quoted = ipv6(about, UDP, udp(9, 9, new Uint8Array(4)));
  const option = [4, (8 + quoted.length + 4) / 8, ...u16(0), ...u32(0), ...quoted, ...u32(0)];
  const mac = [2, 1, ...parseMac(ends.from)!];
  const header = [137, 0, 0, 0, ...u32(0), ...parseAddress(target)!, ...parseAddress(about.destination)!];
  return packet(ends, ICMP6, Uint8Array.of(...header, ...mac, ...option), 2);
}

export const BROADCAST = "ff:ff:ff:ff:ff:ff", ALL_NODES = "33:33:00:00:00:01";

export function frame(to: string, from: string, type: number, payload = new Uint8Array(46)): string {
  return Uint8Array.of(...parseMac(to)!, ...parseMac(from)!, ...u16(type), ...payload).toHex();
}

/** `sumAt`: where the payload has its checksum. */
function packet(ends: Ends, protocol: number, payload: Uint8Array, sumAt: number): string {
  const isV4 = parseAddress(ends.source)!.length === 4, built = isV4 ? ipv4 : ipv6;
  const pseudo = protocol === ICMP ? 0 : sum(addressesOf(ends)) + protocol + payload.length;
  payload.set(u16(folded(pseudo + sum(payload))), sumAt);
  return frame(ends.to, ends.from, isV4 ? IPV4_TYPE : IPV6_TYPE, built(ends, protocol, payload));
}

function ipv4(
  ends: Pick<Ends, "source" | "destination">,
  protocol: number,
  payload: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const header = Uint8Array.of(
    0x45,
    0,
    ...u16(20 + payload.length),
    ...u32(0),
    64,
    protocol,
    0,
    0,
    ...addressesOf(ends),
  );
  header.set(u16(folded(sum(header))), 10);
  return Uint8Array.of(...header, ...payload);
}

function ipv6(
  ends: Pick<Ends, "source" | "destination">,
  protocol: number,
  payload: Uint8Array,
): Uint8Array<ArrayBuffer> {
  return Uint8Array.of(
    ...u32(6 << 28),
    ...u16(payload.length),
    protocol,
    HOP_LIMIT,
    ...addressesOf(ends),
    ...payload,
  );
}

function udp(sourcePort: number, port: number, message: Uint8Array): Uint8Array {
  return Uint8Array.of(...u16(sourcePort), ...u16(port), ...u16(8 + message.length), 0, 0, ...message);
}

function addressesOf({ source, destination }: Pick<Ends, "source" | "destination">): Uint8Array {
  return Uint8Array.of(...parseAddress(source)!, ...parseAddress(destination)!);
}

function sum(bytes: Uint8Array): number {
  let total = 0;
  for (let at = 0; at < bytes.length; at += 2) total += (bytes[at]! << 8) | (bytes[at + 1] ?? 0);
  return total;
}

/** RFC 1071. */
function folded(total: number): number {
  while (total > 0xffff) total = (total & 0xffff) + (total >>> 16);
  return ~total & 0xffff;
}

const u16 = (value: number) => [value >> 8 & 0xff, value & 0xff];
const u32 = (value: number) => [...u16(value >>> 16), ...u16(value & 0xffff)];
