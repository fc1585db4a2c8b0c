/**
 * `npm run generate`: writes what is generated and checked in. That is what validators.ts makes of the schemas, the
 * constants of the first code, and the lists in docs/conformance.md and docs/explain.md.
 */
import { join } from "node:path";
import { demands } from "../src/conformance/demands/table.ts";
import { codes } from "../src/explain/codes.ts";
import { withCodes } from "./code-list.ts";
import { withDemands } from "./demand-list.ts";
import { NATIVE_HEADER, nativeHeader } from "./native-header.ts";
import { defineTool, root, runTool } from "./tool.ts";
import { generate } from "./validators.ts";

const DEMANDS = "docs/conformance.md", CODES = "docs/explain.md";

/** What would change, by its path from the root. */
export async function outdated(): Promise<Map<string, string>> {
  const files = await generate();
  files.set(NATIVE_HEADER, nativeHeader());
  files.set(DEMANDS, withDemands(await Bun.file(join(root, DEMANDS)).text(), demands));
  files.set(CODES, withCodes(await Bun.file(join(root, CODES)).text(), codes));
  const stale = new Map<string, string>();
  for (const [path, text] of files) {
    const file = Bun.file(join(root, path));
    if (!(await file.exists()) || await file.text() !== text) stale.set(path, text);
  }
  return stale;
}

export const tool = defineTool({
  name: "generate",
  about:
    "Writes the validators, the JSON Schemas, what `patchbay lint` knows and the lists of docs/plugins/, from the\n" +
    `schemas, ${NATIVE_HEADER}, and the list of demands in ${DEMANDS}, and of codes in ${CODES}.`,
  options: { check: { type: "boolean", default: false, about: "writes nothing, and exits with 1 if it would" } },
  needs: "packages",
  begin: ({ values: { check } }) => async () => {
    const stale = await outdated();
    for (const [path, text] of stale) {
      if (!check) await Bun.write(join(root, path), text);
      console.log(check ? `${path}: is out of date` : `wrote ${path}`);
    }
    return check && stale.size > 0 ? 1 : 0;
  },
});

if (import.meta.main) process.exitCode = await runTool(tool);
