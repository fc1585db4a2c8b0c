/** Operations on one container wait for each other, operations on two do not, and GC waits for all. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { withContainerLocked } from "../../src/runtime/lock.ts";

let directory: string;
beforeEach(() => (directory = mkdtempSync(`${tmpdir()}/lock-`)));
afterEach(() => rmSync(directory, { recursive: true }));

const module = JSON.stringify(new URL("../../src/runtime/lock.ts", import.meta.url).pathname);

/** Another process that takes the lock, reports it, and keeps it until the file of its name appears. */
function holder(name: string, take: (directory: string) => string) {
  const work = `() => {
    fs.writeSync(1, "held");
    while (!fs.existsSync("${directory}/${name}")) Bun.sleepSync(2);
    fs.appendFileSync("${directory}/log", "${name} ");
  }`;
  const script = `const fs = require("node:fs"), lock = require(${module}); lock.${
    take(JSON.stringify(directory))
  }${work});`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "pipe" });
  const next = async (stream: ReadableStream<Uint8Array>) => {
    const reader = stream.getReader();
    const { value } = await reader.read();
    reader.releaseLock();
    return new TextDecoder().decode(value);
  };
  const held = next(child.stdout);
  return {
    held: () => held,
    waits: () => Promise.race([next(child.stderr), held]),
    async release() {
      writeFileSync(`${directory}/${name}`, "");
      expect(await child.exited).toBe(0);
    },
  };
}

const container = (id: string) => (directory: string) =>
  `withContainerLocked({ cacheDirectory: ${directory} }, "${id}", `;
const all = (directory: string) => `withAllLocked({ cacheDirectory: ${directory} }, `;
const log = () => readFileSync(`${directory}/log`, "utf8");

test("two operations on one container follow each other", async () => {
  const first = holder("first", container("a"));
  await first.held();
  const second = holder("second", container("a"));
  expect(await second.waits()).toBe('patchbay: waiting for another operation on container "a" to end\n');
  await first.release();
  expect(await second.held()).toBe("held");
  await second.release();
  expect(log()).toBe("first second ");
});

test("operations on two containers overlap, and GC waits for both", async () => {
  const first = holder("first", container("a")), second = holder("second", container("b"));
  await Promise.all([first.held(), second.held()]);
  const gc = holder("gc", all);
  expect(await gc.waits()).toContain("waiting for another operation on the containers of this host");
  await first.release();
  await second.release();
  expect(await gc.held()).toBe("held");
  const third = holder("third", container("c"));
  expect(await third.waits()).toContain("waiting");
  await gc.release();
  await third.held();
  await third.release();
  expect(log()).toBe("first second gc third ");
});

test("a directory that cannot be made locks nothing and stops nothing", () => {
  writeFileSync(`${directory}/file`, "");
  expect(withContainerLocked({ cacheDirectory: `${directory}/file/cache` }, "a", () => 5)).toBe(5);
  expect(existsSync(`${directory}/file/cache`)).toBe(false);
});
