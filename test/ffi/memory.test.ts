/**
 * What the lease store relies on: atomic operations between processes that map one file. JavaScript promises
 * atomicity for SharedArrayBuffer only, so this is the proof for the buffers that mmap(2) gives us; see
 * docs/lease-store.md, "Memory model".
 */
import { expect, test } from "bun:test";
import { identify } from "../../src/ffi/files.ts";
import { allocateOnDisk, mapShared, unmap } from "../../src/ffi/memory.ts";
import { OpenScratchFile } from "../support/scratch-file.ts";

const PROCESSES = 4;

function file(sizeBytes: number): OpenScratchFile {
  const made = new OpenScratchFile();
  allocateOnDisk(made.fd, sizeBytes, made.file);
  return made;
}

/** Runs `body` in several processes at once, with `words` mapped and `me` counting them; answers what they print. */
async function inProcesses(path: string, body: string, engine: Record<string, string> = {}): Promise<string[]> {
  const source = `
    import { identify, O_RDWR, openFile } from "${import.meta.dir}/../../src/ffi/files.ts";
    import { mapShared } from "${import.meta.dir}/../../src/ffi/memory.ts";
    const fd = openFile(${JSON.stringify(path)}, O_RDWR);
    const words = new Int32Array(mapShared(fd, identify(fd).size, "test"));
    const me = Number(process.argv.at(-1));
    // All begin together: the first word counts who is there.
    Atomics.add(words, 0, 1);
    while (Atomics.load(words, 0) < ${PROCESSES});
    ${body}`;
  const children = Array.from(
    { length: PROCESSES },
    (_, me) =>
      Bun.spawn([process.execPath, "-e", source, "--", String(me + 1)], {
        stdout: "pipe",
        stderr: "inherit",
        env: { ...process.env, ...engine },
      }),
  );
  const printed = await Promise.all(children.map((child) => child.stdout.text()));
  for (const child of children) expect(await child.exited).toBe(0);
  return printed;
}

test("no increment is lost", async () => {
  using made = file(4096);
  const ROUNDS = 300_000;
  await inProcesses(made.file, `for (let round = 0; round < ${ROUNDS}; round++) Atomics.add(words, 1, 1);`);
  const words = new Int32Array(mapShared(made.fd, 4096, "test"));
  expect(words[1]).toBe(PROCESSES * ROUNDS);
  unmap(words.buffer);
}, 300_000);

test("and the same without Atomics does lose some, so the test can tell", async () => {
  const ROUNDS = 3_000_000;
  for (let attempt = 0; attempt < 5; attempt++) {
    using made = file(4096);
    await inProcesses(made.file, `for (let round = 0; round < ${ROUNDS}; round++) words[1]++;`);
    const words = new Int32Array(mapShared(made.fd, 4096, "test"));
    const counted = words[1]!;
    unmap(words.buffer);
    if (counted < PROCESSES * ROUNDS) return;
  }
  throw new Error("processes without atomic operations did not get into each other's way");
}, 300_000);

test.each([
  ["all tiers of the engine", {}],
  ["no optimizing tier", { BUN_JSC_useDFGJIT: "0" }],
  ["no last tier", { BUN_JSC_useFTLJIT: "0" }],
  ["tiering up at once", { BUN_JSC_thresholdForJITAfterWarmUp: "10", BUN_JSC_thresholdForOptimizeAfterWarmUp: "20" }],
])("each word is claimed by one process: %s", async (_, engine) => {
  const COUNT = 65_536;
  using made = file(4 * (COUNT + 1));
  const printed = await inProcesses(
    made.file,
    `let claimed = 0;
    for (let at = 1; at < words.length; at++) if (Atomics.compareExchange(words, at, 0, me) === 0) claimed++;
    console.log(claimed);`,
    engine as Record<string, string>,
  );
  expect(printed.map(Number).reduce((sum, claimed) => sum + claimed, 0)).toBe(COUNT);
  const words = new Int32Array(mapShared(made.fd, 4 * (COUNT + 1), "test"));
  for (let me = 1; me <= PROCESSES; me++) {
    expect(words.slice(1).filter((word) => word === me)).toHaveLength(Number(printed[me - 1]));
  }
  unmap(words.buffer);
}, 300_000);

test("who sees an atomic store sees what was stored before it", async () => {
  using made = file(8192);
  const ROUNDS = 2_000_000;
  const printed = await inProcesses(
    made.file,
    `let wrong = 0;
    if (me === 1) {
      for (let round = 1; round <= ${ROUNDS}; round++) {
        words[1000] = round;
        Atomics.store(words, 1, round);
      }
    } else {
      for (let seen = 0; seen < ${ROUNDS};) {
        seen = Atomics.load(words, 1);
        if (words[1000] < seen) wrong++;
      }
    }
    console.log(wrong);`,
  );
  expect(printed.map(Number)).toEqual(new Array(PROCESSES).fill(0));
}, 300_000);

test("allocateOnDisk() gives the file its length at once, and mapShared() shares it", () => {
  using made = file(10_000);
  expect(identify(made.fd).size).toBe(10_000);
  const one = new Uint8Array(mapShared(made.fd, 10_000, "test"));
  const other = new Uint8Array(mapShared(made.fd, 10_000, "test"));
  one[9_999] = 42;
  expect(other[9_999]).toBe(42);
  unmap(one.buffer);
  unmap(other.buffer);
});

test("mapShared() says why it cannot", () => {
  expect(() => mapShared(-1, 4096, "/some/path")).toThrow("mmap /some/path: bad file descriptor");
});
