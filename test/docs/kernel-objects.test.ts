/** docs/kernel-objects.md names every table, every chain of iptables and every kind of resource of the sources. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { kindNames } from "../../src/resources/table.ts";
import { repositoryFiles, root } from "../support/documents.ts";

const page = readFileSync(join(root, "docs/kernel-objects.md"), "utf8");
const sources = repositoryFiles().filter((path) => path.startsWith("src/") && path.endsWith(".ts"))
  .map((path) => readFileSync(join(root, path), "utf8")).join("\n");

function namesIn(text: string, pattern: RegExp): string[] {
  return [...new Set(Array.from(text.matchAll(pattern), ([whole, name]) => name ?? whole))].sort();
}

test("the nftables tables, with their families", () => {
  const names = namesIn(sources, /\bpatchbay_[a-z]\w*/g);
  expect(names.length).toBeGreaterThan(4);
  expect(namesIn(page, /\bpatchbay_[a-z]\w*/g)).toEqual(names);
  const shownInSources = namesIn(sources, /\btable (\w+ patchbay_\w+) \{/g);
  expect(namesIn(page, /^- `(\w+ patchbay_\w+)`/gm)).toEqual(shownInSources);
  expect(shownInSources.map((name) => name.split(" ")[1]!).sort()).toEqual(names);
});

test("the chains of iptables", () => {
  const names = namesIn(sources, /"(CNI-[A-Z0-9-]+)"/g);
  expect(names.length).toBeGreaterThan(7);
  expect(names.filter((name) => !page.includes(`\`${name}`))).toEqual([]);
  const shown = namesIn(page, /`(CNI-[A-Z0-9-]+)(?:…)?`/g).filter((name) => name !== "CNI-");
  expect(shown.filter((name) => !names.includes(name))).toEqual([]);
});

test("the kinds of resources", () => {
  const section = page.split("## Every kind of resource")[1]!.split("\n## ")[0]!;
  expect(namesIn(section, /^- `([\w-]+)`/gm)).toEqual([...kindNames].sort());
});
