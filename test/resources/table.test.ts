import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { kindNames, loadKind } from "../../src/resources/table.ts";

const folder = `${import.meta.dir}/../../src/resources`;

test("every file with a kind is in the table, under the name its kind has in the ledger", () => {
  const files = readdirSync(folder, { recursive: true }).map(String).filter((name) =>
    name.endsWith(".ts") && name !== "table.ts"
  );
  const inFiles: string[] = [];
  for (const file of files) {
    for (const value of Object.values(require(`${folder}/${file}`) as object)) {
      const kind = (value as { kind?: unknown } | null)?.kind;
      if (typeof kind === "string") inFiles.push(kind);
    }
  }
  expect([...kindNames].sort()).toEqual(inFiles.sort());
  for (const name of kindNames) expect(loadKind(name)!.kind).toBe(name);
});

test("loadKind() knows no other names", () => {
  expect([loadKind("nonesuch"), loadKind("constructor"), loadKind("__proto__")]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
