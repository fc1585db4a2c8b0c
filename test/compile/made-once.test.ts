/** Folders that several processes may make at once. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { madeOnce } from "../../compile/made-once.ts";

let directory: string;
beforeAll(() => void (directory = mkdtempSync(join(tmpdir(), "made-once-"))));
afterAll(() => rmSync(directory, { recursive: true }));

const named = (name: string) => (folder: string) => writeFileSync(join(folder, "name"), name);

test("it is made once, with the folders above it", () => {
  const folder = join(directory, "above/once");
  for (const name of ["first", "second"]) expect(madeOnce(folder, named(name))).toBe(folder);
  expect(readFileSync(join(folder, "name"), "utf8")).toBe("first");
});

test("where another process was first, its folder stays", () => {
  const folder = join(directory, "meeting");
  madeOnce(folder, (unfinished) => {
    named("later")(unfinished);
    mkdirSync(folder);
    named("earlier")(folder);
  });
  expect(readFileSync(join(folder, "name"), "utf8")).toBe("earlier");
});

test("of what fails, nothing stays", () => {
  const folder = join(directory, "failing");
  expect(() =>
    madeOnce(folder, (unfinished) => {
      named("half")(unfinished);
      throw new Error("no network");
    })
  ).toThrow("no network");
  expect(readdirSync(directory).filter((name) => name.startsWith("failing"))).toEqual([]);
});

test("what a process with this number left is not in it", () => {
  const folder = join(directory, "again"), left = `${folder}.${process.pid}`;
  mkdirSync(left);
  writeFileSync(join(left, "left"), "");
  madeOnce(folder, named("new"));
  expect(readdirSync(folder)).toEqual(["name"]);
});
