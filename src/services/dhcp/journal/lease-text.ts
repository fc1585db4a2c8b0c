/** A lease as JSON: for the journal, and for callers that list leases. Pure. */
import { isObject } from "../../../cni/json.ts";
import { formatAddress, formatPrefix, parseAddress, parsePrefix } from "../../../net/address.ts";
import type { Offered } from "../v4/message/offer.ts";

/** Times in seconds; null is for ever. */
export interface LeaseText {
  address: string;
  server: string;
  routers: string[];
  /** Without `gateway` the destination is on the link. */
  routes?: { destination: string; gateway?: string }[];
  isClassless: boolean;
  nameServers: string[];
  domain?: string;
  search: string[];
  timeServers: string[];
  mtu?: number;
  broadcast?: string;
  lease: number | null;
  renew: number | null;
  rebind: number | null;
}

export function leaseTextOf(offered: Offered): LeaseText {
  const { address, server, routers, routes, nameServers, timeServers, broadcast, times, domain, mtu } = offered;
  return {
    address: formatPrefix(address),
    server: formatAddress(server),
    routers: routers.map(formatAddress),
    routes: routes?.map(({ destination, gateway }) => ({
      destination: formatPrefix(destination),
      gateway: gateway && formatAddress(gateway),
    })),
    isClassless: offered.isClassless,
    nameServers: nameServers.map(formatAddress),
    domain,
    search: offered.search,
    timeServers: timeServers.map(formatAddress),
    mtu,
    broadcast: broadcast && formatAddress(broadcast),
    lease: finite(times.lease),
    renew: finite(times.renew),
    rebind: finite(times.rebind),
  };
}

/** Throws when the text is not what `leaseTextOf` writes. */
export function offeredOf(text: LeaseText): Offered {
  return {
    address: must(parsePrefix(text.address)),
    server: must(parseAddress(text.server)),
    routers: text.routers.map((one) => must(parseAddress(one))),
    routes: text.routes?.map(({ destination, gateway }) => ({
      destination: must(parsePrefix(destination)),
      gateway: gateway === undefined ? undefined : must(parseAddress(gateway)),
    })),
    isClassless: text.isClassless,
    nameServers: text.nameServers.map((one) => must(parseAddress(one))),
    domain: text.domain,
    search: text.search,
    timeServers: text.timeServers.map((one) => must(parseAddress(one))),
    mtu: text.mtu,
    broadcast: text.broadcast === undefined ? undefined : must(parseAddress(text.broadcast)),
    times: { lease: text.lease ?? Infinity, renew: text.renew ?? Infinity, rebind: text.rebind ?? Infinity },
    ignored: [],
  };
}

/** Throws when it is something else: it comes from a file, or from another process. */
export function requireLease(value: unknown): asserts value is LeaseText {
  if (!isObject(value)) throw new Error("a lease that is no object");
  requireTimes(value, ["lease", "renew", "rebind"]);
  const { domain, search, mtu, isClassless } = value;
  if (typeof isClassless !== "boolean") throw new Error("a lease with a malformed isClassless");
  if (domain !== undefined && typeof domain !== "string") throw new Error("a lease with a malformed domain");
  if (mtu !== undefined && typeof mtu !== "number") throw new Error("a lease with a malformed mtu");
  requireTexts(search, "search");
  offeredOf(value as unknown as LeaseText);
}

export function requireTexts(value: unknown, key: string): void {
  const areTexts = Array.isArray(value) && value.every((one) => typeof one === "string");
  if (!areTexts) throw new Error(`a lease with a malformed ${key}`);
}

/** null is for ever. */
export function requireTimes(within: object, keys: readonly string[]): void {
  const isTime = (value: unknown) => value === null || typeof value === "number";
  const wrong = keys.find((key) => !isTime((within as Record<string, unknown>)[key]));
  if (wrong !== undefined) throw new Error(`a record without ${wrong}`);
}

export function finite(seconds: number): number | null {
  return seconds === Infinity ? null : seconds;
}

export function must<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error("a lease with a malformed address");
  return value;
}
