/** The page of counters: its bytes, and what another process reads there. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Counters, makePage, readPage } from "../../../src/frontends/resident/counters.ts";
import { secondsSinceBoot } from "../../../src/ffi/clock.ts";
import { closeFile, O_RDONLY, openFile } from "../../../src/ffi/files.ts";

const directory = mkdtempSync(join(tmpdir(), "patchbay-counters-"));
afterAll(() => rmSync(directory, { recursive: true }));

const bytesOf = (page: number) => readFileSync(`/proc/self/fd/${page}`);

function pageWith(count: (counters: Counters) => void): number {
  const page = makePage("patchbay-test");
  count(new Counters(page));
  return page;
}

/** As another process reads it: from a descriptor of its own. */
function read(path: number | string) {
  const fd = openFile(typeof path === "number" ? `/proc/self/fd/${path}` : path, O_RDONLY);
  try {
    return readPage(fd);
  } finally {
    closeFile(fd);
  }
}

test("a page says who writes it and since when, then a count and a name in each 64 bytes", () => {
  const before = secondsSinceBoot();
  const page = pageWith((counters) => {
    counters.count("served");
    counters.count("declined: uid", 258);
    counters.count("served");
  });
  const bytes = bytesOf(page), numberAt = (at: number) => bytes.readUInt32LE(at);
  expect(bytes.length).toBe(4096);
  expect([numberAt(0), numberAt(4)]).toEqual([0x31424351, process.pid]);
  expect(numberAt(8)).toBeGreaterThanOrEqual(before);
  expect(numberAt(8)).toBeLessThanOrEqual(secondsSinceBoot());
  const entry = (at: number) => [numberAt(at), bytes.toString("utf8", at + 4, at + 64)];
  expect(entry(64)).toEqual([2, "served".padEnd(60, "\0")]);
  expect(entry(128)).toEqual([258, "declined: uid".padEnd(60, "\0")]);
  expect(bytes.subarray(192).some((byte) => byte !== 0)).toBe(false);
  const counts = new Map([["served", 2], ["declined: uid", 258]]);
  expect(read(page)).toEqual({ pid: process.pid, begun: numberAt(8), counts });
  closeFile(page);
});

test("a name that fills its place has no end of its own, and a longer one is cut", () => {
  const page = pageWith((counters) => {
    for (const name of ["a".repeat(59), "b".repeat(60), "c".repeat(80), "é"]) counters.count(name);
  });
  const names = ["a".repeat(59), "b".repeat(60), "c".repeat(60), "é"];
  expect([...read(page)!.counts.keys()]).toEqual(names);
  closeFile(page);
});

test("what has no place is counted together, in the last one", () => {
  const page = pageWith((counters) => {
    for (let name = 1; name <= 70; name++) counters.count(`name ${name}`, name);
    counters.count("name 1");
    counters.count("name 70");
  });
  const { counts } = read(page)!;
  expect([...counts.keys()]).toEqual([...Array.from({ length: 62 }, (_, index) => `name ${index + 1}`), "others"]);
  expect(counts.get("name 1")).toBe(2);
  expect(counts.get("name 62")).toBe(62);
  expect(counts.get("others")).toBe(63 + 64 + 65 + 66 + 67 + 68 + 69 + 70 + 1);
  closeFile(page);
});

test("a new writer begins at nothing; what nobody has written to, or another build has, is no page", () => {
  const page = makePage("patchbay-test");
  expect(bytesOf(page).length).toBe(4096);
  expect(read(page)).toBeUndefined();
  new Counters(page);
  expect(read(page)).toMatchObject({ pid: process.pid, counts: new Map() });
  const good = bytesOf(page), file = join(directory, "page");
  const spoilt = {
    shorter: good.subarray(0, -1),
    longer: Buffer.concat([good, Buffer.of(0)]),
    other: Buffer.from(good),
  };
  spoilt.other[0]!++;
  for (const [what, bytes] of Object.entries({ good, ...spoilt })) {
    writeFileSync(file, bytes);
    expect([what, read(file) !== undefined]).toEqual([what, what === "good"]);
  }
  closeFile(page);
});
