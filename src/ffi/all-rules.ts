/** The rules that packets of this thread's network namespace meet: those of nf_tables, and those of the older tables. */
import { isSameBytes } from "../net/address.ts";
import type { Ruleset } from "../net/netfilter/ruleset.ts";
import { type AskNetfilter, readRuleset } from "./netlink/nftables/whole-ruleset.ts";
import { legacyChains } from "./xtables/legacy-chains.ts";
import { type LegacyTable, readLegacyTables } from "./xtables/legacy-tables.ts";

const ATTEMPTS = 5;

/**
 * Undefined when rules never stood still while they were read. What `ask` asks is in this thread's namespace. `mayFail`: as
 * for `readRuleset`.
 */
export function readAllRules(ask: AskNetfilter, mayFail = false): Ruleset | undefined {
  let before: LegacyTable[] = [];
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const rules = readRuleset(ask, mayFail);
    if (rules === undefined) return undefined;
    const tables = readLegacyTables();
    // A table stays, so what is not there now was not there before. One that is there has no number of its changes.
    if (tables.length === 0) return rules;
    if (isSame(before, tables)) return { ...rules, chains: [...rules.chains, ...tables.flatMap(legacyChains)] };
    before = tables;
  }
  return undefined;
}

function isSame(before: readonly LegacyTable[], after: readonly LegacyTable[]): boolean {
  return before.length === after.length &&
    before.every(({ answer }, index) => isSameBytes(answer, after[index]!.answer));
}
