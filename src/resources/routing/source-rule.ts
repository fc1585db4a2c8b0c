/**
 * A routing policy rule of the container: packets from one of its addresses use a routing table of their own. DEL removes
 * it; a rule that is absent, or a namespace that is gone, counts as removed.
 *
 * Rules outlive links, and a later link may have the same address. The rule's priority is therefore chosen before it is
 * made and recorded, so that DEL removes the same rule.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import type { Host } from "../../contract/host.ts";
import { familyOf } from "../../ffi/netlink/route/address.ts";
import {
  addRoutingRule,
  addRuleImage,
  delRoutingRule,
  type ListedRule,
  listRoutingRules,
  type RoutingRule,
} from "../../ffi/netlink/route/rule.ts";
import { AF_UNSPEC } from "../../ffi/socket/socket.ts";
import { compareAddresses, parseAddress } from "../../net/address.ts";
import { undoUnlessRefused } from "../../contract/undo-unless-refused.ts";

interface SourceRuleSpec {
  /** An address without prefix length; of a copied rule, a subnet with it. */
  source: string;
  /** A rule that is copied, in hexadecimal (rule.ts): it may have other conditions as well. */
  image?: string;
  /** This and `priority` are undefined when another program did ADD. */
  table?: number;
  priority?: number;
}

export const sourceRuleKind: ResourceKind<SourceRuleSpec> = {
  kind: "source-rule",
  apply(spec, host) {
    const { route } = host.container!;
    try {
      if (spec.image === undefined) addRoutingRule(route, ruleOf(spec));
      else addRuleImage(route, Uint8Array.fromHex(spec.image));
    } catch (error) {
      undoUnlessRefused(error, () => sourceRuleKind.remove(spec, host));
      throw error;
    }
  },
  verify: (spec, host) => matching(spec, host).length > 0 ? [] : [`rule ${sourceRuleKind.describe(spec)} is missing`],
  remove(spec, host) {
    if (host.container === undefined) return;
    for (const rule of matching(spec, host)) delRoutingRule(host.container.route, rule);
  },
  repair(spec, host) {
    if (matching(spec, host).length === 0) sourceRuleKind.apply(spec, host);
  },
  describe: ({ source, table }) => `from ${source} lookup ${table ?? "a table of its own"}`,
};

export const sourceRule = resource(sourceRuleKind);

function ruleOf({ source, table = 0, priority }: SourceRuleSpec): RoutingRule {
  const bytes = parseAddress(source)!;
  return { family: familyOf(bytes), source: { bytes, bits: bytes.length * 8 }, table, priority };
}

function matching({ source, image, table, priority }: SourceRuleSpec, host: Host): ListedRule[] {
  if (image !== undefined) {
    return listRoutingRules(host.container!.route, AF_UNSPEC).filter(({ bytes }) => bytes.toHex() === image);
  }
  const bytes = parseAddress(source)!;
  const found: ListedRule[] = [];
  for (const rule of listRoutingRules(host.container!.route, familyOf(bytes))) {
    if (!rule.bySourceAlone || rule.source!.bits !== bytes.length * 8) continue;
    if (compareAddresses(rule.source!.bytes, bytes) !== 0) continue;
    if (table !== undefined && rule.table !== table) continue;
    if (priority === undefined || rule.priority === priority) found.push(rule);
  }
  return found;
}
