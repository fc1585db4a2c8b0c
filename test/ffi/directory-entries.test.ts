/** Links, copies and renames that take the place of what was there. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  hasFileCapabilities,
  linkTarget,
  rename,
  replaceWithCopy,
  replaceWithHardLink,
  replaceWithLink,
} from "../../src/ffi/directory-entries.ts";
import { fileId, findInPath } from "../../src/ffi/find-in-path.ts";
import { closing } from "../support/closing.ts";

let directory: string, file: string, other: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "entries-"));
  [file, other] = [join(directory, "file"), join(directory, "other")];
  writeFileSync(file, "file");
  writeFileSync(other, "other");
});
afterEach(() => rmSync(directory, { recursive: true }));

const names = () => readdirSync(directory).sort();
/** What a process with our number has left. */
const leave = (path: string) => writeFileSync(`${path}.${process.pid}.tmp`, "left");

test("a symbolic link takes the place of a file and of a link", () => {
  leave(file);
  replaceWithLink(file, "other");
  expect([readlinkSync(file), linkTarget(file), linkTarget(other), names()]).toEqual([
    "other",
    "other",
    undefined,
    ["file", "other"],
  ]);
  const long = `${"x/".repeat(1000)}y`;
  replaceWithLink(file, long);
  expect(linkTarget(file)).toBe(long);
  mkdirSync(`${directory}/one/below`, { recursive: true });
  expect(() => replaceWithLink(`${directory}/one`, "other")).toThrow(`rename ${directory}/one: is a directory`);
  expect(() => replaceWithLink(`${file}/below`, "other")).toThrow("symlink");
});

test("a hard link is another name of the file, or of the link itself", () => {
  leave(file);
  replaceWithHardLink(file, other);
  expect([statSync(file).ino, names()]).toEqual([statSync(other).ino, ["file", "other"]]);
  symlinkSync("nowhere", `${directory}/link`);
  replaceWithHardLink(file, `${directory}/link`);
  expect(linkTarget(file)).toBe("nowhere");
  expect(() => replaceWithHardLink(file, `${directory}/none`)).toThrow("link ");
});

test("a copy has the mode, and all of the file, or nothing is changed", () => {
  leave(file);
  const large = "x".repeat(100_000);
  writeFileSync(other, large, { mode: 0o600 });
  closing(directory, () => replaceWithCopy(file, other, 0o751));
  expect([readFileSync(file, "utf8") === large, statSync(file).mode, names()]).toEqual([
    true,
    0o100751,
    ["file", "other"],
  ]);
  mkdirSync(`${directory}/one/below`, { recursive: true });
  const into = `${directory}/one`;
  expect(() => closing(directory, () => replaceWithCopy(into, other, 0o600))).toThrow(
    `rename ${into}: is a directory`,
  );
  expect(() => replaceWithCopy(file, `${directory}/none`, 0o600)).toThrow(`open ${directory}/none: no such file`);
  expect(names()).toEqual(["file", "one", "other"]);
});

test("a name is given up for another", () => {
  rename(file, other);
  expect([readFileSync(other, "utf8"), names()]).toEqual(["file", ["other"]]);
  expect(() => rename(file, other)).toThrow(`rename ${other}: no such file or directory`);
});

test("a file without capabilities has none, and one that is not there is an error", () => {
  expect([hasFileCapabilities(file), hasFileCapabilities("/proc/self/status")]).toEqual([false, false]);
  expect(() => hasFileCapabilities(`${directory}/none`)).toThrow(`getxattr ${directory}/none: no such file`);
});

test("a program is the first regular file of its name in PATH, links followed", () => {
  const { PATH } = process.env;
  const [empty, one, two] = ["empty", "one", "two"].map((name) => join(directory, name));
  for (const each of [empty, one, two]) mkdirSync(each!);
  writeFileSync(`${two}/program`, "");
  symlinkSync("program", `${two}/linked`);
  mkdirSync(`${one}/program`);
  symlinkSync("loop", `${one}/loop`);
  writeFileSync(`${two}/loop`, "");
  try {
    process.env.PATH = [`${file}/below`, "", empty, `${directory}/none`, one, two].join(":");
    expect(["program", "linked", "loop", "missing"].map(findInPath)).toEqual([
      `${two}/program`,
      `${two}/linked`,
      `${two}/loop`,
      undefined,
    ]);
  } finally {
    process.env.PATH = PATH;
  }
  expect(fileId(`${two}/linked`)).toBe(fileId(`${two}/program`)!);
  expect(fileId(`${two}/loop`)).not.toBe(fileId(`${two}/program`)!);
  const { dev, ino } = lstatSync(`${two}/program`, { bigint: true });
  const [device, inode] = fileId(`${two}/program`)!.split(" ");
  const [major, minor] = device!.split(":").map(BigInt) as [bigint, bigint];
  expect(BigInt(inode!)).toBe(ino);
  expect((minor & 0xffn) | (major << 8n) | ((minor & ~0xffn) << 12n)).toBe(dev);
  expect(() => fileId("x".repeat(256))).toThrow("file name too long");
});
