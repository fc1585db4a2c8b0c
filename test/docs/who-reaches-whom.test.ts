/** docs/who-reaches-whom.md has the tables that test/kernel/who-reaches-whom.test.ts sends packets for, cell by cell. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../support/documents.ts";
import { commonRows, type Row, type Table, tables } from "../support/reach/matrix.ts";

const sections = readFileSync(join(root, "docs/who-reaches-whom.md"), "utf8").split(/^## /m).slice(1);

/** The cells of each line of a table; the second line is the one that only has dashes. */
const linesOf = (section: string) =>
  section.split("\n").filter((line) => /^\| [^-]/.test(line)).map((line) =>
    line.slice(1, -1).split("|").map((cell) => cell.trim())
  );

const COMMON = "bridge in every form, and ptp";
const hasCommonRows = (table: Table) => commonRows.every((row) => table.rows.includes(row));
const cellsOf = (rows: readonly Row[]) => rows.map(({ from, to, cells }) => [`${from} to ${to}`, ...cells]);

test("the page has the common ways, these tables, in this order, and no others", () => {
  const withTable = sections.filter((section) => linesOf(section).length > 0);
  expect(withTable.map((section) => section.split("\n")[0]!.replaceAll("`", ""))).toEqual(
    [COMMON, ...tables.map(({ name }) => name)],
  );
  expect(linesOf(sections[0]!).slice(1)).toEqual(cellsOf(commonRows));
  expect(tables.filter(hasCommonRows).length).toBe(5);
});

test.each([...tables.entries()])(
  "table %i: its test, its columns and its rows",
  (index, table) => {
    const section = sections[index + 1] ?? "", [head, ...lines] = linesOf(section);
    const isReduced = hasCommonRows(table);
    expect(section).toContain(
      isReduced ? "(#bridge-in-every-form-and-ptp)" : "(../test/kernel/who-reaches-whom.test.ts)",
    );
    expect(head?.slice(1)).toEqual(table.columns.map(({ name }) => `\`${name}\``));
    expect(lines).toEqual(cellsOf(isReduced ? table.rows.filter((row) => !commonRows.includes(row)) : table.rows));
    expect(table.rows.filter(({ cells }) => cells.length !== table.columns.length)).toEqual([]);
  },
);
