/** Directories with what is in them, and what the kernel says of a file. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  closeSync,
  linkSync,
  mkdirSync,
  openSync,
  rmdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import {
  entriesIn,
  exists,
  idAt,
  identify,
  isDirectory,
  isLink,
  isRegularFile,
  isSocket,
  listDirectory,
  makeDirectories,
  namesIn,
  removeEmptyDirectory,
  removeFile,
} from "../../src/ffi/files.ts";
import { closing } from "../support/closing.ts";
import { ScratchFile } from "../support/scratch-file.ts";

let scratch: ScratchFile, directory: string, file: string;
beforeEach(() => ({ directory, file } = scratch = new ScratchFile()));
afterEach(() => scratch[Symbol.dispose]());

describe("directories", () => {
  test("are made with their parents, each of the mode", () => {
    const path = join(directory, "one/two/three");
    makeDirectories(path, 0o750);
    for (const each of ["one", "one/two", "one/two/three"]) {
      expect(statSync(join(directory, each)).mode).toBe(0o40750);
    }
    makeDirectories(path);
    makeDirectories(join(directory, "own"));
    expect(statSync(join(directory, "own")).mode).toBe(0o40700);
    writeFileSync(file, "");
    expect(() => makeDirectories(`${file}/below`)).toThrow(`mkdir ${file}/below: not a directory`);
    expect(() => makeDirectories("")).toThrow("mkdir: no such file or directory");
  });

  test("are removed when they are empty, files where there are some", () => {
    mkdirSync(`${directory}/empty`);
    expect([removeEmptyDirectory(`${directory}/empty`), removeEmptyDirectory(`${directory}/empty`)]).toEqual([
      true,
      false,
    ]);
    writeFileSync(file, "");
    expect(removeEmptyDirectory(directory)).toBe(false);
    expect(removeFile(`${file}/below`)).toBe(false);
    expect([removeFile(file), removeFile(file), removeFile(`${directory}/${"x".repeat(256)}`)]).toEqual([
      true,
      false,
      false,
    ]);
    expect(() => removeFile(directory)).toThrow(`unlink ${directory}: is a directory`);
  });

  test("list their entries with what they are, however many they are", () => {
    expect(listDirectory(`${directory}/none`)).toEqual([]);
    // More than the kernel tells at once.
    const many = Array.from({ length: 200 }, (_, index) => `${"long name ".repeat(20)}${1000 + index}`);
    for (const name of many) writeFileSync(join(directory, name), "");
    expect(closing(directory, () => listDirectory(directory))).toEqual(many);
    expect(namesIn(directory).toSorted()).toEqual(many);
    const below = join(directory, many[0]!, "..", "below");
    mkdirSync(below);
    mkdirSync(`${below}/ä directory`);
    writeFileSync(`${below}/a file`, "");
    symlinkSync("a file", `${below}/link`);
    expect(entriesIn(below).toSorted((one, other) => one.name < other.name ? -1 : 1)).toEqual([
      { name: "a file", kind: "file" },
      { name: "link", kind: "other" },
      { name: "ä directory", kind: "directory" },
    ]);
    expect(() => listDirectory(join(below, "a file"))).toThrow(`open ${join(below, "a file")}: not a directory`);
  });

  test("that are removed after they were opened have no names", () => {
    mkdirSync(`${directory}/gone`);
    const fd = openSync(`${directory}/gone`, "r");
    rmdirSync(`${directory}/gone`);
    expect(listDirectory(`/proc/self/fd/${fd}`)).toEqual([]);
    closeSync(fd);
  });
});

describe("what a file is", () => {
  test("by its path or its descriptor, also of one that is larger or newer than 32 bits", () => {
    writeFileSync(file, "");
    linkSync(file, `${file}2`);
    const size = 3 * 2 ** 32 + 5, modified = 2 ** 32 + 7;
    truncateSync(file, size);
    chmodSync(file, 0o4751);
    utimesSync(file, modified, modified);
    const found = identify(file);
    expect(found).toMatchObject({ mode: 0o104751, size, modified, links: 2, uid: process.geteuid!() });
    expect(scratch.withFile(identify)).toEqual(found);
    expect(identify(`${file}2`).id).toBe(found.id);
    const { dev, ino } = statSync(file, { bigint: true });
    const [device, high, low] = found.id.split(":").map(BigInt) as [bigint, bigint, bigint];
    expect((high << 32n) + low).toBe(ino);
    // Major and minor number, in halves of 64 bits as stat(2) puts them together.
    const major = device & 0xffffffffn, minor = device >> 32n;
    expect((minor & 0xffn) | ((major & 0xfffn) << 8n) | ((minor & ~0xffn) << 12n)).toBe(dev);
    expect(idAt(directory)).not.toBe(found.id);
    expect(() => identify(`${file}3`)).toThrow(`stat ${file}3: no such file or directory`);
    expect(() => identify(4000)).toThrow("stat descriptor 4000: bad file descriptor");
  });

  test("a link is what it leads to, unless it is asked for itself", () => {
    writeFileSync(file, "");
    symlinkSync("file", `${file}2`);
    symlinkSync("none", `${file}3`);
    expect(identify(`${file}2`).id).toBe(identify(file).id);
    expect(isLink(identify(`${file}2`, false))).toBe(true);
    expect([exists(`${file}2`), exists(`${file}3`), exists(directory)]).toEqual([true, false, true]);
    expect(idAt(`${file}2`)).toBe(identify(`${file}2`, false).id);
    expect(idAt(`${file}2`)).not.toBe(idAt(file));
    expect([typeof idAt(`${file}3`), idAt(`${file}4`)]).toEqual(["string", undefined]);
  });

  test("each is of one kind", () => {
    const kinds = (mode: number) => {
      const found = { ...identify(directory), mode };
      return [isDirectory(found), isRegularFile(found), isLink(found), isSocket(found)];
    };
    expect(kinds(0o040755)).toEqual([true, false, false, false]);
    expect(kinds(0o100644)).toEqual([false, true, false, false]);
    expect(kinds(0o120777)).toEqual([false, false, true, false]);
    expect(kinds(0o140777)).toEqual([false, false, false, true]);
    expect(kinds(0o060660)).toEqual([false, false, false, false]);
  });
});
