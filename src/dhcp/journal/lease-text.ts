/** A lease as JSON: for the journal, and for whoever lists leases. Pure. */
import { formatAddress, formatPrefix, parseAddress, parsePrefix } from "../../net/address.ts";
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

export function textOf(offered: Offered): LeaseText {
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

/** Throws when the text is not what `textOf` writes. */
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

function finite(seconds: number): number | null {
  return seconds === Infinity ? null : seconds;
}

function must<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error("a lease with a malformed address");
  return value;
}
