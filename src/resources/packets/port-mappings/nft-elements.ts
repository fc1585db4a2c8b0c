/** Which elements of which maps the mappings of a container become; nftables.ts shows the table. Pure. */
import { type Family, protocolNumbers } from "../../../interop/iptables/rule.ts";
import type { Key } from "../../../ffi/netlink/nftables/set.ts";
import { isSameBytes } from "../../../net/address.ts";
import {
  addressOf,
  appliesTo,
  type Conditions,
  hostAddress,
  type PortMapping,
  type PortMappingsSpec,
} from "./spec.ts";

export const OWNERS = "owners", PORTS = "ports", PORTS_AT = "ports_at", RANGES = "ranges", RANGES_AT = "ranges_at";
/** The maps of a scope. */
export const KINDS = [OWNERS, PORTS, PORTS_AT, RANGES, RANGES_AT];
/** The shortest run of ports that becomes one element. */
const SHORTEST_RUN = 16;

/** The mappings of one family with the same conditions. They share maps and rules. */
export interface Scope {
  /** The name of its counter, with which the names of its maps end. */
  name: string;
  size: 4 | 16;
  conditions: Conditions | undefined;
}

export const inScope = (kind: string, scope: Scope) => `${kind}_${scope.name}`;

export function scopeOf(spec: PortMappingsSpec, family: Family): Scope {
  const { protocol: _, ports: __, ...ofPackets } = spec.conditions?.[family] ?? {};
  const conditions = Object.keys(ofPackets).length === 0 ? undefined : ofPackets;
  const own = conditions &&
    new Bun.CryptoHasher("sha256").update(JSON.stringify(conditions)).digest("hex").slice(0, 8);
  return {
    name: own === undefined ? `ipv${family}` : `ipv${family}_${own}`,
    size: family === 4 ? 4 : 16,
    conditions,
  };
}

/** An element to be made, and the mapping it is for. */
export interface PortPlace extends Key {
  map: string;
  data: Uint8Array;
  mapping: PortMapping;
}

export function placesOf(spec: PortMappingsSpec, family: Family, scope: Scope): PortPlace[] {
  const address = addressOf(spec, family)!.bytes, places: PortPlace[] = [], seen = new Set<string>();
  for (const { mapping, last } of runsOf(spec, family)) {
    const { protocol, hostPort, containerPort } = mapping, at = hostAddress(mapping);
    const key = keyOf(at, protocolNumbers[protocol], hostPort), name = key.toHex();
    // "All addresses" may have been written in two ways.
    if (seen.has(name)) continue;
    seen.add(name);
    if (last === hostPort) {
      const map = inScope(at === undefined ? PORTS : PORTS_AT, scope);
      places.push({ map, key, data: joined(address, paddedPort(containerPort)), mapping });
    } else {
      const map = inScope(at === undefined ? RANGES : RANGES_AT, scope);
      const keyEnd = keyOf(at, protocolNumbers[protocol], last);
      places.push({ map, key, keyEnd, data: address, mapping });
    }
  }
  return places;
}

/** The mappings. A long run of ports that keep their number becomes one, from the first port to `last`. */
function runsOf(spec: PortMappingsSpec, family: Family): { mapping: PortMapping; last: number }[] {
  const runs: { mapping: PortMapping; last: number }[] = [], unchanged: PortMapping[] = [];
  for (const mapping of spec.mappings) {
    if (!appliesTo(spec, mapping, family)) continue;
    if (mapping.hostPort === mapping.containerPort) unchanged.push(mapping);
    else runs.push({ mapping, last: mapping.hostPort });
  }
  const kindOf = ({ protocol, hostIp = "" }: PortMapping) => `${protocol} ${hostIp}`;
  if (unchanged.length >= SHORTEST_RUN) {
    unchanged.sort((a, b) => kindOf(a) < kindOf(b) ? -1 : kindOf(a) > kindOf(b) ? 1 : a.hostPort - b.hostPort);
  }
  for (let at = 0, end; at < unchanged.length; at = end) {
    const first = unchanged[at]!;
    for (end = at + 1; end < unchanged.length; end++) {
      const next = unchanged[end]!;
      if (next.hostPort !== first.hostPort + end - at || kindOf(next) !== kindOf(first)) break;
    }
    if (end - at >= SHORTEST_RUN) runs.push({ mapping: first, last: unchanged[end - 1]!.hostPort });
    else for (const mapping of unchanged.slice(at, end)) runs.push({ mapping, last: mapping.hostPort });
  }
  return runs;
}

/** Each part of a key is padded to registers of four bytes. */
export function keyOf(address: Uint8Array | undefined, protocol: number, port: number): Uint8Array {
  const end = joined(new Uint8Array([protocol, 0, 0, 0]), paddedPort(port));
  return address === undefined ? end : joined(address, end);
}

function paddedPort(port: number): Uint8Array {
  return new Uint8Array([port >> 8, port & 0xff, 0, 0]);
}

export function portOf(key: Uint8Array): number {
  return key[key.length - 4]! << 8 | key[key.length - 3]!;
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

/** Whether address and protocol are the same and the ports overlap. */
export function overlaps(a: Key, b: Key): boolean {
  for (let index = 0; index < a.key.length - 4; index++) if (a.key[index] !== b.key[index]) return false;
  return portOf(a.key) <= portOf(b.keyEnd ?? b.key) && portOf(b.key) <= portOf(a.keyEnd ?? a.key);
}

export function isSame(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && isSameBytes(a, b));
}

export function isV6Map(map: string): boolean {
  return map.endsWith("ipv6") || map.includes("ipv6_");
}
