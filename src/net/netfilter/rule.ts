/**
 * One rule and one packet: with which packets it ends, and with which the next rule begins. Where something is unknown,
 * both are given.
 */
import { isEqual, unknown } from "./known-bytes.ts";
import { hasBytes } from "./loads.ts";
import type { PacketFacts } from "./packet.ts";
import type { Operation, Rule, RuleChain, Ruleset } from "./ruleset.ts";
import { type Branch, type RuleEnd, step } from "./step.ts";

export interface RuleResult {
  ends: RuleEnd[];
  /** The packets that go on to the next rule. */
  through: PacketFacts[];
  /** The first operation that left open whether the rule matches. */
  doubt?: string;
}

/** A rule that branches more is not followed. */
const MOST_BRANCHES = 64;
/** The branch that each rule begins with has them, and ends with the rule. */
const REGISTERS = unknown(64);

export function applyRule(rule: Rule, packet: PacketFacts, chain: RuleChain, ruleset: Ruleset): RuleResult {
  const result: RuleResult = { ends: [], through: [] };
  const setNamed = (name: string) => ruleset.setOf(chain, name);
  REGISTERS.value.fill(0);
  REGISTERS.mask.fill(0);
  let branches: Branch[] = [{ packet, registers: REGISTERS }];
  for (const operation of rule.operations) {
    const next: Branch[] = [];
    for (const branch of branches) {
      const { mayEnd, ends, goesOn } = step(operation, branch, setNamed);
      if (mayEnd !== undefined) result.through.push(branch.packet);
      if (mayEnd === "perhaps") result.doubt ??= nameOf(operation);
      if (ends !== undefined) result.ends.push(...ends);
      if (goesOn !== undefined) next.push(...goesOn);
    }
    branches = next;
    if (branches.length === 0) break;
    if (branches.length > MOST_BRANCHES) {
      return { ends: [{ packet, verdict: { kind: "unknown" } }], through: [packet], doubt: nameOf(operation) };
    }
  }
  for (const branch of branches) result.through.push(branch.packet);
  return result;
}

/** Most rules end at their first comparison, with an address: so much is asked without registers. */
export function endsAtOnce({ operations: [load, test] }: Rule, packet: PacketFacts): boolean {
  if (load?.does !== "payload" || load.base === "inner" || test?.does !== "compare" || test.how !== "==") {
    return false;
  }
  if (test.register !== load.into || test.value.length > load.length || !hasBytes(packet, load)) return false;
  return isEqual(packet[load.base], test.value, load.offset) === "no";
}

function nameOf(operation: Operation): string {
  if (operation.does === "match" || operation.does === "target") return `${operation.does} ${operation.name}`;
  if ("name" in operation) return operation.name;
  return "key" in operation ? `${operation.does} ${operation.key}` : operation.does;
}
