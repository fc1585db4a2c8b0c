/**
 * Matches and targets of xtables, whose parameters are structs (linux/netfilter/xt_*.h). What is not here may match, and
 * may do anything.
 */
import { portBytes } from "../port.ts";
import {
  both,
  type Certainty,
  compare,
  isAtLeast,
  isAtMost,
  isEqual,
  isKnown,
  known,
  type KnownBytes,
  knownNumber,
  not,
  slice,
  unknown,
  withMask,
  xored,
} from "./known-bytes.ts";
import { addressOfEnd, type PacketFacts } from "./packet.ts";

type Match = (info: DataView, packet: PacketFacts) => Certainty;

/** Undefined for one that is not known. */
export function xtablesMatch(
  name: string,
  revision: number,
  info: DataView,
  packet: PacketFacts,
): Certainty | undefined {
  try {
    return matches[`${name}.${revision}`]?.(info, packet);
  } catch {
    // Shorter than its struct.
    return undefined;
  }
}

/** By name and revision. */
const matches: Record<string, Match> = {
  "comment.0": () => "yes",
  "tcp.0": (info, packet) => {
    const [mask, flags, inverted] = [info.getUint8(9), info.getUint8(10), info.getUint8(11)];
    if (info.getUint8(8) !== 0) return "maybe";
    const bits = withMask(slice(packet.transport, 13, 1), Uint8Array.of(mask), Uint8Array.of(0));
    const isFlagged = turned(isEqual(bits, Uint8Array.of(flags)), (inverted & 4) !== 0);
    return both(portRanges(info, packet, inverted), isFlagged);
  },
  "udp.0": (info, packet) => portRanges(info, packet, info.getUint8(8)),
  "multiport.1": (info, packet) => {
    const which = info.getUint8(0), count = info.getUint8(1), isInverted = info.getUint8(47) !== 0;
    const placesOfPorts = which === 0 ? [0] : which === 1 ? [2] : [0, 2];
    let answer: Certainty = "no";
    for (let at = 0; at < count; at++) {
      const isRange = info.getUint8(32 + at) !== 0, first = portBytes(info.getUint16(2 + 2 * at, true));
      const last = isRange ? portBytes(info.getUint16(2 + 2 * ++at, true)) : undefined;
      for (const place of placesOfPorts) {
        const isPort = last === undefined
          ? isEqual(packet.transport, first, place)
          : inRange(slice(packet.transport, place, 2), first, last);
        answer = either(answer, isPort);
      }
    }
    return turned(answer, isInverted);
  },
  "conntrack.2": connectionMatch,
  "conntrack.3": connectionMatch,
  "state.0": (info, packet) => {
    const UNTRACKED = 1 << 6, bits = info.getUint32(0, true);
    return packet.state === "untracked"
      ? (bits & UNTRACKED) !== 0 ? "yes" : "no"
      : stateAmong(bits & ~UNTRACKED, packet);
  },
  "addrtype.1": (info, packet) => {
    const [source, destination] = [info.getUint16(0, true), info.getUint16(2, true)];
    const flags = info.getUint32(4, true), LIMITED = 0x0c;
    if ((flags & LIMITED) !== 0) return "maybe";
    const bySource = source === 0 ? "yes" : turned(typeAmong(source, "source", packet), (flags & 1) !== 0);
    const byDestination = destination === 0
      ? "yes"
      : turned(typeAmong(destination, "destination", packet), (flags & 2) !== 0);
    return both(bySource, byDestination);
  },
  "mark.1": (info, packet) => {
    const wanted = info.getUint32(0, true),
      bits = withMask(packet.mark, little32(info.getUint32(4, true)), little32(0));
    return turned(isEqual(bits, little32(wanted)), info.getUint8(8) !== 0);
  },
  "connmark.1": (info, packet) => {
    const isThere = hasConnection(packet), [wanted, mask] = [info.getUint32(0, true), info.getUint32(4, true)];
    const bits = withMask(packet.connectionMark, little32(mask), little32(0));
    return both(isThere, turned(isEqual(bits, little32(wanted)), info.getUint8(8) !== 0));
  },
  "iprange.1": (info, packet) => {
    const flags = info.getUint8(64), length = packet.family === 4 ? 4 : 16;
    const bytes = (at: number) => new Uint8Array(info.buffer, info.byteOffset + at, length);
    const bySource = (flags & 1) === 0
      ? "yes"
      : turned(inRange(addressOfEnd(packet, "source"), bytes(0), bytes(16)), (flags & 16) !== 0);
    const byDestination = (flags & 2) === 0
      ? "yes"
      : turned(inRange(addressOfEnd(packet, "destination"), bytes(32), bytes(48)), (flags & 32) !== 0);
    return both(bySource, byDestination);
  },
  "icmp.0": (info, packet) =>
    turned(info.getUint8(0) === 0xff ? "yes" : icmpType(info, packet), (info.getUint8(3) & 1) !== 0),
  "icmp6.0": (info, packet) => turned(icmpType(info, packet), (info.getUint8(3) & 1) !== 0),
};

function connectionMatch(info: DataView, packet: PacketFacts): Certainty {
  const STATE = 1, flags = info.getUint16(146, true), inverted = info.getUint16(148, true);
  if ((flags & ~STATE) !== 0) return "maybe";
  return turned(stateAmong(info.getUint16(150, true), packet), (inverted & STATE) !== 0);
}

function icmpType(info: DataView, { transport }: PacketFacts): Certainty {
  const [type, first, last] = [0, 1, 2].map((at) => Uint8Array.of(info.getUint8(at)));
  return both(isEqual(slice(transport, 0, 1), type!), inRange(slice(transport, 1, 1), first!, last!));
}

function portRanges(info: DataView, { transport }: PacketFacts, inverted: number): Certainty {
  const range = (at: number, port: number) =>
    inRange(slice(transport, port, 2), portBytes(info.getUint16(at, true)), portBytes(info.getUint16(at + 2, true)));
  return both(turned(range(0, 0), (inverted & 1) !== 0), turned(range(4, 2), (inverted & 2) !== 0));
}

const STATE_BITS = { invalid: 1, established: 2, related: 4, new: 8, untracked: 64 } as const;

export function stateBits(packet: PacketFacts): KnownBytes | undefined {
  return packet.state === undefined ? undefined : knownNumber(STATE_BITS[packet.state]);
}

function hasConnection({ state }: PacketFacts): Certainty {
  if (state === undefined) return "maybe";
  return state === "invalid" || state === "untracked" ? "no" : "yes";
}

/** The bits of SNAT and DNAT are asked of the connection's status. */
function stateAmong(bits: number, packet: PacketFacts): Certainty {
  const SNAT = 1 << 6, DNAT = 1 << 7, UNTRACKED = 1 << 8;
  if (packet.state === undefined) return "maybe";
  if (packet.state === "untracked") return (bits & UNTRACKED) !== 0 ? "yes" : "no";
  if ((bits & STATE_BITS[packet.state]) !== 0) return "yes";
  const asked = ((bits & SNAT) !== 0 ? 16 : 0) | ((bits & DNAT) !== 0 ? 32 : 0);
  if ((packet.status.value[0]! & asked) !== 0) return "yes";
  return (asked & ~packet.status.mask[0]!) !== 0 ? "maybe" : "no";
}

/** Bits of XT_ADDRTYPE, by the numbers of enum rtn_type. */
const UNSPECIFIED = 1 << 0, UNICAST = 1 << 1, MULTICAST = 1 << 5;

function typeAmong(types: number, end: "source" | "destination", packet: PacketFacts): Certainty {
  const address = addressOfEnd(packet, end);
  if (!isKnown(address)) return "maybe";
  const type = packet.typeOf(address.value);
  const isAmong = (types: number) => type === undefined ? "maybe" : (types & (1 << type)) !== 0 ? "yes" : "no";
  return packet.family === 4 ? isAmong(types) : both(isOfType6(types, address.value), isAmong6(types, isAmong));
}

/** With IPv6, what the address itself says must be so besides what routes say. */
function isOfType6(types: number, address: Uint8Array): Certainty {
  const isMulticast = address[0] === 0xff, isUnspecified = address.every((byte) => byte === 0);
  const isRefused = ((types & MULTICAST) !== 0 && !isMulticast) || ((types & UNSPECIFIED) !== 0 && !isUnspecified) ||
    ((types & UNICAST) !== 0 && (isMulticast || isUnspecified));
  return isRefused ? "no" : "yes";
}

function isAmong6(types: number, isAmong: (types: number) => Certainty): Certainty {
  const ofRoutes = types & ~(UNICAST | MULTICAST | UNSPECIFIED);
  return ofRoutes === 0 ? "yes" : isAmong(ofRoutes);
}

function inRange(bytes: KnownBytes, first: Uint8Array, last: Uint8Array): Certainty {
  return both(isAtLeast(bytes, first), isAtMost(bytes, last));
}

function turned(answer: Certainty, isInverted: boolean): Certainty {
  return isInverted ? not(answer) : answer;
}

function either(left: Certainty, right: Certainty): Certainty {
  return not(both(not(left), not(right)));
}

function little32(number: number): Uint8Array {
  return knownNumber(number).value;
}

export type Effect =
  | { kind: "nothing" | "reject" | "untracked" | "masquerade" }
  | { kind: "mark" | "connection mark"; mark: KnownBytes }
  | { kind: "redirect"; port?: KnownBytes }
  /** What stays as it is is absent; what is chosen later is unknown. */
  | { kind: "nat"; changes: "source" | "destination"; address?: KnownBytes; port?: KnownBytes };

// deno-fmt-ignore
const WITHOUT_EFFECT = [
  "LOG", "NFLOG", "TRACE", "CHECKSUM", "TCPMSS", "CLASSIFY", "AUDIT", "DSCP", "TOS", "TTL", "HL",
  "ECN", "LED", "RATEEST", "TEE",
];

/** Undefined for one that is not known. */
export function xtablesTarget(
  name: string,
  revision: number,
  info: DataView,
  packet: PacketFacts,
): Effect | undefined {
  if (WITHOUT_EFFECT.includes(name)) return { kind: "nothing" };
  if (name === "REJECT") return { kind: "reject" };
  if (name === "NOTRACK" || (name === "CT" && (info.getUint16(0, true) & 1) !== 0)) return { kind: "untracked" };
  if (name === "MASQUERADE") return { kind: "masquerade" };
  if (name === "MARK" && revision === 2) {
    const [value, mask] = [info.getUint32(0, true), info.getUint32(4, true)];
    return { kind: "mark", mark: withMask(packet.mark, little32(~mask >>> 0), little32(value)) };
  }
  if (name === "CONNMARK") return connectionMark(info, revision, packet);
  const leads = translationBy(name, revision, info, packet.family);
  if (leads === undefined) return undefined;
  if (name === "REDIRECT") return { kind: "redirect", port: leads.port };
  return { kind: "nat", changes: name === "DNAT" ? "destination" : "source", ...leads };
}

/** Where DNAT, SNAT and REDIRECT lead; undefined for other targets. */
export function translationBy(name: string, revision: number, info: DataView, family: 4 | 6) {
  const isOld = name === "REDIRECT" ? family === 4 : revision === 0;
  return ["DNAT", "SNAT", "REDIRECT"].includes(name) ? isOld ? oldRange(info) : rangeOf(info, family) : undefined;
}

/** struct xt_connmark_tginfo1 and 2: mark and mask of the connection, mask of the packet, then shifts and what to do. */
function connectionMark(info: DataView, revision: number, packet: PacketFacts): Effect | undefined {
  const SET = 0, SAVE = 1, RESTORE = 2, isShifted = revision === 2 && info.getUint8(13) !== 0;
  const mode = info.getUint8(revision === 1 ? 12 : 14), isThere = hasConnection(packet);
  if (revision < 1 || revision > 2 || isShifted || mode > RESTORE || isThere === "maybe") return undefined;
  if (isThere === "no") return { kind: "nothing" };
  const [value, mask, ofPacket] = [0, 4, 8].map((at) => little32(info.getUint32(at, true)));
  const none = little32(0), beside = (bits: Uint8Array) => bits.map((byte) => ~byte);
  const others = withMask(packet.connectionMark, beside(mask!), none);
  switch (mode) {
    case SET:
      return { kind: "connection mark", mark: withMask(packet.connectionMark, beside(mask!), value!) };
    case SAVE:
      return { kind: "connection mark", mark: xored(others, withMask(packet.mark, ofPacket!, none)) };
    default: {
      const saved = withMask(packet.connectionMark, mask!, none);
      return { kind: "mark", mark: xored(withMask(packet.mark, beside(ofPacket!), none), saved) };
    }
  }
}

const HAS_ADDRESS = 1, HAS_PORT = 2, PERSISTENT = 8;

/** struct nf_nat_range and nf_nat_range2: flags, two addresses of 16 bytes, two ports. */
function rangeOf(info: DataView, family: 4 | 6) {
  return translation(info, info.getUint32(0, true), [4, 20], family === 4 ? 4 : 16, [36, 38]);
}

/** struct nf_nat_ipv4_multi_range_compat: how many, then flags, two addresses, two ports. */
function oldRange(info: DataView) {
  return translation(info, info.getUint32(4, true), [8, 12], 4, [16, 18]);
}

function translation(info: DataView, flags: number, addresses: number[], length: number, ports: number[]) {
  const bytes = (at: number, count: number) => new Uint8Array(info.buffer, info.byteOffset + at, count).slice();
  const isFirm = (flags & ~(HAS_ADDRESS | HAS_PORT | PERSISTENT)) === 0;
  const one = ([first, last]: number[], count: number): KnownBytes =>
    compare(bytes(first!, count), bytes(last!, count)) === 0 ? known(bytes(first!, count)) : unknown(count);
  // A random port, for example.
  if (!isFirm) return { address: (flags & HAS_ADDRESS) !== 0 ? unknown(length) : undefined, port: unknown(2) };
  return {
    address: (flags & HAS_ADDRESS) !== 0 ? one(addresses, length) : undefined,
    port: (flags & HAS_PORT) !== 0 ? one(ports, 2) : undefined,
  };
}
