/** What rules look at in the words of nft(8), and how nft writes the values. */
import { formatAddress } from "../address.ts";
import { foreignName, quotedText } from "./foreign-name.ts";
import { isKnown, type KnownBytes, knownNumber } from "./known-bytes.ts";
import type { Operation } from "./ruleset.ts";
import { translationBy } from "./xtables.ts";

export interface Field {
  name: string;
  /** In bytes; 0 when it is not known. */
  length: number;
  shown(value: Uint8Array): string;
  isOfBits?: true;
}

type OperationOf<D extends Operation["does"]> = Extract<Operation, { does: D }>;
/** A match or a target of xtables. */
export type XtablesOperation = Extract<Operation, { info: DataView }>;
type Shown = Field["shown"];

function numberOf(value: Uint8Array): number {
  return value.reduce((sum, byte) => sum * 256 + byte, 0);
}

export function shownHex(value: Uint8Array): string {
  return `0x${value.toHex()}`;
}

export function shownAddress(value: Uint8Array): string {
  return value.length === 4 || value.length === 16 ? formatAddress(value) : shownHex(value);
}

const hostOrder = (shown: Shown): Shown => (value) => shown(value.toReversed());

/** A number that has no word stays a number. */
const oneOf = (names: Record<number, string>): Shown => (value) => {
  const number = numberOf(value);
  return names[number] ?? (value.length > 4 ? shownHex(value) : String(number));
};

function bitsOf(names: Record<number, string>): Shown {
  return (value) => {
    const bits = numberOf(value), found = Object.keys(names).map(Number).filter((bit) => (bits & bit) !== 0);
    const isAll = bits !== 0 && found.reduce((sum, bit) => sum | bit, 0) === bits;
    return isAll ? found.map((bit) => names[bit]).join(",") : shownHex(value);
  };
}

/** Without a NUL it is the beginning of names. */
function shownLink(value: Uint8Array): string {
  const end = value.indexOf(0), name = new TextDecoder().decode(end < 0 ? value : value.subarray(0, end));
  return quotedText(end < 0 && value.length < 16 ? `${name}*` : name);
}

const shownNumber = oneOf({});
export const protocolName = oneOf({ 1: "icmp", 6: "tcp", 17: "udp", 58: "ipv6-icmp", 132: "sctp" });
const STATES = hostOrder(bitsOf({ 1: "invalid", 2: "established", 4: "related", 8: "new", 64: "untracked" }));
const STATUS = hostOrder(
  bitsOf({ 1: "expected", 2: "seen-reply", 4: "assured", 8: "confirmed", 16: "snat", 32: "dnat" }),
);
const FLAGS = bitsOf({ 1: "fin", 2: "syn", 4: "rst", 8: "psh", 16: "ack", 32: "urg" });
const ICMP = { 0: "echo-reply", 3: "destination-unreachable", 8: "echo-request", 11: "time-exceeded" };
const ICMPV6 = { 128: "echo-request", 129: "echo-reply", 133: "nd-router-solicit", 134: "nd-router-advert" };
/** enum rtn_type */
const TYPES = ["unspec", "unicast", "local", "broadcast", "anycast", "multicast", "blackhole", "unreachable"];

/** By the beginning of their names. */
const KEYS: [RegExp, number, Shown, isOfBits?: true][] = [
  [/^[io]ifname$/, 16, shownLink],
  [/^(meta|ct) mark$/, 4, hostOrder(shownHex)],
  [/^meta l4proto$/, 1, protocolName],
  [/^meta nfproto$/, 1, oneOf({ 2: "ipv4", 10: "ipv6" })],
  [/^meta protocol$/, 2, oneOf({ 0x0800: "ip", 0x86dd: "ip6", 0x0806: "arp" })],
  [/^ct state$/, 4, STATES, true],
  [/^ct status$/, 4, STATUS, true],
  [/^ct direction$/, 1, oneOf({ 0: "original", 1: "reply" })],
  [/^fib .* type$/, 4, hostOrder(oneOf({ ...TYPES }))],
  [/^fib .* oif exists$/, 4, hostOrder(oneOf({ 0: "missing", 1: "exists" }))],
  [/^[io]if$/, 4, hostOrder(shownNumber)],
  [/^[io]iftype$/, 2, hostOrder(shownNumber)],
];

export function fieldOf(operation: OperationOf<"meta" | "ct" | "fib">): Field {
  const name = operation.does === "fib"
    ? `fib ${operation.of}${
      operation.at === undefined ? "" : operation.at === "iif" ? " . iif" : " …"
    } ${operation.asks}`
    : operation.does === "meta" && /^[io]if/.test(operation.key)
    ? operation.key
    : `${operation.does} ${operation.key}`;
  const [, length = 0, shown = hostOrder(shownNumber), isOfBits] = KEYS.find(([key]) => key.test(name)) ?? [];
  return { name: name.replace(" oif exists", " oif"), length, shown, isOfBits };
}

type Place = [offset: number, length: number, name: string, shown: Shown, isOfBits?: true];

const MAC: Shown = (value) => [...value].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
const LINK: Place[] = [[0, 6, "ether daddr", MAC], [6, 6, "ether saddr", MAC]];
const NETWORK: Record<4 | 6, Place[]> = {
  4: [[12, 4, "ip saddr", shownAddress], [16, 4, "ip daddr", shownAddress], [9, 1, "ip protocol", protocolName]],
  6: [[8, 16, "ip6 saddr", shownAddress], [24, 16, "ip6 daddr", shownAddress], [6, 1, "ip6 nexthdr", protocolName]],
};

/** What has no name is where nft says that it is: `@nh,64,8`. */
export function fieldAt(
  { base, offset, length }: OperationOf<"payload">,
  family: 4 | 6 | undefined,
  protocol: string | undefined,
): Field {
  const layers = {
    link: LINK,
    network: family === undefined ? [] : NETWORK[family],
    transport: portsOf(protocol),
    inner: [],
  };
  const found = layers[base].find(([at, size, , shown]) =>
    at === offset && (size === length || (shown === shownAddress && length < size))
  );
  if (found !== undefined) return { name: found[2], length: found[1], shown: found[3], isOfBits: found[4] };
  const header = { link: "ll", network: "nh", transport: "th", inner: "ih" }[base];
  return { name: `@${header},${offset * 8},${length * 8}`, length, shown: shownHex };
}

function portsOf(protocol: string | undefined): Place[] {
  if (protocol === "icmp") return [[0, 1, "icmp type", oneOf(ICMP)]];
  if (protocol === "ipv6-icmp") return [[0, 1, "icmpv6 type", oneOf(ICMPV6)]];
  const name = protocol !== undefined && /^(tcp|udp|sctp)$/.test(protocol) ? protocol : "th";
  const ports: Place[] = [[0, 2, `${name} sport`, shownNumber], [2, 2, `${name} dport`, shownNumber]];
  return name === "tcp" ? [...ports, [13, 1, "tcp flags", FLAGS, true]] : ports;
}

/** "" for a comment, which stands at the end of a line. */
export function matchText({ name, revision, info }: XtablesOperation, protocol = "th"): string {
  return shownUnlessShort(() => matches[`${name}.${revision}`]?.(info, protocol)) ?? `xt ${foreignName(name)} …`;
}

const rangeText = (first: number, last: number) => first === last ? `${first}` : `${first}-${last}`;
const turned = (isInverted: boolean) => isInverted ? "!= " : "";

/** By name and revision; xtables.ts knows the structs. */
const matches: Record<string, (info: DataView, protocol: string) => string | undefined> = {
  "comment.0": () => "",
  "tcp.0": (info) =>
    info.getUint8(8) === 0 && info.getUint8(9) === 0 ? portsText("tcp", info, info.getUint8(11)) : undefined,
  "udp.0": (info) => portsText("udp", info, info.getUint8(8)),
  "multiport.1": (info, protocol) => {
    const ports: string[] = [], end = ["sport", "dport", "port"][info.getUint8(0)];
    for (let at = 0; at < info.getUint8(1); at++) {
      const first = info.getUint16(2 + 2 * at, true), isRange = info.getUint8(32 + at) !== 0;
      ports.push(rangeText(first, isRange ? info.getUint16(2 + 2 * ++at, true) : first));
    }
    return `${protocol} ${end} ${turned(info.getUint8(47) !== 0)}{ ${ports.join(", ")} }`;
  },
  "conntrack.3": (info) => {
    const STATE = 1, states = info.getUint16(150, true);
    // From 64 on, the bits are not those of nft.
    if (info.getUint16(146, true) !== STATE || states >= 64) return undefined;
    return `ct state ${turned((info.getUint16(148, true) & STATE) !== 0)}${STATES(knownNumber(states).value)}`;
  },
  "addrtype.1": (info) => {
    const flags = info.getUint32(4, true);
    const ends = ([[0, "saddr", 1], [2, "daddr", 2]] as const).flatMap(([at, end, inverted]) => {
      const types = TYPES.filter((_, type) => (info.getUint16(at, true) & (1 << type)) !== 0);
      return types.length === 0 ? [] : [`fib ${end} type ${turned((flags & inverted) !== 0)}${types.join(",")}`];
    });
    return flags > 3 ? undefined : ends.join(" ");
  },
  "icmp.0": (info) => `icmp type ${turned(info.getUint8(3) !== 0)}${oneOf(ICMP)(Uint8Array.of(info.getUint8(0)))}`,
  "icmp6.0": (info) =>
    `icmpv6 type ${turned(info.getUint8(3) !== 0)}${oneOf(ICMPV6)(Uint8Array.of(info.getUint8(0)))}`,
};

/** Without ports, the protocol is said. */
function portsText(protocol: string, info: DataView, inverted: number): string {
  const ends = ([[0, "sport", 1], [4, "dport", 2]] as const).flatMap(([at, end, bit]) => {
    const ports = rangeText(info.getUint16(at, true), info.getUint16(at + 2, true));
    return ports === "0-65535" ? [] : [`${protocol} ${end} ${turned((inverted & bit) !== 0)}${ports}`];
  });
  return ends.length === 0 ? `meta l4proto ${protocol}` : ends.join(" ");
}

/** What sets have keys of, by nft's own numbers: how long one is, and how it is shown. */
export const KEY_TYPES: Record<number, [length: number, shown: Shown]> = {
  7: [4, shownAddress],
  8: [16, shownAddress],
  9: [6, MAC],
  12: [1, protocolName],
  13: [2, shownNumber],
  19: [4, hostOrder(shownHex)],
  20: [4, hostOrder(shownNumber)],
  41: [16, shownLink],
};
/** In an interval, the first byte is the one that counts most. */
export const KEYS_IN_HOST_ORDER = [19, 20];

/** An address with a port, as nft has it; `…` for what is not known, and nothing for what is not there. */
export function endText(address: string | undefined, port: string | undefined): string {
  const colon = port === undefined ? "" : `:${port}`;
  return `${colon !== "" && address?.includes(":") ? `[${address}]` : address ?? ""}${colon}`;
}

export const shownPort = (value: Uint8Array): string => shownNumber(value.subarray(0, 2));

/** A target of xtables that does something, where its struct says what. */
export function targetText({ name, revision, info }: XtablesOperation, family: 4 | 6 | undefined): string {
  if (/^(REJECT|MASQUERADE|LOG)$/.test(name)) return name.toLowerCase();
  const text = shownUnlessShort(() => {
    if (name === "MARK" && revision === 2) {
      return `set 0x${[0, 4].map((at) => info.getUint32(at, true).toString(16)).join("/0x")}`;
    }
    const to = family && translationBy(name, revision, info, family);
    if (to === undefined) return undefined;
    const part = (bytes: KnownBytes | undefined, shown: Shown) =>
      bytes && (isKnown(bytes) ? shown(bytes.value) : "…");
    return `to ${endText(part(to.address, shownAddress), part(to.port, shownPort))}`;
  });
  return `xt ${foreignName(name)} ${text ?? "…"}`;
}

function shownUnlessShort(text: () => string | undefined): string | undefined {
  try {
    return text();
  } catch {
    // Shorter than its struct.
    return undefined;
  }
}
