/** For plugins behind `ovs`: who has the packets of the host's end of a container's link. */
import type { Attachment } from "../../contract/plugin.ts";
import { getLink, type Link } from "../../ffi/netlink/route/link.ts";

/**
 * "kernel" and "process": Open vSwitch, by its module or by ovs-vswitchd itself, which takes packets before filters and
 * limits of incoming packets see them. Undefined: nobody, or a bridge of the kernel.
 */
export function datapathOf(
  { name, master }: Pick<Link, "name" | "master">,
  { host, plannedBefore }: Pick<Attachment<unknown>, "host" | "plannedBefore">,
): "kernel" | "process" | undefined {
  if (master !== undefined) return getLink(host.route, master)?.kind === "openvswitch" ? "kernel" : undefined;
  const ports = plannedBefore("ovs-port") as { hostName: string; isUserspace?: true }[];
  const planned = ports.find(({ hostName }) => hostName === name);
  if (planned !== undefined) return planned.isUserspace ? "process" : "kernel";
  const { isHostCopyDropped } = require(
    "../../resources/packets/host-copy-dropped.ts",
  ) as typeof import("../../resources/packets/host-copy-dropped.ts");
  return isHostCopyDropped(name, host) ? "process" : undefined;
}
