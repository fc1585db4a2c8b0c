/** What pages count or list is all that there is, and no list of theirs is cut in two. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryFiles, root } from "../support/documents.ts";

const read = (path: string) => readFileSync(join(root, path), "utf8");

test("no list has an empty line between its items", () => {
  const cut = repositoryFiles().filter((path) => path.endsWith(".md")).flatMap((path) =>
    [...read(path).matchAll(/^(?:- | {2}\S).*\n\n(- .*)$/gm)].map(([, item]) => `${path}: ${item}`)
  );
  expect(cut).toEqual([]);
});

test("ARCHITECTURE.md names every way in which a plugin says what depends on the purpose", () => {
  const contract = /export interface Attachment<[^]*?^}$/m.exec(read("src/contract/plugin.ts"))![0];
  // What makes resources is told for every purpose alike.
  const alike = ["apply", "applyAll", "ipam"];
  const ways = [...contract.matchAll(/^ {2}(\w+)(?:<\w+>)?\(/gm)].map(([, name]) => name!)
    .filter((name) => !alike.includes(name));
  const named = [...read("ARCHITECTURE.md").matchAll(/`at\.(\w+)\(/g)].map(([, name]) => name!);
  expect(new Set(named)).toEqual(new Set(ways));
  const numbers = ["none", "one", "two", "three", "four", "five", "six", "seven"];
  expect(read("ARCHITECTURE.md").replace(/\s+/g, " ")).toContain(`in one of ${numbers[ways.length]} ways`);
});
