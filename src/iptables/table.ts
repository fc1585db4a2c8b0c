/**
 * One table of iptables of one address family, whichever form the host keeps it in: what is there, and what to change.
 *
 *     changeTable(host, "nat", [4, 6], (table) => {
 *       if (table.hasChain(chain)) return;
 *       table.createChain(chain);
 *       table.append(chain, rule);
 *       table.append("POSTROUTING", jump);
 *     });
 *
 * The plan runs once a family, looks at the table, and says what is to change. All of it happens at once, and only if
 * the table is still the one that was looked at; otherwise the plan runs again.
 */
import type { NetlinkSocket } from "../ffi/netlink/socket.ts";
import { findInPath, hasLegacyTable, tablesForm } from "./which-iptables.ts";
import type { Family, Rule, TableName } from "./rule.ts";

export interface Table {
  readonly family: Family;
  hasChain(name: string): boolean;
  /** In order; none when there is no such chain. */
  rules(chain: string): readonly FoundRule[];
  /**
   * Those of them that nobody but `owner` owns: without a look into the others, of which there may be many. The older
   * kernel tables know no owners, so there it is all of them.
   */
  freeRules(chain: string, owner?: string): readonly FoundRule[];
  allRules(): readonly FoundRule[];
  /** The rules of `from` that lead to `to`; most often without a look at the others, if both were written together. */
  jumps(from: string, to: string): readonly FoundRule[];
}

export interface FoundRule {
  readonly chain: string;
  /** The chain behind `-j` or `-g`, if it names one. */
  readonly leadsTo: string | undefined;
  readonly comment: string | undefined;
  /** The bytes of `-s` that are compared, or undefined. */
  readonly source: Uint8Array | undefined;
  /** What `append` was given; the older kernel tables have no room for it. */
  readonly owner: string | undefined;
  is(rule: Rule): boolean;
}

/** What a plan may do. Looking goes on to show the table as it was before. */
export interface TableChange extends Table {
  /** There must be no such chain. Those of the kernel need not be made: they come with their first rule. */
  createChain(name: string): void;
  /** At the end. `owner` is kept beside the rule where iptables does not show it. */
  append(chain: string, rule: Rule, owner?: string): void;
  /** Before all others. */
  insert(chain: string, rule: Rule): void;
  delete(rule: FoundRule): void;
  /** Deletes every rule of the chain that is there: for many, the kernel would search through all of them for each. */
  flush(chain: string): void;
  /** Empties the chain and deletes it, unless a rule that stays leads to it: then it is left empty. */
  deleteChain(name: string): void;
}

export type Plan = (table: TableChange) => void;

/** What has a netfilter socket when it is asked for one. */
export interface NetfilterHost {
  readonly netfilter: NetlinkSocket;
}

// Loaded when used: a process needs one of them.
const nft = () => require("./nft-table.ts") as typeof import("./nft-table.ts");
const legacy = () => require("./legacy-table.ts") as typeof import("./legacy-table.ts");

/** Whether the host's iptables writes the older kernel tables. */
export function isLegacyHost(): boolean {
  return tablesForm(findInPath("iptables")) === "legacy";
}

/**
 * Changes the table in the form that the host's iptables has it in. Answers false when that is nf_tables and the kernel
 * has none. In the older form one family comes after the other, and the first stays changed when the second fails.
 */
export function changeTable(host: NetfilterHost, name: TableName, families: readonly Family[], plan: Plan): boolean {
  if (!isLegacyHost()) return nft().changeTable(host.netfilter, name, families, plan);
  for (const family of families) legacy().changeTable(name, family, plan);
  return true;
}

/**
 * For removals, which must find what was written when the host had the other form: changes the table in nf_tables, and
 * in the older form too if it is in use and `thorough`, or nothing was to be changed before. `socket` is undefined
 * where the kernel has no nf_tables.
 */
export function changeEveryTable(
  socket: NetlinkSocket | undefined,
  name: TableName,
  families: readonly Family[],
  thorough: boolean,
  plan: Plan,
): void {
  let changed = false, failure: unknown;
  try {
    if (socket !== undefined) nft().changeTable(socket, name, families, plan, () => changed = true);
  } catch (error) {
    failure = error;
  }
  if (thorough || !changed) {
    for (const family of families) if (hasLegacyTable(family, name)) legacy().changeTable(name, family, plan);
  }
  if (failure !== undefined) throw failure;
}

/** The table in the form the host's iptables has it in. */
export function readTable(host: NetfilterHost, name: TableName, family: Family): Table {
  return isLegacyHost() ? legacy().readTable(name, family) : nft().readTable(host.netfilter, name, family);
}

/** Those that are not among the found. What stands in the same order is not searched for: comparing takes microseconds. */
export function missingAmong(found: readonly FoundRule[], wanted: readonly Rule[]): Rule[] {
  const missing: Rule[] = [];
  let next = 0;
  for (const rule of wanted) {
    const at = found[next]?.is(rule) ? next : found.findIndex((each) => each.is(rule));
    if (at < 0) missing.push(rule);
    else next = at + 1;
  }
  return missing;
}

export function isAmong(rule: Rule, found: readonly FoundRule[]): boolean {
  return found.some((each) => each.is(rule));
}
