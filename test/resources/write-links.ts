/** Writes links.txt: `npx bun test/resources/write-links.ts`, as root. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openMachine } from "../support/machine.ts";
import { linkStories, tellOfLinks } from "./links.ts";

const told: string[] = [];
for (const story of linkStories) {
  await using machine = await openMachine();
  told.push(await tellOfLinks(machine, story));
}
writeFileSync(join(import.meta.dir, "links.txt"), told.join("\n\n\n"));
