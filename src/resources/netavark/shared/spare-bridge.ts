/** Whether anything still uses a network's bridge. */
import type { Host } from "../../../contract/host.ts";
import { hasPorts } from "../../../ffi/netlink/route/bridge.ts";
import { getLink } from "../../../ffi/netlink/route/link.ts";

/** Without a port, or gone already. */
export function isSpare(bridge: string, host: Host): boolean {
  const link = getLink(host.route, bridge);
  return link === undefined || !hasPorts(host.route, link);
}
