import type { Count } from "../../contract/summaries.ts";
import { printableWord } from "../../ffi/terminal.ts";

/** Rows of cells as text with aligned columns, as wide as what is shown of them. */
export function textTable(cells: readonly (readonly string[])[]): string {
  const rows = cells.map((row) => row.map(printableWord));
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]!.length))) ?? [];
  const line = (row: readonly string[]) =>
    row.map((cell, column) => cell.padEnd(widths[column]!)).join("  ").trimEnd();
  return rows.map((row) => `${line(row)}\n`).join("");
}

/** Exact as long as a person can read it; pools of IPv6 have more. */
export function readable(count: Count): string {
  return count < 1e9 ? String(count) : `~2^${Math.round(Math.log2(Number(count)))}`;
}
