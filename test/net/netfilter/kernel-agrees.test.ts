/** What is said of a packet for certain, the kernel does: random rules, random packets, put into a link one by one. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { openMachine } from "../../support/machine.ts";
import { newSeed } from "../../support/random.ts";
import { ownShare } from "../../support/share.ts";
import type { Comparison } from "./against-kernel.ts";

const RULESETS = 40, PACKETS = 175;

/** How often; together a hundred and sixty thousand pairs of a ruleset and a packet. */
const kinds = {
  "of nf_tables": 6,
  "of xtables": 6,
  "of older tables": 5,
  "of both kinds": 3,
  "with unknown fields": 3,
};
const WITH_UNKNOWN = ["of both kinds", "with unknown fields"];
const rounds = Object.entries(kinds).flatMap(([kind, length]) =>
  Array.from({ length }, (_, round) => ({ kind, round: round + 1 }))
);

test.each(ownShare(rounds))("no rules $kind are misjudged ($round)", async ({ kind }) => {
  await using machine = await openMachine();
  const script = resolve(import.meta.dir, "against-kernel.ts"), seed = newSeed();
  const { code, stdout, stderr } = await machine.run([
    process.execPath,
    script,
    kind,
    `${seed}`,
    `${RULESETS}`,
    `${PACKETS}`,
  ]);
  expect([code, stderr]).toEqual([0, ""]);
  const { asked, passing, firm, contradicted, doubts } = JSON.parse(stdout) as Comparison;
  expect({ seed, contradicted }).toEqual({ seed, contradicted: [] });
  expect(asked).toBe(RULESETS * PACKETS);
  // Rules of both kinds are twice as many: now and then they let less through.
  const least = asked / (kind === "of both kinds" ? 10 : 5);
  expect([passing > least, passing < asked * 0.9]).toEqual([true, true]);
  if (!WITH_UNKNOWN.includes(kind)) expect([asked - firm, doubts]).toEqual([0, {}]);
  else expect(firm).toBeGreaterThan(asked / 2);
});
