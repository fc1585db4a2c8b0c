/** What the repository says to its readers: every page, and the comments of every source file. */
import { cpSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { extname, join, resolve } from "node:path";

export interface Document {
  /** From the root of the repository. */
  path: string;
  /** The page, or the comments alone, without their leaders; lines as in the file, alternatives in braces apart. */
  text: string;
  isPage: boolean;
}

export const root = resolve(import.meta.dir, "../..");
const folders = [".ci", "bench", "compile", "demo", "docs", "examples", "release", "schemas", "src", "test", "types"];
/** By npm for the site of the pages, and what VitePress has while it builds that. */
const INSTALLED = ["node_modules", ".temp", "cache"];
const commented = [".ts", ".mjs", ".c", ".h", ".S"];

/** Every file of the repository, without what is installed or built. */
export function repositoryFiles(): string[] {
  const top = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isFile()).map(({ name }) => name);
  return [...top, ...folders.flatMap(filesBelow)].sort();
}

function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return INSTALLED.includes(entry.name) ? [] : filesBelow(path);
    return entry.isFile() ? [path] : [];
  });
}

/** Copies what a tool works on, and links the npm packages. With folders, only these and what is at the top. */
export function copyRepository(to: string, only: readonly string[] = folders): void {
  const isCopied = (path: string) => !path.includes("/") || only.includes(path.split("/")[0]!);
  for (const path of repositoryFiles().filter(isCopied)) cpSync(join(root, path), join(to, path));
  symlinkSync(join(root, "node_modules"), join(to, "node_modules"));
}

export function readDocuments(files: readonly string[]): Document[] {
  return files.flatMap((path) => {
    const isPage = extname(path) === ".md";
    if (!isPage && (!commented.includes(extname(path)) || path.endsWith(".gen.ts"))) return [];
    const text = readFileSync(join(root, path), "utf8");
    return [{ path, isPage, text: expanded(isPage ? text : commentsOf(text)) }];
  });
}

/** A comment begins a line or follows a blank, which no text in these sources does with `//` or a slash and a star. */
function commentsOf(source: string): string {
  let text = "", from = 0;
  for (const match of source.matchAll(/(?<=^|[\s;{(])(?:\/\*[^]*?\*\/|\/\/.*$)/gm)) {
    text += newlines(source.slice(from, match.index)) + match[0].replace(/^[ \t]*\/?\*+\/? ?|^\/\/ ?|\*\/$/gm, "");
    from = match.index + match[0].length;
  }
  return text;
}

/** `lock.{ts,test.ts}` as "lock.ts lock.test.ts". */
function expanded(text: string): string {
  return text.replace(
    /([\w./*-]+)\{([\w.,-]+)\}([\w./*-]*)/g,
    (_, start, parts, end) => parts.split(",").map((part: string) => `${start}${part}${end}`).join(" "),
  );
}

function newlines(text: string): string {
  return text.replace(/[^\n]+/g, "");
}
