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
import { addRule, delRule, type ListedRule, listRules } from "../../ffi/netlink/route/rule.ts";
import { compareAddresses, parseAddress } from "../../net/address.ts";
import { undoUnlessRefused } from "../../contract/undo-unless-refused.ts";

interface SourceRuleSpec {
  /** An address without prefix length. */
  source: string;
  /** This and `priority` are undefined when another program did ADD. */
  table?: number;
  priority?: number;
}

export const sourceRuleKind: ResourceKind<SourceRuleSpec> = {
  kind: "source-rule",
  unmade: undefined,
  apply(spec, host) {
    const { source, table = 0, priority } = spec;
    const bytes = parseAddress(source)!;
    const prefix = { bytes, bits: bytes.length * 8 };
    try {
      addRule(host.container!.route, { family: familyOf(bytes), source: prefix, table, priority });
    } catch (error) {
      undoUnlessRefused(error, () => sourceRuleKind.remove(spec, host));
      throw error;
    }
  },
  verify: (spec, host) => matching(spec, host).length > 0 ? [] : [`rule ${sourceRuleKind.describe(spec)} is missing`],
  remove(spec, host) {
    if (host.container === undefined) return;
    for (const rule of matching(spec, host)) delRule(host.container.route, rule);
  },
  repair(spec, host) {
    if (matching(spec, host).length === 0) sourceRuleKind.apply(spec, host);
  },
  describe: ({ source, table }) => `from ${source} lookup ${table ?? "a table of its own"}`,
};

export const sourceRule = resource(sourceRuleKind);

function matching({ source, table, priority }: SourceRuleSpec, host: Host): ListedRule[] {
  const bytes = parseAddress(source)!;
  const found: ListedRule[] = [];
  for (const rule of listRules(host.container!.route, familyOf(bytes))) {
    if (!rule.bySourceAlone || rule.source!.bits !== bytes.length * 8) continue;
    if (compareAddresses(rule.source!.bytes, bytes) !== 0) continue;
    if (table !== undefined && rule.table !== table) continue;
    if (priority === undefined || rule.priority === priority) found.push(rule);
  }
  return found;
}
