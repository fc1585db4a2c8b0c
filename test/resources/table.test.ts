/** The table of kinds against the files below src/resources, and where those files are. The skeleton is in no table. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { kindNames, loadKind } from "../../src/resources/table.ts";

const folder = `${import.meta.dir}/../../src/resources`;

const files = readdirSync(folder, { recursive: true }).map(String).filter((name) =>
  name.endsWith(".ts") && name !== "table.ts" && !name.startsWith("skeleton/")
);

function kindsIn(file: string): string[] {
  return Object.values(require(`${folder}/${file}`) as object)
    .map((value) => (value as { kind?: unknown } | null)?.kind)
    .filter((kind) => typeof kind === "string");
}

test("every file with a kind is in the table, under the name its kind has in the ledger", () => {
  const inFiles = files.flatMap(kindsIn);
  expect([...kindNames].sort()).toEqual(inFiles.sort());
  for (const name of kindNames) expect(loadKind(name)!.kind).toBe(name);
});

test("a kind has a file of its name in its theme's folder, or in a folder of its name", () => {
  // Its name in ledgers is older than the file.
  const fileNames: Record<string, string> = { ipam: "lease" };
  for (const file of files) {
    const inTheme = file.slice(file.indexOf("/") + 1);
    for (const kind of kindsIn(file)) {
      const name = fileNames[kind] ?? kind;
      expect([`${name}.ts`, `${name}/${name}.ts`]).toContain(inTheme);
    }
  }
});

test("loadKind() knows no other names", () => {
  expect([loadKind("nonesuch"), loadKind("constructor"), loadKind("__proto__")]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
