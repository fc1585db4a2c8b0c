/** Which packages the build installs is written down to the byte. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { root } from "../support/documents.ts";

const read = (path: string) => JSON.parse(readFileSync(join(root, path), "utf8"));

test("every package has one version and a checksum, and the product itself depends on none", () => {
  const { devDependencies, ...own } = read("package.json");
  expect(Object.keys(own).filter((key) => /dependencies$/i.test(key))).toEqual([]);
  expect(Object.values(devDependencies).filter((version) => !/^\d+\.\d+\.\d+$/.test(String(version)))).toEqual([]);
  const { "": _own, ...locked } = read("package-lock.json").packages as Record<string, { integrity?: string }>;
  expect(Object.keys(locked).length).toBeGreaterThan(Object.keys(devDependencies).length);
  const loose = Object.entries(locked).filter(([, { integrity }]) => !/^sha512-\S{86}==$/.test(integrity ?? ""));
  expect(loose.map(([name]) => name)).toEqual([]);
});
