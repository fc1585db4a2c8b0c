/** Plugins are searched in CNI_PATH and nowhere else. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { findPlugin, knownPlugin } from "../../../src/engine/delegation/find-plugin.ts";

let one: string, two: string;
beforeEach(() => {
  one = mkdtempSync(`${tmpdir()}/one-`);
  two = mkdtempSync(`${tmpdir()}/two-`);
});
afterEach(() => [one, two].forEach((directory) => rmSync(directory, { recursive: true })));

test("the first regular file of the name wins; directories and dangling links are skipped", () => {
  mkdirSync(`${one}/p`);
  writeFileSync(`${two}/p`, "");
  expect(findPlugin("p", `${one}:${two}`)).toEqual({ path: `${two}/p` });
  rmSync(`${one}/p`, { recursive: true });
  symlinkSync("/nowhere", `${one}/p`);
  expect(findPlugin("p", `${one}:${two}`)).toEqual({ path: `${two}/p` });
  rmSync(`${one}/p`);
  symlinkSync(`${two}/p`, `${one}/p`);
  expect(findPlugin("p", `${one}/:${two}`)).toEqual({ path: `${one}/p` });
});

test("a symbolic link to the running program is our own plugin", () => {
  symlinkSync(process.execPath, `${one}/loopback`);
  expect(findPlugin("loopback", one)).toMatchObject({ own: { name: "loopback" } });
  symlinkSync(process.execPath, `${one}/unheard-of`);
  expect(() => findPlugin("unheard-of", one)).toThrow("invalid plugin name: unheard-of");
});

test("another file with the name of one of our plugins is foreign", () => {
  writeFileSync(`${one}/loopback`, "");
  expect(findPlugin("loopback", one)).toEqual({ path: `${one}/loopback` });
});

test("without a search path only the plugins of this program are found", () => {
  expect(findPlugin("loopback", "")).toMatchObject({ own: { name: "loopback" } });
  expect(() => findPlugin("calico", "")).toThrow("no paths provided");
});

const refused: [type: string, path: string, message: string][] = [
  ["", "/x", "no plugin name provided"],
  ["a/b", "/x", "invalid plugin name: a/b"],
  ["../../bin/reboot", "/x", "invalid plugin name: ../../bin/reboot"],
  ["p", "/x:/y", 'failed to find plugin "p" in path [/x /y]'],
  ["..", "/usr", 'failed to find plugin ".." in path [/usr]'],
];

for (const [type, path, message] of refused) {
  test(`"${type}" in ${path}: ${message}`, () => expect(() => findPlugin(type, path)).toThrow(message));
}

test("a file or directory that everybody may write to is rejected", () => {
  writeFileSync(`${one}/p`, "");
  expect(findPlugin("p", one)).toEqual({ path: `${one}/p` });
  chmodSync(`${one}/p`, 0o757);
  expect(() => findPlugin("p", one)).toThrow(`no plugin is run from ${one}/p: everybody may write to it`);
  chmodSync(`${one}/p`, 0o775);
  chmodSync(one, 0o1777);
  expect(() => findPlugin("p", `${two}:${one}`)).toThrow(`no plugin is run from ${one}: everybody may write to it`);
  // Ours runs in this process, so the file does not matter.
  symlinkSync(process.execPath, `${one}/loopback`);
  expect(findPlugin("loopback", one)).toMatchObject({ own: { name: "loopback" } });
});

test("an empty entry is not the working directory", () => {
  expect(() => findPlugin("package.json", ":")).toThrow('failed to find plugin "package.json" in path [ ]');
});

test("what a plain name makes is known whoever's the program is, of a name with a prefix only where it is ours", () => {
  const name = (type: string, path: string) => knownPlugin(type, path)?.name;
  writeFileSync(`${one}/bridge`, "");
  writeFileSync(`${one}/my-bridge`, "");
  symlinkSync(process.execPath, `${two}/my-bridge`);
  expect([name("bridge", one), name("bridge", two), name("bridge", "")]).toEqual(["bridge", "bridge", "bridge"]);
  expect([name("my-bridge", one), name("my-bridge", two)]).toEqual([undefined, "bridge"]);
  expect([name("my-bridge", "/nowhere"), name("calico", two)]).toEqual([undefined, undefined]);
  expect(name("netavark-bridge", one)).toBe("netavark-bridge");
});
