/**
 * The gateway's address on the bridge, or on its VLAN gateway link. The network's containers share it, so DEL leaves it,
 * present or not. Only a failed ADD removes the address it has just added.
 */
import { AF_INET, AF_INET6 } from "../../ffi/socket/socket.ts";
import { CniError, INTERNAL } from "../../cni/error.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import { addAddress, delAddress, listAddresses } from "../../ffi/netlink/route/address.ts";
import { linkTo } from "../../ffi/netlink/route/route-lookup.ts";
import { linkIndex, setLink } from "../../ffi/netlink/route/link.ts";
import { awaitChange } from "../../ffi/netlink/events.ts";
import { RTNLGRP_IPV6_ROUTE } from "../../ffi/netlink/uapi/rtnetlink.ts";
import { formatPrefix, overlap, parsePrefix, type Prefix } from "../../net/address.ts";
import { parseMac } from "../../net/mac.ts";
import { whyNoV6 } from "./shared/disabled-v6.ts";
import { mendWay, wayDifference } from "./shared/way-to-container.ts";
import type { Host } from "../../contract/host.ts";

interface BridgeGatewaySpec {
  ifName: string;
  /** In CIDR notation. */
  address: string;
  /** The container's, in CIDR notation. */
  container: string;
  /** Replace an address that conflicts instead of failing. */
  force: boolean;
  /** The MAC that the link is to have, which containers know; "" when nobody says. */
  mac: string;
  /** The link keeps it without being told, unless it is made anew. */
  keepsMac?: boolean;
}

/** The link's addresses that are in the way of `wanted`; undefined when it has that already. */
function othersThan(wanted: Prefix, index: number, host: Host): Prefix[] | undefined {
  const v4 = wanted.bytes.length === 4, text = formatPrefix(wanted);
  const present = listAddresses(host.route, index, v4 ? AF_INET : AF_INET6);
  for (const other of present) if (formatPrefix(other) === text) return undefined;
  return present.filter((other) => v4 || overlap(other, wanted));
}

function requireNone([other]: readonly Prefix[], ifName: string, address: string): void {
  if (other === undefined) return;
  throw new CniError(
    INTERNAL,
    `failed to set bridge addr: "${ifName}" already has an IP address different from ${address}`,
    `it has ${formatPrefix(other)}; remove that address, or set "forceAddress": true, or use another bridge`,
  );
}

export const bridgeGatewayKind: ResourceKind<BridgeGatewaySpec, { added: boolean }> = {
  kind: "bridge-gateway",
  isSharedOnHost: true,
  unmade: { added: false },
  judge({ ifName, address, force }, host) {
    const wanted = parsePrefix(address)!, index = linkIndex(host.route, ifName);
    const others = index === undefined ? [] : othersThan(wanted, index, host);
    if (others === undefined) return;
    if (!force) requireNone(others, ifName, address);
    if (wanted.bytes.length === 16) requireV6(ifName);
  },
  apply({ ifName, address, force, mac, keepsMac = false }, host) {
    const wanted = parsePrefix(address)!;
    const index = linkIndex(host.route, ifName);
    if (index === undefined) throw new CniError(INTERNAL, `failed to set bridge addr: link "${ifName}" not found`);
    const others = othersThan(wanted, index, host);
    if (!force) requireNone(others ?? [], ifName, address);
    for (const other of others ?? []) delAddress(host.route, index, other);
    let added = others !== undefined; // even if only the kernel's answer is lost
    try {
      if (added) added = addAddress(host.route, index, wanted, { skipDad: true }) === "added";
      if (mac !== "" && (added || !keepsMac)) {
        setLink(host.route, { index, name: ifName }, { address: parseMac(mac) });
      }
      if (added && wanted.bytes.length === 16) awaitUse(wanted, host);
      return { added };
    } catch (error) {
      if (added) undoAfter(error, () => void delAddress(host.route, index, wanted));
      if (wanted.bytes.length === 16) requireV6(ifName);
      throw error;
    }
  },
  undo({ ifName, address }, { added }, host) {
    const index = added ? linkIndex(host.route, ifName) : undefined;
    if (index !== undefined) delAddress(host.route, index, parsePrefix(address)!);
  },
  repair(spec, host) {
    bridgeGatewayKind.apply(spec, host);
    mendWay(spec, host);
  },
  remove: () => {},
  verify({ ifName, address }, host) {
    const index = linkIndex(host.route, ifName);
    if (index === undefined) return [`link ${ifName} is missing`];
    const wanted = parsePrefix(address)!;
    if (othersThan(wanted, index, host) !== undefined) {
      const why = wanted.bytes.length === 16 ? whyNoV6(ifName) : undefined;
      return [`gateway address ${address} is missing on ${ifName}${why === undefined ? "" : `: ${why}`}`];
    }
    return [];
  },
  inTheWay: (spec, host) => wayDifference(spec, host),
  describe: ({ ifName, address }) => `gateway address ${address} on ${ifName}`,
};

export const bridgeGateway = resource(bridgeGatewayKind);

function requireV6(ifName: string): void {
  const why = whyNoV6(ifName);
  if (why !== undefined) throw new CniError(INTERNAL, `failed to set bridge addr: ${why}`);
}

/** Only ends the wait on a host that is very busy; nothing is wrong then. */
const PATIENCE_MS = 1000;

/**
 * The kernel takes an IPv6 address into use a moment after it has answered, also without duplicate address detection. Until
 * its route to the address is there, the host forwards what the container sends to it.
 */
function awaitUse({ bytes }: Prefix, { route }: Host): void {
  awaitChange(RTNLGRP_IPV6_ROUTE, PATIENCE_MS, () => linkTo(route, bytes) === "lo");
}
