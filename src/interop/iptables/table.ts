/**
 * One table of iptables of one address family: what is in it, and what a plan may change. Implemented for nf_tables by
 * nft-table.ts and for the older kernel tables by legacy-table.ts; host-tables.ts picks one.
 */
import type { Family, IptablesRule } from "./rule.ts";

export interface IptablesTable {
  readonly family: Family;
  hasChain(name: string): boolean;
  /** In order; none when there is no such chain. */
  rules(chain: string): readonly PresentRule[];
  /**
   * The rules of the chain that belong to `owner` or to nobody. Does not decode the others, of which there may be many.
   * The older kernel tables keep no owners: there it is all rules.
   */
  freeRules(chain: string, owner: string): readonly PresentRule[];
  allRules(): readonly PresentRule[];
  /** The rules of `from` that lead to `to`. Usually found without listing `from`, if both were written together. */
  jumps(from: string, to: string): readonly PresentRule[];
}

export interface PresentRule {
  readonly chain: string;
  /** The chain after `-j` or `-g`, if it names one. */
  readonly leadsTo: string | undefined;
  readonly comment: string | undefined;
  /** The bytes of `-s` that are compared, or undefined. */
  readonly source: Uint8Array | undefined;
  /** The bytes of `-d` that are compared, or undefined. */
  readonly destination: Uint8Array | undefined;
  /** The ports of `--dports`, or undefined. */
  readonly destinationPorts: readonly number[] | undefined;
  /** What `append` was given. The older kernel tables have no room for it. */
  readonly owner: string | undefined;
  is(rule: IptablesRule): boolean;
  /** Whether these are among its conditions. */
  matches(conditions: Omit<IptablesRule, "target">): boolean;
}

/** Reading after a change still shows the table as it was before. */
export interface TableChange extends IptablesTable {
  /** The chain must not exist yet. The kernel's own chains need not be made: they come with their first rule. */
  createChain(name: string): void;
  /** At the end. `owner` is stored with the rule where iptables does not show it. */
  append(chain: string, rule: IptablesRule, owner?: string): void;
  /** Before all others. */
  insert(chain: string, rule: IptablesRule, owner?: string): void;
  delete(rule: PresentRule): void;
  /** Deletes all rules of the chain. Deleting many one by one is slow: the kernel searches the chain for each. */
  flush(chain: string): void;
  /** Empties the chain, and deletes it unless a remaining rule leads to it. */
  deleteChain(name: string): void;
}

export type TablePlan = (table: TableChange) => void;

/** The rules that were not found. Checks the expected position first, because a comparison takes microseconds. */
export function missingAmong(found: readonly PresentRule[], wanted: readonly IptablesRule[]): IptablesRule[] {
  const missing: IptablesRule[] = [];
  let next = 0;
  for (const rule of wanted) {
    const at = found[next]?.is(rule) ? next : found.findIndex((each) => each.is(rule));
    if (at < 0) missing.push(rule);
    else next = at + 1;
  }
  return missing;
}

export function isAmong(rule: IptablesRule, found: readonly PresentRule[]): boolean {
  return found.some((each) => each.is(rule));
}
