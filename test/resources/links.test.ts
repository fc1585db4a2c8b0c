/**
 * What resources make of links, addresses, rules and limits, step by step, as ip(8) and tc(8) list it.
 * links.txt has it; `npx bun test/resources/write-links.ts` writes it again, and the difference is the change.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { lacks } from "../support/kernel-features.ts";
import { openMachine } from "../support/machine.ts";
import { linkStories, tellOfLinks } from "./links.ts";

const expected = readFileSync(join(import.meta.dir, "links.txt"), "utf8").split("\n\n\n");

for (const story of linkStories) {
  test.skipIf(lacks(story.needs))(story.title, async () => {
    await using machine = await openMachine();
    expect(await tellOfLinks(machine, story)).toBe(expected.find((each) => each.startsWith(`${story.title}\n`))!);
  });
}
