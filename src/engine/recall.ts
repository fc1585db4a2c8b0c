/** What the container's namespace itself tells of an attachment. */
import type { Interface, IpConfig, Result } from "../cni/result.ts";
import { CURRENT_VERSION } from "../cni/versions.ts";
import { listAddresses } from "../ffi/netlink/route/address.ts";
import { getLink } from "../ffi/netlink/route/link.ts";
import { formatPrefix, isLinkLocal } from "../net/address.ts";
import { canonicalMac } from "../net/mac.ts";
import type { Host } from "./host.ts";

/** Whether the container has the link that the result tells of. */
export function hasLinkOf({ interfaces = [] }: Result, ifName: string, { container }: Host): boolean {
  if (container === undefined) return false;
  const mac = interfaces.findLast(({ name, sandbox }) => name === ifName && sandbox === container.netnsPath)?.mac;
  return !!mac && getLink(container.route, ifName)?.mac === (canonicalMac(mac) ?? mac);
}

/** The result of ADD as far as the kernel has it, for a DEL that gets none; undefined when there is no such link. */
export function recalledResult(ifName: string, { container, route }: Host): Result | undefined {
  const inside = container && getLink(container.route, ifName);
  if (inside === undefined) return undefined;
  const interfaces: Interface[] = [];
  const outside = inside.kind === "veth" && inside.link !== undefined ? getLink(route, inside.link) : undefined;
  if (outside?.link === inside.index) interfaces.push({ name: outside.name, mac: outside.mac });
  interfaces.push({ name: ifName, mac: inside.mac, sandbox: container!.netnsPath });
  const ips: IpConfig[] = listAddresses(container!.route, inside.index)
    .filter(({ bytes }) => !isLinkLocal(bytes))
    .map((address) => ({ address: formatPrefix(address), interface: interfaces.length - 1 }));
  return { cniVersion: CURRENT_VERSION, interfaces, ips };
}
