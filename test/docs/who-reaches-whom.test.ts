/** docs/who-reaches-whom.md has the tables that test/kernel/who-reaches-whom.test.ts sends packets for, cell by cell. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../support/documents.ts";
import { tables } from "../support/reach/matrix.ts";

const sections = readFileSync(join(root, "docs/who-reaches-whom.md"), "utf8").split(/^## /m).slice(1);

/** The cells of each line of a table; the second line is the one that only has dashes. */
const linesOf = (section: string) =>
  section.split("\n").filter((line) => /^\| [^-]/.test(line)).map((line) =>
    line.slice(1, -1).split("|").map((cell) => cell.trim())
  );

test("the page has these tables, in this order, and no others", () => {
  const withTable = sections.filter((section) => linesOf(section).length > 0);
  expect(withTable.map((section) => section.split("\n")[0]!.replaceAll("`", ""))).toEqual(
    tables.map(({ name }) => name),
  );
});

test.each([...tables.entries()])(
  "table %i: its test, its columns and its rows",
  (index, table) => {
    const section = sections[index] ?? "", [head, ...lines] = linesOf(section);
    expect(section).toContain("(../test/kernel/who-reaches-whom.test.ts)");
    expect(head?.slice(1)).toEqual(table.columns.map(({ name }) => `\`${name}\``));
    const rows = table.rows.map(({ from, to, cells }) => [`from ${from} to ${to}`, ...cells]);
    expect(lines).toEqual(rows);
    expect(table.rows.filter(({ cells }) => cells.length !== table.columns.length)).toEqual([]);
  },
);
