/**
 * Whatever a page or a comment refers to is there: files, headings, npm scripts, commands of the command line with
 * their options, environment variables. Reads text alone, so it needs neither root nor a build.
 */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { scripts } from "../../package.json";
import { checks } from "../../compile/check.ts";
import { cnitoolCommands, ownAliases, ownCommands } from "../../src/frontends/cli/command-line.ts";
import { type Document, readDocuments, repositoryFiles, root } from "../support/documents.ts";

/** Programs in node_modules/.bin. */
const installed = readdirSync(join(root, "node_modules/.bin")).sort((a, b) => b.length - a.length);

type Report = (at: number, what: string) => void;

const files = repositoryFiles();
const folders = new Set(files.flatMap(foldersOf));
const documents = readDocuments(files);

function foldersOf(file: string): string[] {
  const folder = dirname(file);
  return folder === "." ? [] : [folder, ...foldersOf(folder)];
}

const looks: Record<string, (document: Document, report: Report) => void> = {
  /** A path, the name of a source file or a page, a folder in backticks. `*`, `<…>` and `…` stand for others. */
  "files and folders"({ path, text }, report) {
    const start = String.raw`(?<![\w./<>*~$@%-])`, end = String.raw`(?![\w<>*{…]|\/[<*{…])`;
    const folder = String.raw`(?:src|docs|test|compile|bench|demo|examples|schemas)\/[\w./*-]*[\w*]`;
    const file = String.raw`(?:\.{1,2}\/)*(?:[\w.-]+\/)*[\w.*-]+\.(?:ts|mjs|md|conflist)\b`;
    for (const { 0: name, index } of text.matchAll(new RegExp(`${start}(?:${file}|${folder})${end}`, "g"))) {
      if (!isThere(dirname(path), name)) report(index, name);
    }
    for (const { 1: name, index } of text.matchAll(/`((?:[\w.-]+\/)+)`/g)) {
      if (!isThere(dirname(path), name!.slice(0, -1))) report(index, name!);
    }
  },

  "links"({ path, text, isPage }, report) {
    if (!isPage) return;
    for (const { 1: target, index } of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target!)) continue;
      const [name, anchor] = target!.split("#") as [string, string?];
      const file = name === "" ? path : normalize(join(dirname(path), name)).replace(/\/$/, "");
      const leadsNowhere = anchor === undefined
        ? !files.includes(file) && !folders.has(file)
        : !headings(file).map(slug).includes(anchor);
      if (leadsNowhere) report(index, target!);
    }
  },

  /** As in: docs/lease-store.md, "Crash table". */
  "headings of pages"({ path, text }, report) {
    for (const { 1: page, 2: name, index } of text.matchAll(/((?:[\w.-]+\/)*[\w-]+\.md)[`)]*,\s+"([^"]+)"/g)) {
      const file = [page!, normalize(join(dirname(path), page!))].find((one) => files.includes(one));
      const heading = name!.replace(/\s+/g, " ");
      if (file === undefined || !headings(file).includes(heading)) report(index, `${page}, "${heading}"`);
    }
  },

  "npm scripts"({ text }, report) {
    for (const { 0: call, 1: script, 2: check, index } of text.matchAll(/npm run (?:-s )?([\w:-]+)(?: -- (\w+))?/g)) {
      const isKnown = Object.hasOwn(scripts, script!) &&
        (script !== "check" || check === undefined || Object.hasOwn(checks, check));
      if (!isKnown) report(index, call);
    }
  },

  "command lines"(document, report) {
    for (const { at, code } of codeIn(document)) {
      for (
        const { 0: call, 1: program, 2: rest, index } of code.matchAll(/(?<![\w.@-])(patchbay|cnitool) ([^|;\n]*)/g)
      ) {
        if (!isTaken(program!, rest!)) report(at + index, call.trim());
      }
    }
  },

  /** Nothing that npm installs here is in PATH: `npx` or the path of the program has to lead to it. */
  "programs of npm packages"(document, report) {
    const { path, isPage } = document;
    // What was decided once, and what users of the library run, who have Bun.
    if (/^docs\/(decisions\/|library\.md)/.test(path)) return;
    // Comments also name a program's commands, as in: what `bun test` gets.
    const operand = isPage ? String.raw`\S` : String.raw`[^\n]*?[\w-]+\/[\w./-]+\.(?:ts|mjs)\b`;
    const call = new RegExp(String.raw`(?<![\w./@-]|npx )(?:${installed.join("|")}) ${operand}.*`, "g");
    for (const { at, code } of codeIn(document)) {
      for (const { 0: found, index } of code.matchAll(call)) report(at + index, found);
    }
  },

  "environment variables"({ text }, report) {
    for (const { 0: name, index } of text.matchAll(/\bPATCHBAY_[A-Z_]*[A-Z]\b/g)) {
      if (!variables().has(name)) report(index, name);
    }
  },
};

for (const [what, look] of Object.entries(looks)) {
  test(`${what} that pages and comments name exist`, () => {
    expect(documents.length).toBeGreaterThan(300);
    expect(documents.flatMap((document) => findings(look, document))).toEqual([]);
  });
}

const mistakes: [look: keyof typeof looks, text: string, found: string][] = [
  ["files and folders", "see `src/nowhere/at-all.ts`.", "src/nowhere/at-all.ts"],
  ["files and folders", "see docs/decisions/9999", "docs/decisions/9999"],
  ["files and folders", "(in nowhere.ts)", "nowhere.ts"],
  ["files and folders", "every `nowhere-*.ts`", "nowhere-*.ts"],
  ["files and folders", "below test/nowhere/", "test/nowhere"],
  ["files and folders", "and `nowhere/`", "nowhere/"],
  ["links", "[this](nowhere.md)", "nowhere.md"],
  ["links", "[this](README.md#no-such-heading)", "README.md#no-such-heading"],
  ["headings of pages", `(docs/quirks/general.md, "no-such-quirk")`, `docs/quirks/general.md, "no-such-quirk"`],
  ["headings of pages", `(README.md,\n"No such\nheading")`, `README.md, "No such heading"`],
  ["npm scripts", "`npm run nothing`", "npm run nothing"],
  ["npm scripts", "`npm run check -- nothing`", "npm run check -- nothing"],
  ["command lines", "`patchbay nothing NETWORK`", "patchbay nothing NETWORK"],
  ["command lines", "```\nFOO=1 patchbay add --nothing web\n```\n", "patchbay add --nothing web"],
  ["command lines", "`dist/patchbay gc --gone=5 --nothing`", "patchbay gc --gone=5 --nothing"],
  ["command lines", "`cnitool inspect`", "cnitool inspect"],
  ["programs of npm packages", "run `bun compile/tidy.ts --graph`", "bun compile/tidy.ts --graph"],
  ["programs of npm packages", "```\nunshare -n bun test/x/y.ts\n```\n", "bun test/x/y.ts"],
  ["programs of npm packages", "then `deno fmt`", "deno fmt"],
  ["programs of npm packages", "then `tsc -p .`", "tsc -p ."],
  ["environment variables", `\`${"PATCHBAY"}_NOTHING=1\``, `${"PATCHBAY"}_NOTHING`],
];

test.each([
  "`npx bun compile/tidy.ts --graph`",
  "`node_modules/.bin/deno fmt`",
  "the npm package `bun`",
])("%s needs nothing in PATH", (text) => {
  const document = { path: "page.md", isPage: true, text };
  expect(findings(looks["programs of npm packages"]!, document)).toEqual([]);
});

test.each(mistakes)("a mistake in %s is found in %j", (what, text, found) => {
  const document = { path: "page.md", isPage: true, text: `# Page\n\n${text}\n` };
  expect(findings(looks[what]!, document)).toEqual([expect.stringMatching(/^page.md:\d+: /)]);
  expect(findings(looks[what]!, document)[0]).toEndWith(found);
});

function findings(look: (document: Document, report: Report) => void, document: Document): string[] {
  const found: string[] = [];
  look(document, (at, what) => {
    found.push(`${document.path}:${document.text.slice(0, at).split("\n").length}: ${what}`);
  });
  return found;
}

/** Not files of the repository: an example, what the build leaves, and what pages name already and somebody is making. */
const others = ["./x.ts", "dist"];

function isThere(folder: string, name: string): boolean {
  const places = [name, `${name}.test.ts`, normalize(join(folder, name)), `src/${name}`];
  if (others.includes(name) || places.some((place) => files.includes(place) || folders.has(place))) return true;
  // "docs/decisions/0005" is a decision by its number, "chain.ts" a file wherever it is.
  const bare = name.replace(/^(\.\.?\/)+/, "");
  const end = RegExp.escape(bare).replaceAll(String.raw`\*`, "[^/]*") + (/\/\d{4}$/.test(bare) ? "-.*" : "");
  const ending = new RegExp(`${bare.startsWith(".") ? "" : "(^|/)"}${end}$`);
  return files.some((file) => ending.test(file)) || [...folders].some((folder) => ending.test(folder));
}

function headings(page: string): string[] {
  if (!files.includes(page)) return [];
  return [...readFileSync(join(root, page), "utf8").matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading!);
}

/** As GitHub makes anchors. */
function slug(heading: string): string {
  return heading.toLowerCase().replace(/[^\w\- ]/g, "").replaceAll(" ", "-");
}

/** Code spans, blocks between fences, and lines that are indented as code. */
function codeIn({ text, isPage }: Document): { at: number; code: string }[] {
  const pattern = isPage ? /^```\w*\n([^]*?)^```|`([^`\n]+(?:\n[^`\n]+)?)`|^ {4}(.*)/gm : /`([^`\n]+)`|^ {5}(.*)/gm;
  return [...text.matchAll(pattern)].map((match) => ({ at: match.index, code: match[0].replaceAll("`", "") }));
}

/** Whether command and options are known. Words in capitals and `…` stand for something else. */
function isTaken(program: string, rest: string): boolean {
  const [line] = rest.split(/ {2,}/); // what follows explains it
  const [name, ...words] = line!.trim().split(/\s+/);
  if (name === undefined || !/^-?[a-z]/.test(name) || ["help", "--version", "--help"].includes(name)) return true;
  const commands = program === "cnitool" ? cnitoolCommands : ownCommands;
  const command = commands[(ownAliases as Record<string, string>)[name] ?? name]?.();
  const options = words.map((word) => /^\[?--([a-z-]+)/.exec(word)?.[1] ?? "help");
  return command !== undefined && options.every((name) => name === "help" || Object.hasOwn(command.options, name));
}

let read: Set<string> | undefined;

/** Every variable of ours that code names, comments aside. */
function variables(): Set<string> {
  return read ??= new Set(
    files.filter((file) => /\.(ts|mjs)$/.test(file)).flatMap((file) => {
      const code = readFileSync(join(root, file), "utf8").replace(/^\s*(\*|\/\/|\/\*).*$/gm, "");
      return [...code.matchAll(/\bPATCHBAY_[A-Z_]*[A-Z]\b/g)].map(([name]) => name);
    }),
  );
}
