/** Chains and rules of iptables that all containers share. They stay when the last container is removed. */
import type { IptablesRule as Rule } from "../../../iptables/rule.ts";
import { isAmong, type PresentRule as FoundRule, type TableChange } from "../../../iptables/table.ts";

export interface SharedRule {
  chain: string;
  rule: Rule;
  /** It stands at the beginning of its chain, else at the end. */
  first?: true;
}

/** Makes what is missing. Returns the chains that were made. `present` lists the rules among which one may be. */
export function addShared(
  table: TableChange,
  chains: readonly string[],
  rules: readonly SharedRule[],
  present: (chain: string) => readonly FoundRule[],
): string[] {
  const created = chains.filter((chain) => !table.hasChain(chain));
  for (const chain of created) table.createChain(chain);
  for (const { chain, rule, first } of rules) {
    if (!created.includes(chain) && isAmong(rule, present(chain))) continue;
    if (first) table.insert(chain, rule);
    else table.append(chain, rule);
  }
  return created;
}
