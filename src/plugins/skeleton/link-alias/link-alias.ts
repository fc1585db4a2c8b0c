/**
 * link-alias: gives the container's link an alias. A plugin to copy (CONTRIBUTING.md, "Add a plugin"). It is in no
 * table, so this program does not contain it.
 *
 * Owns in the kernel: the alias of the link CNI_IFNAME in the container.
 */
import { CniError, INTERNAL, INVALID_CONFIG } from "../../../cni/error.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { getLink } from "../../../ffi/netlink/route/link.ts";
import { linkAlias, LONGEST_ALIAS } from "../../../resources/skeleton/link-alias.ts";
import { validateLinkAliasConf } from "./link-alias.validate.gen.ts";
import type { Result } from "../../../cni/result.ts";
import type { LinkAliasConf } from "./link-alias.schema.ts";

export default definePlugin<LinkAliasConf>({
  name: "link-alias",
  validate: validateLinkAliasConf,
  // For what the schema cannot express. The engine calls it before it tells the story.
  judge({ alias }) {
    const bytes = new TextEncoder().encode(alias).length;
    if (bytes >= 1 && bytes <= LONGEST_ALIAS) return;
    throw new CniError(
      INVALID_CONFIG,
      `"alias" must have 1 to ${LONGEST_ALIAS} bytes`,
      `it has ${bytes}: ${JSON.stringify(alias)}`,
    );
  },
  // This plugin works on a link that earlier plugins made.
  missingPrevResult: "missing prevResult from earlier plugin",
  add,
});

/** The story of ADD. The engine also tells it to check, to undo and to plan (contract/plugin.ts). */
function add(at: Attachment<LinkAliasConf>): Result {
  const { conf, ifName } = at;
  // Only ADD can see the previous alias.
  const before = at.inAdd(() => aliasNow(at));
  at.apply(linkAlias({ ifName, alias: conf.alias, before }));
  return at.prevResult ?? { cniVersion: conf.cniVersion };
}

function aliasNow({ host, ifName }: Attachment<LinkAliasConf>): string {
  const link = getLink(host.container!.route, ifName);
  if (link === undefined) throw new CniError(INTERNAL, `Cannot find network interface ${ifName}: Link not found`);
  return link.alias ?? "";
}
