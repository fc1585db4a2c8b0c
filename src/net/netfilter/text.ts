import type { Place } from "./traversal.ts";
export function placeText({ chain, rule }: Place): string {
  const name = [chain.family, chain.table, chain.name].map((word) => /^\S+$/.test(word) ? word : JSON.stringify(word))
    .join(" ");
  return rule === undefined ? `the policy of ${name}` : `a rule of ${name} (handle ${rule.handle})`;
}
