/**
 * The environment block is what execve(2) was given, byte for byte, also with names that repeat and without values.
 */
import { expect, test } from "bun:test";
import { spawn, waitFor } from "../../src/ffi/spawn.ts";
import { utf8 } from "../../src/ffi/libc.ts";

const script = `
  const { environmentBlock } = await import(${JSON.stringify(`${import.meta.dir}/../../src/ffi/environment.ts`)});
  const { readFileSync } = await import("node:fs");
  process.env.SET_LATER = "by this program";
  const block = environmentBlock();
  const same = Buffer.compare(block, readFileSync("/proc/self/environ")) === 0;
  process.exit(same && block.length === Number(process.argv.at(-1)) ? 0 : 1);
`;

test.each([
  ["none", []],
  ["an empty value", ["A="]],
  ["no value", ["A"]],
  ["two of one name", ["CNI_IFNAME=eth0", "CNI_IFNAME=eth1"]],
  ["a large one", ["PATH=/bin", `BIG=${"x".repeat(100_000)}`, "LAST=1"]],
])("environmentBlock() is what the process was started with: %s", (_name, entries) => {
  const length = entries.reduce((sum, entry) => sum + entry.length + 1, 0);
  const pid = spawn({
    path: process.execPath,
    argv: ["bun", "-e", script, "--", String(length)],
    environment: entries.map(utf8),
    descriptors: [undefined, 1, 2],
  });
  expect(waitFor(pid)).toEqual({ exitStatus: 0 });
});
