/** The bridge of a network of podman's: its specification, its sysctls, and whether anything uses it. */
import { refusals } from "../../link/shared/refusals.ts";
import type { Host } from "../../../contract/host.ts";
import { hasPorts } from "../../../ffi/netlink/route/bridge.ts";
import { getLink } from "../../../ffi/netlink/route/link.ts";
import { readSysctl, writeSysctl } from "../../../ffi/sysctl.ts";
import { systemText } from "./failure.ts";

export interface PodmanBridgeSpec {
  name: string;
  isManaged: boolean;
  isInternal: boolean;
  /** The gateways of its subnets, with prefix length. */
  gateways: string[];
  hasV6: boolean;
  mtu?: number;
  /** The VRF it belongs to. */
  vrf?: string;
  filtersVlans: boolean;
}

type Sysctls = [key: string, value: string][];

/** The sysctls of the host. */
export function hostSysctls({ isInternal, hasV6 }: PodmanBridgeSpec): Sysctls {
  if (isInternal) return [];
  return [["net/ipv4/ip_forward", "1"], ...hasV6 ? [["net/ipv6/conf/all/forwarding", "1"]] as Sysctls : []];
}

/** The sysctls of the bridge itself. */
export function linkSysctls({ name, isInternal, hasV6 }: PodmanBridgeSpec): Sysctls {
  const v4 = `net/ipv4/conf/${name}`, v6 = `net/ipv6/conf/${name}`;
  const all: Sysctls = [];
  if (isInternal) {
    all.push([`${v4}/forwarding`, "0"]);
    if (hasV6) all.push([`${v6}/forwarding`, "0"]);
  }
  if (hasV6) all.push([`${v6}/accept_dad`, "0"]);
  // Loose: a reply may take another way than the request.
  return [...all, [`${v4}/rp_filter`, "2"]];
}

export function bridgeSysctls(spec: PodmanBridgeSpec): Sysctls {
  return [
    ...hostSysctls(spec),
    ...linkSysctls(spec),
    ...refusals(spec.name).map((key): [string, string] => [key, "0"]),
  ];
}

/** Whether nothing uses the bridge any more: it has no port, or does not exist. */
export function isSpare(bridge: string, host: Host): boolean {
  const link = getLink(host.route, bridge);
  return link === undefined || !hasPorts(host.route, link);
}

/**
 * As netavark does: only where it differs, because a /proc/sys without write access may be right already. Returns whether
 * it did.
 */
export function ensureSysctl(key: string, value: string): boolean {
  try {
    if (readSysctl(key) === value) return false;
    writeSysctl(key, value);
    return true;
  } catch (error) {
    throw new Error(`set sysctl ${key}: ${systemText(error)}`, { cause: error });
  }
}
