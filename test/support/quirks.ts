/** The quirks that docs/quirks/ describes, one heading each. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

export interface Quirk {
  name: string;
  page: string;
  text: string;
}

const folder = resolve(import.meta.dir, "../../docs/quirks");

export function readQuirks(): Quirk[] {
  return readdirSync(folder).filter((page) => page !== "README.md").sort().flatMap((page) => {
    const [_head, ...sections] = readFileSync(join(folder, page), "utf8").split(/^### /m);
    return sections.map((text) => ({ name: text.slice(0, text.indexOf("\n")), page, text }));
  });
}
