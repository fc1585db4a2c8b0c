/**
 * What resources make of links, addresses, rules and limits, step by step, as ip(8) and tc(8) list it.
 * links.txt has it, and write-links.ts writes it.
 */
import { join } from "node:path";
import { test } from "bun:test";
import { ToldBefore } from "../support/told-before.ts";
import { lacks } from "../support/kernel-features.ts";
import { openMachine } from "../support/machine.ts";
import { linkStories, tellOfLinks } from "./links.ts";

const before = new ToldBefore(join(import.meta.dir, "links.txt"), "\n\n\n", "test/resources/write-links.ts");

for (const story of linkStories) {
  test.skipIf(lacks(story.needs))(story.title, async () => {
    await using machine = await openMachine();
    before.compare(story.title, await tellOfLinks(machine, story));
  });
}
