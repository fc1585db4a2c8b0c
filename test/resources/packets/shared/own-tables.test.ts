/** The list of our nftables tables is the only one: no other source names a table. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { nameOfTable } from "../../../../src/ffi/netlink/nftables/table.ts";
import { ownTables } from "../../../../src/resources/packets/shared/own-tables.ts";
import { loadKind } from "../../../../src/resources/table.ts";

const root = resolve(import.meta.dir, "../../../..");
const tables = Object.entries(ownTables);

test("no other source names a table of ours, but in comments", () => {
  const sources = readdirSync(`${root}/src`, { recursive: true }).map(String).filter((path) => path.endsWith(".ts"));
  const naming = sources.filter((path) => {
    const code = readFileSync(`${root}/src/${path}`, "utf8").replace(/^\s*(\*|\/\*|\/\/).*$/gm, "");
    return code.includes("patchbay_");
  });
  expect(naming).toEqual(["resources/packets/shared/own-tables.ts"]);
});

test("each kind names its table, where the table is its backend", () => {
  for (const [kind, table] of tables) {
    expect(loadKind(kind)!.ownTable!({ backend: "nftables" })).toBe(nameOfTable(table));
  }
});
