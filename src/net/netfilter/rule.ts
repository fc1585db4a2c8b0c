/**
 * One rule and one packet: with which packets it ends, and with which the next rule begins. Where something is unknown,
 * both are given.
 */
import { unknown } from "./known-bytes.ts";
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
const MOST_BRANCHES = 64, REGISTER_BYTES = 64;

export function applyRule(rule: Rule, packet: PacketFacts, chain: RuleChain, ruleset: Ruleset): RuleResult {
  const result: RuleResult = { ends: [], through: [] };
  const setNamed = (name: string) => ruleset.setOf(chain, name);
  let branches: Branch[] = [{ packet, registers: unknown(REGISTER_BYTES) }];
  for (const operation of rule.operations) {
    branches = branches.flatMap((branch) => {
      const { mayEnd, ends = [], goesOn = [] } = step(operation, branch, setNamed);
      if (mayEnd !== undefined) result.through.push(branch.packet);
      if (mayEnd === "perhaps") result.doubt ??= nameOf(operation);
      result.ends.push(...ends);
      return goesOn;
    });
    if (branches.length > MOST_BRANCHES) {
      return { ends: [{ packet, verdict: { kind: "unknown" } }], through: [packet], doubt: nameOf(operation) };
    }
  }
  result.through.push(...branches.map((branch) => branch.packet));
  return result;
}

function nameOf(operation: Operation): string {
  if (operation.does === "match" || operation.does === "target") return `${operation.does} ${operation.name}`;
  if ("name" in operation) return operation.name;
  return "key" in operation ? `${operation.does} ${operation.key}` : operation.does;
}
