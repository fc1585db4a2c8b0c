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

/** What the script prints in a process that was started with these entries. */
function told(entries: string[], body: string): unknown {
  const source = `
    import * as environment from ${JSON.stringify(`${import.meta.dir}/../../src/ffi/environment.ts`)};
    import { fromUtf8, utf8 } from ${JSON.stringify(`${import.meta.dir}/../../src/ffi/libc.ts`)};
    const texts = (entries) => entries.map(fromUtf8);
    ${body}`;
  const argv = ["env", "-i", ...entries, process.execPath, "-e", source];
  const { stdout, stderr } = Bun.spawnSync(argv);
  expect(stderr.toString()).toBe("");
  return JSON.parse(stdout.toString());
}

test("a program that is started gets all but the runtime's variables, and those that are set for it", () => {
  const body = `console.log(JSON.stringify([
    texts(environment.environmentForChild()),
    texts(environment.environmentForChild({ A: "3", C: "" })),
  ]));`;
  expect(told(["A=1", "B=two=2", "BUN_OPTIONS=", "BUNDLE=1", "AB=1"], body)).toEqual([
    ["A=1", "B=two=2", "BUNDLE=1", "AB=1"],
    ["B=two=2", "BUNDLE=1", "AB=1", "A=3", "C="],
  ]);
});

test("the environment may be another process's, as it stands in memory", () => {
  const body = `
    const before = [environment.variable("A"), environment.variable("B"), texts(environment.environmentEntries())];
    const block = utf8("B=1\\0B=two=2\\0C\\0\\0D=\\0");
    environment.takeEnvironment(block);
    const after = ["A", "B", "C", "D", "E"].map((name) => environment.variable(name) ?? null);
    console.log(JSON.stringify({
      before: before.map((one) => one ?? null),
      after,
      same: environment.environmentBlock() === block,
      entries: texts(environment.environmentEntries()),
      child: texts(environment.environmentForChild({ B: "3" })),
    }));
    environment.takeEnvironment(utf8("A=1\\0A=2"));`;
  expect(told(["A=1"], body)).toEqual({
    before: ["1", null, ["A=1"]],
    after: [null, "two=2", "", "", null],
    same: true,
    entries: ["B=1", "B=two=2", "C", "D="],
    child: ["C", "D=", "B=3"],
  });
});

test("an environment that was moved or is too long for a look is read from the kernel's file", () => {
  // What setenv(3) adds lies elsewhere; putenv(3) and unsetenv(3) leave fewer pointers than entries.
  const body = `
    import { bind, cString } from ${JSON.stringify(`${import.meta.dir}/../../src/ffi/libc.ts`)};
    const { setenv, unsetenv } = bind({
      setenv: { args: ["ptr", "ptr", "i32"], returns: "i32" },
      unsetenv: { args: ["ptr"], returns: "i32" },
    });
    const lengths = [environment.environmentBlock().length];
    CHANGE;
    lengths.push(environment.environmentBlock().length);
    console.log(JSON.stringify(lengths));`;
  for (const change of ['unsetenv(cString("B"))', 'setenv(cString("NEW"), cString("1"), 1)']) {
    expect(told(["A=1", "B=2", "C=3"], body.replace("CHANGE", change))).toEqual([12, 12]);
  }
  expect(told([], body.replace("CHANGE", ""))).toEqual([0, 0]);
});
