/**
 * The sidebar is what docs/README.md is: its sections are the groups, its links the pages, by their first headings. Pages
 * that only the README of their folder names stand below it. A page that nobody names yet stands in "Reference".
 */
import { posix } from "node:path";
import { addressOf, pages, read, titleOf } from "./repository.ts";

interface Entry {
  text: string;
  link?: string;
  items?: Entry[];
  collapsed?: boolean;
}

interface Group extends Entry {
  items: Entry[];
}

const INDEX = "docs/README.md",
  UNNAMED = "Reference",
  OPEN = ["Start", "Concepts", "Plugins", "Commands"];

export function sidebar(index = read(INDEX), all = pages()): Group[] {
  const left = new Set(all);
  const sections = index.split(/^## /m).slice(1);
  const named = sections.map((section) => ({
    text: section.split("\n")[0]!,
    pages: linksOf(section),
  }));
  // The index itself.
  named[0]?.pages.push(INDEX);
  const placed = named.map(({ text, pages }) => ({
    text,
    pages: pages.filter((page) => left.delete(page)),
  }));
  // The README of a folder has the other pages of it.
  const foldersOf = (page: string) => page.endsWith("/README.md") && page !== INDEX ? posix.dirname(page) : undefined;
  const entry = (page: string): Entry => {
    const folder = foldersOf(page);
    const below = [...left].filter((other) => folder !== undefined && posix.dirname(other) === folder);
    for (const other of below) left.delete(other);
    const own = { text: titleOf(page), link: addressOf(page) };
    return below.length === 0 ? own : { ...own, collapsed: true, items: below.map(entry) };
  };
  const groups = placed.map(({ text, pages }) => ({
    text,
    collapsed: !OPEN.includes(text),
    items: pages.map(entry),
  }));
  const unnamed = [...left].map(entry);
  if (unnamed.length > 0) {
    const place = groups.find(({ text }) => text === UNNAMED);
    if (place) place.items.push(...unnamed);
    else groups.push({ text: UNNAMED, collapsed: true, items: unnamed });
  }
  return groups.filter(({ items }) => items.length > 0);
}

/** The first page of each of these groups. */
export function navigation(
  groups: readonly Group[],
): { text: string; link: string }[] {
  return [
    "Start",
    "Concepts",
    "Plugins",
    "Recipes",
    "Troubleshooting",
    "Reference",
  ].flatMap((name) => {
    const first = groups.find(({ text }) => text === name)?.items[0];
    return first?.link === undefined ? [] : [{ text: name, link: first.link }];
  });
}

function linksOf(section: string): string[] {
  return [...section.matchAll(/\]\(([^)#\s]+)\)/g)].map(([, link]) => posix.join(posix.dirname(INDEX), link!));
}
