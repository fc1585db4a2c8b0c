/** Tests that a page names: links to test files, whose text is the title of a test there. Pure, but for reading files. */
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { root } from "./documents.ts";

interface NamedTest {
  file: string;
  title: string;
}

/** Titles in backquotes and in tables have places for values; what stands in one is not looked at. */
const PLACE = /\$\{[^}]*\}|%[a-zA-Z]|\$\w+/g;
/** A title that has little else than places would be everybody's. */
const LEAST = 8;

export function testsNamedIn(page: string, text: string): NamedTest[] {
  return [...text.matchAll(/\[([^\]]+)\]\(([^)\s]+\.test\.ts)\)/g)].map(([, title, target]) => ({
    file: normalize(join(dirname(page), target!)),
    title: title!.replace(/\s+/g, " ").replaceAll("\\|", "|").replaceAll("\\_", "_").replaceAll("\\*", "*"),
  }));
}

const patterns = new Map<string, RegExp[]>();

/** Whether the file has a test of this title, as far as its text tells. */
export function isTitleIn({ file, title }: NamedTest): boolean {
  const known = patterns.get(file) ?? titlesIn(readFileSync(join(root, file), "utf8"));
  patterns.set(file, known);
  return known.some((pattern) => pattern.test(title));
}

export function titlesIn(source: string): RegExp[] {
  const literals = source.matchAll(/"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\[^])*)`/g);
  return [...literals].map(([, double, single, back]) => unescaped(double ?? single ?? back ?? ""))
    .filter((title) => title.search(PLACE) < 0 || title.replace(PLACE, "").length >= LEAST)
    .map((title) => new RegExp(`^${title.split(PLACE).map((part) => RegExp.escape(part)).join(".+")}$`));
}

function unescaped(literal: string): string {
  return literal.replace(/\\([^])/g, "$1");
}
