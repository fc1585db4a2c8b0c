/** Where a program's file says which build it is: in its last segment that is loaded (elf(5)). */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PT_LOAD, PT_NOTE } from "../../compile/elf.ts";
import { buildOf, ownBuild } from "../../src/engine/build.ts";

const directory = mkdtempSync(join(tmpdir(), "patchbay-build-"));
afterAll(() => rmSync(directory, { recursive: true }));

const FIRST = 0x140, SIZE = 60, BUILD = Buffer.from(Array.from({ length: 20 }, (_, index) => index + 1));

/** Each segment has a type and a place in the file. The last one is behind the table. */
function program(segments: [type: number, offset: number][], behind: [type: number, offset: number]): Buffer {
  const file = Buffer.alloc(0x3000);
  file.writeBigUInt64LE(BigInt(FIRST), 32);
  file.writeUInt16LE(SIZE, 54);
  file.writeUInt16LE(segments.length, 56);
  [...segments, behind].forEach(([type, offset], index) => {
    file.writeUInt32LE(type, FIRST + index * SIZE);
    file.writeBigUInt64LE(BigInt(offset), FIRST + index * SIZE + 8);
  });
  return file;
}

test("the build is 24 bytes behind the beginning of the last loaded segment, and nothing stays open", () => {
  const path = join(directory, "program");
  const file = program([[PT_LOAD, 0], [PT_LOAD, 0x1234], [PT_NOTE, 0x2000]], [PT_LOAD, 0x2100]);
  BUILD.copy(file, 0x1234 + 24);
  writeFileSync(path, file);
  const descriptors = () => readdirSync("/proc/self/fd");
  buildOf(path);
  const before = descriptors();
  expect(Buffer.from(buildOf(path))).toEqual(BUILD);
  expect(descriptors()).toEqual(before);
});

test("of this process it is that of the file that it runs", () => {
  expect(ownBuild()).toEqual(buildOf(process.execPath));
});

test("what cannot be read is an error with its path", () => {
  for (const path of [directory, join(directory, "nothing")]) expect(() => buildOf(path)).toThrow(path);
});
