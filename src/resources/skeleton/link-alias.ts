/**
 * The alias of the container's link. A kind to copy (CONTRIBUTING.md, "Add a kind of resource"): it stands in no table.
 * DEL puts back the alias of before, unless somebody has given the link another one since; when the link is gone, there
 * is nothing to do.
 */
import { CniError, INTERNAL } from "../../cni/error.ts";
import type { Host } from "../../contract/host.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoUnlessRefused } from "../../contract/undo-unless-refused.ts";
import { getLink, type Link, setLink } from "../../ffi/netlink/route/link.ts";

/** IFALIASZ of linux/if.h, without the zero byte at the end. */
export const LONGEST_ALIAS = 255;

/** Stands in the ledger as JSON: everything that is needed to make it, to recognise it and to take it away. */
export interface LinkAliasSpec {
  ifName: string;
  alias: string;
  /** What the link had before; left out when nobody knows: without a ledger. */
  before?: string;
}

export const linkAliasKind: ResourceKind<LinkAliasSpec> = {
  kind: "link-alias",
  apply(spec, host) {
    const link = linkOf(spec, host);
    if (link === undefined) throw new CniError(INTERNAL, `Cannot find network interface ${spec.ifName}`);
    try {
      setLink(host.container!.route, link, { alias: spec.alias });
    } catch (error) {
      undoUnlessRefused(error, () => linkAliasKind.remove(spec, host));
      throw error;
    }
  },
  verify(spec, host) {
    const link = linkOf(spec, host);
    if (link === undefined) return [`link ${spec.ifName} is missing`];
    return link.alias === spec.alias ? [] : [`link ${spec.ifName} has the alias "${link.alias ?? ""}"`];
  },
  remove(spec, host) {
    const link = linkOf(spec, host);
    if (link?.alias === spec.alias) setLink(host.container!.route, link, { alias: spec.before ?? "" });
  },
  repair: (spec, host) => linkAliasKind.apply(spec, host),
  describe: ({ ifName, alias }) => `alias "${alias}" of ${ifName} in the container`,
};

export const linkAlias = resource(linkAliasKind);

/** Undefined when the link, or the container's namespace, is gone. */
function linkOf({ ifName }: LinkAliasSpec, { container }: Host): Link | undefined {
  return container && getLink(container.route, ifName);
}
