/** A packet of which not everything is known, as rules see it. */
import { ECHOES, SCTP, TCP, UDP } from "../ip-protocol.ts";
import { parseMac } from "../mac.ts";
import { portBytes } from "../port.ts";
import { known, type KnownBytes, knownNumber, mayBeSame, slice, unknown, withBytes } from "./known-bytes.ts";

export type ConnectionState = "new" | "established" | "related" | "invalid" | "untracked";

/** A link as rules see it: there is one, and it may be any. */
export type PacketLink = { name: string; index: number } | "any";

export interface PacketFacts {
  readonly family: 4 | 6;
  readonly link: KnownBytes;
  readonly network: KnownBytes;
  readonly transport: KnownBytes;
  readonly protocol: number;
  /** Undefined where there is none, as in the hook output. */
  readonly input?: PacketLink;
  readonly output?: PacketLink;
  /** It has not come in by a link of a VRF. */
  readonly isOutsideVrfs?: true;
  readonly mark: KnownBytes;
  /** Undefined when it is unknown. */
  readonly state?: ConnectionState;
  /** Bits of enum ip_conntrack_status. */
  readonly status: KnownBytes;
  readonly connectionMark: KnownBytes;
  /** What the host's routes say of an address: a number of enum rtn_type; undefined when that is unknown. */
  typeOf(address: Uint8Array): number | undefined;
  /** The link of the host's route to an address; "none" where packets to it leave by none; undefined when that is unknown. */
  outputFor?(address: Uint8Array): { name: string; index: number } | "none" | undefined;
  /** The host's address that masquerading by a link takes, or redirecting of what came in by one; undefined when it is unknown. */
  addressOf?(link: PacketLink | undefined): Uint8Array | undefined;
}

export interface Flow {
  family: 4 | 6;
  source: KnownBytes;
  destination: KnownBytes;
  protocol: number;
  sourcePort?: number;
  destinationPort?: number;
}

/** Their headers begin with the ports of source and destination. */
const WITH_PORTS = [TCP, UDP, SCTP, 33, 136];
const IPS_SRC_NAT = 1 << 4, IPS_DST_NAT = 1 << 5;

const SOURCE_AT = { 4: 12, 6: 8 } as const, DESTINATION_AT = { 4: 16, 6: 24 } as const;

/** The first packet of a connection. What else a program can choose in its headers is unknown. */
export function firstPacket(flow: Flow, typeOf: PacketFacts["typeOf"]): PacketFacts {
  return {
    family: flow.family,
    link: unknown(14),
    network: networkHeader(flow),
    transport: transportHeader(flow),
    protocol: flow.protocol,
    mark: knownNumber(0),
    state: "new",
    status: UNTRANSLATED,
    connectionMark: knownNumber(0),
    typeOf,
  };
}

/** The other bits say how far conntrack is with the packet. */
export const UNTRANSLATED = firstByte(0, IPS_SRC_NAT | IPS_DST_NAT);

const SOURCE_MAC_AT = 6, ETHERTYPE_AT = 12;

/** As a link of Ethernet sends it. To whom is not known. */
export function framed(packet: PacketFacts, sourceMac: string): PacketFacts {
  const link = unknown(14), mac = parseMac(sourceMac);
  if (mac !== undefined) put(link, SOURCE_MAC_AT, mac);
  put(link, ETHERTYPE_AT, ETHERTYPES[packet.family]);
  return { ...packet, link };
}

export const ETHERTYPES = { 4: Uint8Array.of(0x08, 0x00), 6: Uint8Array.of(0x86, 0xdd) } as const;

function networkHeader({ family, source, destination, protocol }: Flow): KnownBytes {
  const header = unknown(family === 4 ? 20 : 40);
  put(header, 0, Uint8Array.of(family === 4 ? 0x45 : 0x60), family === 4 ? 0xff : 0xf0);
  // Not a fragment: neither more of them, nor an offset.
  if (family === 4) put(header, 6, Uint8Array.of(0, 0), 0x3f, 0xff);
  put(header, family === 4 ? 9 : 6, Uint8Array.of(protocol), 0xff);
  over(header, SOURCE_AT[family], source);
  over(header, DESTINATION_AT[family], destination);
  return header;
}

function transportHeader({ protocol, sourcePort, destinationPort }: Flow): KnownBytes {
  const header = unknown(protocol === TCP ? 20 : 8);
  if (WITH_PORTS.includes(protocol)) {
    if (sourcePort !== undefined) put(header, 0, portBytes(sourcePort));
    if (destinationPort !== undefined) put(header, 2, portBytes(destinationPort));
  }
  // SYN, without FIN, RST and ACK.
  if (protocol === TCP) put(header, 13, Uint8Array.of(0x02), 0x17);
  const echo = ECHOES[protocol];
  if (echo !== undefined) put(header, 0, Uint8Array.of(echo[0], 0));
  return header;
}

function put(header: KnownBytes, at: number, bytes: Uint8Array, ...masks: number[]): void {
  header.value.set(bytes, at);
  bytes.forEach((_, index) => header.mask[at + index] = masks[index] ?? masks[0] ?? 0xff);
}

function carriesPorts({ protocol }: PacketFacts): boolean {
  return WITH_PORTS.includes(protocol);
}

export function addressOfEnd(packet: PacketFacts, end: "source" | "destination"): KnownBytes {
  return slice(packet.network, addressAt(packet.family, end), packet.family === 4 ? 4 : 16);
}

function addressAt(family: 4 | 6, end: "source" | "destination"): number {
  return (end === "source" ? SOURCE_AT : DESTINATION_AT)[family];
}

/** Address and port of one end as NAT makes them; what it does not say stays. */
export function translated(
  packet: PacketFacts,
  end: "source" | "destination",
  { address, port }: { address?: KnownBytes; port?: KnownBytes },
): PacketFacts {
  const isSource = end === "source", portAt = isSource ? 0 : 2;
  const newPort = carriesPorts(packet) ? port : undefined;
  const isOther = (address !== undefined && !mayBeSame(addressOfEnd(packet, end), address)) ||
    (newPort !== undefined && !mayBeSame(slice(packet.transport, portAt, 2), newPort));
  return {
    ...packet,
    network: address === undefined
      ? packet.network
      : withBytes(packet.network, addressAt(packet.family, end), address),
    transport: newPort === undefined ? packet.transport : withBytes(packet.transport, portAt, newPort),
    status: withNat(packet.status, isSource ? IPS_SRC_NAT : IPS_DST_NAT, isOther),
  };
}

/** A translation to what is there already is none. */
function withNat({ value: [before], mask: [knownBits] }: KnownBytes, bit: number, isOther: boolean): KnownBytes {
  if (isOther) return firstByte(before! | bit, knownBits! | bit);
  return firstByte(before!, (before! & bit) !== 0 ? knownBits! : knownBits! & ~bit);
}

/** The first byte of a connection's status. Nothing is known of the three others. */
function firstByte(value: number, mask: number): KnownBytes {
  return { value: Uint8Array.of(value, 0, 0, 0), mask: Uint8Array.of(mask, 0, 0, 0) };
}

function over(header: KnownBytes, at: number, bytes: KnownBytes): void {
  header.value.set(bytes.value, at);
  header.mask.set(bytes.mask, at);
}

export function indexOfLink(link: PacketLink | undefined): KnownBytes {
  return link === "any" ? unknown(4) : knownNumber(link?.index ?? 0);
}

export function linkName(link: PacketLink | undefined): KnownBytes {
  if (link === "any") return unknown(16);
  const name = new Uint8Array(16);
  name.set(new TextEncoder().encode(link?.name ?? ""));
  return known(name);
}

/** The kernel counts a hop, and makes the checksum anew. */
export function hopped(packet: PacketFacts): PacketFacts {
  const TTL_AT = 8, CHECKSUM_AT = 10, HOP_LIMIT_AT = 7, { family, network } = packet;
  if (family === 6) return { ...packet, network: withBytes(network, HOP_LIMIT_AT, unknown(1)) };
  return { ...packet, network: withBytes(withBytes(network, TTL_AT, unknown(1)), CHECKSUM_AT, unknown(2)) };
}
