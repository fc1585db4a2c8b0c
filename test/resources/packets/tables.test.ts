/**
 * What kinds of resources write into the tables of the kernel, step by step, as nft(8) and iptables-save(8) list it.
 * tables.txt has it, and write-tables.ts writes it.
 */
import { join } from "node:path";
import { expect, test } from "bun:test";
import { ToldBefore } from "../../support/told-before.ts";
import { lacks } from "../../support/kernel-features.ts";
import { legacyPath } from "../../support/legacy-iptables.ts";
import { openMachine } from "../../support/machine.ts";
import { tell } from "../../support/table-story.ts";
import { tableStories } from "./tables.ts";

const before = new ToldBefore(
  join(import.meta.dir, "tables.txt"),
  "\n\n\n",
  "test/resources/packets/write-tables.ts",
);

for (const story of tableStories) {
  test.skipIf(lacks(story.needs))(story.title, async () => {
    await using machine = await openMachine();
    before.compare(story.title, await tell(machine, story));
  });
}

for (const { byOwner, ...story } of tableStories.filter(({ list }) => list === "iptables")) {
  test(`${story.title}, in the older tables: the same, where no rule needs an owner`, async () => {
    await using machine = await openMachine();
    await using older = await openMachine();
    const steps = story.steps.filter((told) => !byOwner?.test(Object.values(told).join(" ")));
    const told = await tell(machine, { ...story, steps });
    expect(await tell(older, { ...story, steps }, { PATH: legacyPath() })).toBe(told);
    expect(await older.sh("nft list ruleset")).toBe("");
  });
}
