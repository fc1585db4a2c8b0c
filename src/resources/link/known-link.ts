/**
 * A link of the host that the ledger speaks of. Names of links are used again, and so are their numbers; with the MAC
 * beside the name it is the one that was meant.
 */
import type { Host } from "../../contract/host.ts";
import { getLink, type Link } from "../../ffi/netlink/route/link.ts";

export interface KnownLink {
  name: string;
  /** "" when it is not known: then the name alone counts. */
  mac: string;
}

/** Undefined when it is gone, or the name has become another link's. */
export function findKnownLink({ name, mac }: KnownLink, host: Host): Link | undefined {
  const link = getLink(host.route, name);
  return link === undefined || (mac !== "" && link.mac !== mac) ? undefined : link;
}
