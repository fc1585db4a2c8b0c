/** What operations load of a packet, and the packet that they make of it. */
import { isKnown, known, type KnownBytes, knownNumber, slice, unknown, withBytes } from "./known-bytes.ts";
import {
  addressOfEnd,
  ETHERTYPES,
  indexOfLink,
  linkName,
  type PacketFacts,
  type PacketLink,
  translated,
} from "./packet.ts";
import type { Operation, PayloadBase } from "./ruleset.ts";

interface PlaceInPacket {
  base: PayloadBase;
  offset: number;
  length: number;
}

export function payloadOf(packet: PacketFacts, { base, offset, length }: PlaceInPacket): KnownBytes {
  return base === "inner" ? unknown(length) : slice(packet[base], offset, length);
}

/** Behind its end a packet has no bytes, and the rule does not match. A packet of this host has no frame yet. */
export function hasBytes(packet: PacketFacts, { base, offset, length }: PlaceInPacket): boolean {
  return base !== "inner" && offset + length <= packet[base].value.length &&
    (base !== "link" || packet.input !== undefined);
}

export function withPayload(packet: PacketFacts, place: PlaceInPacket, bytes: KnownBytes): PacketFacts {
  const { base, offset } = place;
  if (base === "inner" || offset + place.length > packet[base].value.length) return packet;
  return { ...packet, [base]: withBytes(packet[base], offset, bytes) };
}

const NFPROTO = { 4: 2, 6: 10 } as const;

/** Undefined when it is not known. */
export function metaOf(packet: PacketFacts, key: string): KnownBytes | undefined {
  switch (key) {
    case "mark":
      return packet.mark;
    case "nfproto":
      return known(Uint8Array.of(NFPROTO[packet.family]));
    case "l4proto":
      return known(Uint8Array.of(packet.protocol));
    case "protocol":
      return known(ETHERTYPES[packet.family]);
    case "iif":
      return indexOfLink(packet.input);
    case "oif":
      return indexOfLink(packet.output);
    case "iifname":
      return linkName(packet.input);
    case "oifname":
      return linkName(packet.output);
    case "sdif":
      return packet.isOutsideVrfs && indexOfLink(undefined);
    case "sdifname":
      return packet.isOutsideVrfs && linkName(undefined);
    default:
      return undefined;
  }
}

export function fibOf(packet: PacketFacts, { asks, of, at }: Extract<Operation, { does: "fib" }>): KnownBytes {
  const address = addressOfEnd(packet, of === "saddr" ? "source" : "destination");
  if (asks !== "type") {
    const link = at === "elsewhere" || !isKnown(address) ? undefined : linkFor(packet, address.value, at === "iif");
    if (link === undefined) return unknown(asks === "oifname" ? 16 : asks === "oif" ? 4 : 1);
    if (asks === "oif exists") return known(Uint8Array.of(link === "none" ? 0 : 1));
    return (asks === "oif" ? indexOfLink : linkName)(link === "none" ? undefined : link);
  }
  if (at !== undefined) return unknown(4);
  const type = isKnown(address) ? packet.typeOf(address.value) : undefined;
  return type === undefined ? unknown(4) : knownNumber(type);
}

/** Undefined when it cannot be known; `isAtInput`: only when it is the link by which the packet came. */
function linkFor(packet: PacketFacts, address: Uint8Array, isAtInput: boolean): ReturnType<RouteOf> {
  const { input } = packet,
    isLinkLocal = address.length === 16 && address[0] === 0xfe && (address[1]! & 0xc0) === 0x80;
  // What came by the loopback link is not looked up, and routes of link-local addresses are each link's.
  if (isLinkLocal || (isAtInput && (input === undefined || input === "any")) || isOfLoopback(input)) return undefined;
  const link = packet.outputFor?.(address);
  return isAtInput && typeof link === "object" && link.index !== (input as { index: number }).index ? "none" : link;
}

type RouteOf = NonNullable<PacketFacts["outputFor"]>;

function isOfLoopback(link: PacketLink | undefined): boolean {
  return typeof link === "object" && link.index === LOOPBACK_INDEX;
}

/** The first link of each namespace. */
const LOOPBACK_INDEX = 1;

/** An address of the link by which it leaves. */
export function masqueraded(packet: PacketFacts): PacketFacts {
  return translated(packet, "source", { address: ownAddress(packet, packet.output), port: unknown(2) });
}

/** An address of this host. */
export function redirected(packet: PacketFacts, port: KnownBytes | undefined): PacketFacts {
  return translated(packet, "destination", { address: ownAddress(packet, packet.input), port });
}

function ownAddress(packet: PacketFacts, link: PacketLink | undefined): KnownBytes {
  const address = packet.addressOf?.(link);
  return address === undefined ? unknown(packet.family === 4 ? 4 : 16) : known(address);
}
