/** Writes stories.txt: `npx bun test/plugins/netavark/write-stories.ts`. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { stories } from "./stories.ts";

writeFileSync(join(import.meta.dir, "stories.txt"), stories.map(({ text }) => `${text()}\n`).join("\n"));
