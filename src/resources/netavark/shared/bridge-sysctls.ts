/** The bridge of a network of podman's: its specification, its sysctls, and whether anything uses it. */
import { advertisements, redirects } from "../../link/shared/refusals.ts";

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

/** `link`: its own name. The one of the configuration may be an alternative one. */
export function refusals(link: string): string[] {
  return [...advertisements(link), ...redirects(link)];
}

export function bridgeSysctls(spec: PodmanBridgeSpec): Sysctls {
  return [
    ...hostSysctls(spec),
    ...linkSysctls(spec),
    ...refusals(spec.name).map((key): [string, string] => [key, "0"]),
  ];
}
