/**
 * Links lead on the site where they lead in the repository: to a page, or to a copy of the file. So pages need no other
 * links for the site than they have for a reader of the files.
 */
import { cpSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { addressOf, kindOf, pages, root, titleOf } from "./repository.ts";

/** Copies are text for every server, whatever the file's own name ends with. */
const COPIES = "files", TEXT = ".txt";

const copied = new Set<string>();
const isPage = new Set(pages());

/** Of a link of a page, both as in the repository; what is not there ends the build. */
export function siteLink(page: string, link: string): string {
  if (/^[a-z]+:|^#/.test(link)) return link;
  const [target, anchor] = link.split("#") as [string, string?];
  const path = posix.join(posix.dirname(page), target).replace(/\/$/, "");
  const end = anchor === undefined ? "" : `#${anchor}`;
  const other = pageAt(path);
  if (other !== undefined) return addressOf(other) + end;
  const kind = kindOf(path);
  if (kind === undefined || path.startsWith("..")) {
    throw new Error(`${page}: the link ${link} leads nowhere`);
  }
  copied.add(path);
  const copy = kind === "folder" ? `${COPIES}/${path}/index.html` : `${COPIES}/${path}${TEXT}`;
  return posix.relative(posix.dirname(page), copy);
}

/** What a link reads on the site: the page's title, where the repository has the page's path. */
export function siteText(page: string, link: string, text: string): string {
  const other = pageAt(posix.join(posix.dirname(page), link.split("#")[0]!).replace(/\/$/, ""));
  return other !== undefined && /^[\w./-]*(\.md|\/)$/.test(text) ? titleOf(other) : text;
}

function pageAt(path: string): string | undefined {
  return [path, posix.join(path, "README.md")].find((one) => isPage.has(one));
}

export function isCopy(address: string): boolean {
  return address.replace(/^(\.\.\/)+/, "").startsWith(`${COPIES}/`);
}

/** Copies what the links of all pages lead to beside pages. */
export function copyLinked(site: string): void {
  for (const path of [...copied].sort()) copy(path, join(site, COPIES));
}

function copy(path: string, to: string): void {
  if (kindOf(path) === "folder") return copyFolder(path, to);
  mkdirSync(dirname(join(to, path)), { recursive: true });
  cpSync(join(root, path), join(to, `${path}${TEXT}`));
}

function copyFolder(path: string, to: string): void {
  const entries = readdirSync(join(root, path)).sort();
  for (const name of entries) copy(`${path}/${name}`, to);
  const items = entries.map((name) => {
    const link = kindOf(`${path}/${name}`) === "folder" ? `${name}/index.html` : `${name}${TEXT}`;
    return `<li><a href="${link}">${name}</a></li>`;
  });
  const head = `<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${path}</title>`;
  const style =
    `<style>:root { color-scheme: light dark; font: 16px/1.7 system-ui, sans-serif; padding: 1em }</style>`;
  mkdirSync(join(to, path), { recursive: true });
  const text = `<!doctype html><html lang="en">${head}${style}<h1>${path}/</h1><ul>${items.join("")}</ul></html>\n`;
  writeFileSync(join(to, path, "index.html"), text);
}
