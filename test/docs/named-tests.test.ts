/** The tests that pages name exist; every hole has one, and every promise in a list of SECURITY.md. */
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "bun:test";
import { repositoryFiles, root } from "../support/documents.ts";

const read = (path: string) => readFileSync(join(root, path), "utf8");

test.each(["SECURITY.md", "docs/cves.md", "docs/who-reaches-whom.md"])(
  "%s names tests by file and title, and they exist",
  (page) => {
    const named = testsNamedIn(page, read(page));
    expect(named.length).toBeGreaterThan(5);
    const files = new Set(repositoryFiles());
    expect(named.filter((one) => !files.has(one.file) || !isTitleIn(one))).toEqual([]);
  },
);

test("every promise in a list of SECURITY.md has a test", () => {
  const parts = read("SECURITY.md").split(/\n\n/);
  const lists = parts.filter((_, index) => /each with its\s+test:$/.test(parts[index - 1] ?? ""));
  expect(lists.length).toBeGreaterThan(5);
  const promises = lists.flatMap((list) => list.split(/^- /m).slice(1));
  expect(promises.length).toBeGreaterThan(80);
  expect(promises.filter((promise) => testsNamedIn("SECURITY.md", promise).length !== 1)).toEqual([]);
});

test("docs/cves.md names a test for each hole, or says why there is none", () => {
  const sections = read("docs/cves.md").split(/^## /m).slice(1);
  expect(sections.length).toBeGreaterThan(10);
  const without = sections.filter((section) => testsNamedIn("docs/cves.md", section).length === 0);
  expect(without.filter((section) => !section.includes("\nNo test: "))).toEqual([]);
});

test("every hole that a test's title names is in docs/cves.md", () => {
  const named = repositoryFiles().filter((path) => path.endsWith(".test.ts"))
    .flatMap((path) => read(path).match(/CVE-\d{4}-\d{4,}/g) ?? []);
  const page = read("docs/cves.md");
  expect([...new Set(named)].filter((name) => !page.includes(name))).toEqual([]);
});

test.each([
  ['test("what it is called", () => {', "what it is called", true],
  ["test(`${backend}: what it is called`, () => {", "nftables: what it is called", true],
  ["sh(`one \\\n two`); test(`what it is called`, () => {", "what it is called", true],
  ['test.each(many)("$name is called %s", () => {', "something is called so", true],
  ['test("it is called \\"so\\", always", () => {', 'it is called "so", always', true],
  ['test("what it is called", () => {', "what it is", false],
  ["test(`${name} ${what}`, () => {", "whatever it is called", false],
])("%s has the title %j: %p", (source, title, has) => {
  expect(titlesIn(source).some((pattern) => pattern.test(title))).toBe(has);
});

interface NamedTest {
  file: string;
  title: string;
}

/** Titles in backquotes and in tables have places for values; what stands in one is not looked at. */
const PLACE = /\$\{[^}]*\}|%[a-zA-Z]|\$\w+/g;
/** A title that has little else than places would be everybody's. */
const LEAST = 8;

function testsNamedIn(page: string, text: string): NamedTest[] {
  return [...text.matchAll(/\[([^\]]+)\]\(([^)\s]+\.test\.ts)\)/g)].map(([, title, target]) => ({
    file: normalize(join(dirname(page), target!)),
    title: title!.replace(/\s+/g, " ").replaceAll("\\|", "|").replaceAll("\\_", "_").replaceAll("\\*", "*"),
  }));
}

const patterns = new Map<string, RegExp[]>();

/** Whether the file has a test of this title, as far as its text tells. */
function isTitleIn({ file, title }: NamedTest): boolean {
  const known = patterns.get(file) ?? titlesIn(readFileSync(join(root, file), "utf8"));
  patterns.set(file, known);
  return known.some((pattern) => pattern.test(title));
}

function titlesIn(source: string): RegExp[] {
  const literals = source.matchAll(/"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\[^])*)`/g);
  return [...literals].map(([, double, single, back]) => unescaped(double ?? single ?? back ?? ""))
    .filter((title) => title.search(PLACE) < 0 || title.replace(PLACE, "").length >= LEAST)
    .map((title) => new RegExp(`^${title.split(PLACE).map((part) => RegExp.escape(part)).join(".+")}$`));
}

function unescaped(literal: string): string {
  return literal.replace(/\\([^])/g, "$1");
}
