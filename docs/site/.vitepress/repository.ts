/** The repository that the pages are of, and what of it is on the site. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

export const root = resolve(import.meta.dirname, "../../..");

/** Pages outside of docs/ that are on the site. */
const PAGES_ELSEWHERE = [
  "README.md",
  "ARCHITECTURE.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "test/README.md",
  "test/mutation/unnoticed.md",
];

/** Every page, by its path in the repository. */
export function pages(folder = "docs"): string[] {
  const found = readdirSync(join(root, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) return path === "docs/site" ? [] : pages(path);
      return path.endsWith(".md") ? [path] : [];
    });
  return folder === "docs" ? [...PAGES_ELSEWHERE, ...found].sort() : found.sort();
}

/** A page's place on the site: a README is what its folder's address shows. */
export function placeOf(page: string): string {
  return page.replace(/(^|\/)README\.md$/, "$1index.md");
}

export function addressOf(page: string): string {
  return `/${placeOf(page).replace(/(^|\/)index\.md$/, "$1").replace(/\.md$/, ".html")}`;
}

export function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** The first heading, without the marks of code. */
export function titleOf(page: string): string {
  const heading = /^# (.*)$/m.exec(read(page));
  if (heading === null) throw new Error(`${page} has no heading`);
  return heading[1]!.replaceAll("`", "");
}

export function kindOf(path: string): "file" | "folder" | undefined {
  const found = statSync(join(root, path), { throwIfNoEntry: false });
  return found?.isDirectory() ? "folder" : found?.isFile() ? "file" : undefined;
}

/** An anchor as git hosts make it of a heading. */
export function anchorOf(heading: string): string {
  return heading.toLowerCase().replace(/[^\w\- ]/g, "").replaceAll(" ", "-");
}
