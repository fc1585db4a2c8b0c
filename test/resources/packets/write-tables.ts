/** Writes tables.txt: `npx bun test/resources/packets/write-tables.ts`, as root. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openMachine } from "../../support/machine.ts";
import { tell } from "../../support/table-story.ts";
import { tableStories } from "./tables.ts";

const told: string[] = [];
for (const story of tableStories) {
  await using machine = await openMachine();
  told.push(await tell(machine, story));
}
writeFileSync(join(import.meta.dir, "tables.txt"), told.join("\n\n\n"));
