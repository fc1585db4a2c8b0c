/** The list of codes in docs/explain.md. */
import type { CodeText } from "../src/explain/codes.ts";
import { wrapped } from "./option-pages.ts";

const HEADING = "## Codes\n";

export function withCodes(page: string, codes: Record<string, CodeText>): string {
  const at = page.indexOf(HEADING);
  if (at < 0) throw new Error("the page has no list of codes");
  const list = Object.entries(codes).map(([code, { title, help }]) =>
    `### ${code}\n\n${wrapped(`${title[0]!.toUpperCase()}${title.slice(1)}. ${help}`).replaceAll("\n  ", "\n")}\n`
  );
  return `${page.slice(0, at)}${HEADING}\n${list.join("\n")}`;
}
