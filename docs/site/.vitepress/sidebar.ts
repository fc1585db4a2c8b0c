/**
 * The sidebar is what docs/README.md is: its sections are the groups, its links the pages, by their first headings. Pages
 * that the README of their folder names stand below it. A page that nobody names yet stands in "Reference".
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

const INDEX = "docs/README.md", UNNAMED = "Reference";
const OPEN = ["Start", "Concepts", "Plugins", "Commands"];
const IN_NAVIGATION = ["Start", "Concepts", "Plugins", "Recipes", "Troubleshooting", "Reference"];

export function sidebar(index = read(INDEX), all = pages()): Group[] {
  const left = new Set(all);
  const take = (links: string[]) => links.filter((page) => left.delete(page));
  const entry = (page: string): Entry => {
    const own = { text: titleOf(page), link: addressOf(page) };
    const below = page === INDEX ? [] : take(linksIn(read(page), page).filter((other) => isBelow(other, page)));
    return below.length === 0 ? own : { ...own, collapsed: true, items: below.map(entry) };
  };
  const sections = index.split(/^## /m).slice(1).map((section, at) => {
    const itself = at === 0 ? [INDEX] : [];
    return { text: section.split("\n")[0]!, pages: take([...linksIn(section, INDEX), ...itself]) };
  });
  const groups = sections.map(({ text, pages }) => {
    return { text, collapsed: !OPEN.includes(text), items: besideOneAnother(pages.map(entry)) };
  });
  const unnamed = all.flatMap((page) => take([page]).map(entry));
  const last = groups.find(({ text }) => text === UNNAMED);
  if (last) last.items.push(...unnamed);
  else groups.push({ text: UNNAMED, collapsed: true, items: unnamed });
  return groups.filter(({ items }) => items.length > 0);
}

/** The first page of some groups. */
export function navigation(groups: readonly Group[]): { text: string; link: string }[] {
  return IN_NAVIGATION.flatMap((name) => {
    const link = groups.find(({ text }) => text === name)?.items[0]?.link;
    return link === undefined ? [] : [{ text: name, link }];
  });
}

/** A group that is one folder shows its pages. */
function besideOneAnother(items: Entry[]): Entry[] {
  return items.length === 1 ? items.flatMap(({ text, link, items = [] }) => [{ text, link }, ...items]) : items;
}

function linksIn(text: string, page: string): string[] {
  return [...text.matchAll(/\]\(([^)#\s]+)\)/g)].map(([, link]) => posix.join(posix.dirname(page), link!));
}

/** In the folder whose README the page is. */
function isBelow(other: string, page: string): boolean {
  return page === posix.join(posix.dirname(other), "README.md");
}
