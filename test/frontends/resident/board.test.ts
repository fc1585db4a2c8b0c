/** The board: its bytes, which the launcher and the status read, and what of it is whose. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { readFileSync, rmSync } from "node:fs";
import { secondsSinceBoot } from "../../../src/ffi/clock.ts";
import { closeFile, O_CREAT, O_RDWR, openFile } from "../../../src/ffi/files.ts";
import { boardOf, Slot } from "../../../src/frontends/resident/board.ts";
import { ScratchFile } from "../../support/scratch-file.ts";

const PARENTS = 128, PAGES_AT = 4096, PAGE_BYTES = 2048;

let scratch: ScratchFile, file: number;
beforeEach(() => {
  scratch = new ScratchFile();
  file = openFile(scratch.file, O_RDWR | O_CREAT);
});
afterEach(() => {
  closeFile(file);
  scratch[Symbol.dispose]();
});

const path = () => scratch.file, bytes = () => readFileSync(path());

function slot(number: number): Slot {
  const made = new Slot(file, number);
  made.ready();
  return made;
}

test("a slot says who works, since when it is busy, how many calls it took, and when it began", () => {
  const before = secondsSinceBoot(),
    worker = slot(3),
    numbers = () => [0, 4, 8, 12].map((at) => bytes().readUInt32LE(48 + at));
  expect(numbers().slice(0, 3)).toEqual([process.pid, 0, 0]);
  expect(numbers()[3]! >= before && numbers()[3]! <= secondsSinceBoot()).toBe(true);
  worker.setBusy();
  expect(numbers()[1]).toBeGreaterThan(0);
  worker.countCall();
  expect(numbers()[2]).toBe(0);
  worker.setIdle();
  expect(numbers().slice(1, 3)).toEqual([0, 1]);
});

test("a page has a count and a name in each 64 bytes", () => {
  const worker = slot(2);
  for (const name of ["served", "declined: uid", "served"]) worker.count(name);
  worker.set("taken back", 258);
  const at = PAGES_AT + 2 * PAGE_BYTES,
    entry = (index: number) => {
      const from = at + index * 64;
      return [bytes().readUInt32LE(from), bytes().toString("utf8", from + 4, from + 64)];
    };
  expect([0, 1, 2].map(entry)).toEqual([
    [2, "served".padEnd(60, "\0")],
    [1, "declined: uid".padEnd(60, "\0")],
    [258, "taken back".padEnd(60, "\0")],
  ]);
});

test("it is read when it is this resident's: the parent's counts, and those of each worker that is ready", () => {
  slot(0).count("served");
  new Slot(file, 1).count("served");
  expect(boardOf(process.pid, path())).toBeUndefined();
  slot(PARENTS).set("worker replaced", 2);
  slot(127).set("served", 7);
  const { parent, workers } = boardOf(process.pid, path())!;
  expect([parent, ...workers].map(({ pid, counts }) => [pid, ...counts])).toEqual([
    [process.pid, ["worker replaced", 2]],
    [process.pid, ["served", 1]],
    [process.pid, ["served", 7]],
  ]);
  expect(boardOf(process.pid + 1, path())).toBeUndefined();
  expect(boardOf(process.pid, "/nowhere")).toBeUndefined();
});

test("what is no file is no board, and nobody is waited for", () => {
  const pipe = `${path()}-pipe`;
  Bun.spawnSync(["mkfifo", pipe]);
  expect(boardOf(process.pid, pipe)).toBeUndefined();
  rmSync(pipe);
});

test("a name that fills its place has no end of its own, a longer one is cut, and what has no place is not shown", () => {
  const worker = slot(0);
  slot(PARENTS);
  for (const name of ["a".repeat(59), "b".repeat(60), "c".repeat(80), "é"]) worker.count(name);
  for (let index = 0; index < 40; index++) worker.count(`name ${index}`);
  worker.count("é");
  const counts = [...boardOf(process.pid, path())!.workers[0]!.counts];
  expect(counts.length).toBe(32);
  expect(counts.slice(0, 5)).toEqual([["a".repeat(59), 1], ["b".repeat(60), 1], ["c".repeat(60), 1], ["é", 2], [
    "name 0",
    1,
  ]]);
  expect(bytes().subarray(PAGES_AT + PAGE_BYTES, PAGES_AT + 2 * PAGE_BYTES).some((byte) => byte !== 0)).toBe(false);
});
