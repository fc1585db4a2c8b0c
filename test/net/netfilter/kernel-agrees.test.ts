/** What is said of a packet for certain, the kernel does: random rules, random packets, put into a link one by one. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { openMachine } from "../../support/machine.ts";
import { newSeed } from "../../support/random.ts";
import { ownShare } from "../../support/share.ts";
import type { Comparison } from "./against-kernel.ts";

const RULESETS = 40, PACKETS = 175;

/** A hundred thousand pairs of a ruleset and a packet. */
const rounds = ["of nf_tables", "of xtables", "with unknown fields"].flatMap((kind) =>
  Array.from({ length: kind === "with unknown fields" ? 3 : 6 }, (_, round) => ({ kind, round: round + 1 }))
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
  expect([passing > asked / 5, passing < asked * 0.9]).toEqual([true, true]);
  if (kind !== "with unknown fields") expect([asked - firm, doubts]).toEqual([0, {}]);
  else expect(firm).toBeGreaterThan(asked / 2);
});
