/** Links of the host: whether it is still the one that the ledger names, for which network Patchbay made it. */
import type { Host } from "../../../contract/host.ts";
import { getLink, type Link } from "../../../ffi/netlink/route/link.ts";

export interface HostLink {
  name: string;
  /** "" when it is not known: then the name decides. */
  mac: string;
}

/** Returns undefined when the link is gone, or another link has its name. */
export function findHostLink({ name, mac }: HostLink, host: Host): Link | undefined {
  const link = getLink(host.route, name);
  return link === undefined || (mac !== "" && link.mac !== mac) ? undefined : link;
}
