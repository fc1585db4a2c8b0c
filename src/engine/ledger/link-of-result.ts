/** Whether the container has the link that a result names. */
import type { Result } from "../../cni/result.ts";
import { getLink } from "../../ffi/netlink/route/link.ts";
import { canonicalMac } from "../../net/mac.ts";
import type { Host } from "../../contract/host.ts";

export function hasLinkOf(
  { interfaces = [] }: Result,
  ifName: string,
  { container }: Pick<Host, "container">,
): boolean {
  if (container === undefined) return false;
  const mac = interfaces.findLast(({ name, sandbox }) => name === ifName && sandbox === container.netnsPath)?.mac;
  return !!mac && getLink(container.route, ifName)?.mac === (canonicalMac(mac) ?? mac);
}
