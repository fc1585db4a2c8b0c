/** The first code of the program hides what the embedded runtime would obey, becomes the runtime, and nothing else. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flags } from "../../compile/build.ts";
import { Elf, PT_LOAD, PT_NOTE, PT_NULL } from "../../compile/elf.ts";
import { replaceEntry } from "../../compile/entry.ts";
import { compileNative } from "../../compile/native.ts";
import { needs } from "../support/needs.ts";

needs("gcc");

const hiddenPrefixes = [
  "BUN_",
  "JSC_",
  "JavaScriptCore",
  "WTF_",
  "WebKit",
  "Malloc",
  "MIMALLOC_",
  "ICU_",
  "SIMDUTF_",
  "GLIBCXX_",
  "HYPERFINE_",
  "NODE_CHANNEL_",
  "NODE_OPTIONS",
  "NODE_PATH",
  "NODE_PRESERVE_",
  "NODE_UNIQUE_ID",
  "NODE_V8_COVERAGE",
];

let directory: string;
let compiled: Uint8Array;
let program: string;

/** Prints what the runtime sees of its environment, and the arguments it was given. */
const source = "console.log(JSON.stringify({ env: process.env, args: process.argv.slice(2) }));";

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "patchbay-entry-"));
  writeFileSync(join(directory, "show.ts"), source);
  const out = join(directory, "compiled");
  const built = Bun.spawnSync([process.execPath, "build", ...flags, `--outfile=${out}`, join(directory, "show.ts")]);
  expect(built.exitCode).toBe(0);
  compiled = readFileSync(out);
  program = join(directory, "program");
  writeFileSync(program, replaceEntry(compiled, compileNative("entry", "x64")));
  chmodSync(program, 0o755);
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Through env(1), because a JavaScript object holds each name once and only names. */
function seenOf(assignments: string[], args: string[] = []) {
  const run = Bun.spawnSync(["env", "-i", ...assignments, program, ...args], { stdout: "pipe", stderr: "pipe" });
  expect(run.stderr.toString()).toBe("");
  return JSON.parse(run.stdout.toString());
}

test("an empty environment stays empty", () => {
  expect(seenOf([])).toEqual({ env: {}, args: [] });
});

test("what begins with a prefix is hidden wherever it stands, and arguments keep their order", () => {
  const seen = seenOf(["BUN_A=1", "A=1", "BUN_B=2", "BUN_C=3", "B=2", "Z=3", "BUN_Z=9"], ["one", "two"]);
  expect(seen).toEqual({ env: { A: "1", B: "2", Z: "3" }, args: ["one", "two"] });
});

for (const prefix of hiddenPrefixes) {
  test(`${prefix} is hidden, in any case`, () => {
    const names = [prefix, prefix.toLowerCase(), prefix.toUpperCase()].flatMap((name) => [name, `${name}X`]);
    expect(seenOf([...new Set(names)].map((name) => `${name}=1`)).env).toEqual({});
  });
}

test("what only resembles a prefix stays", () => {
  const names = ["BUN", "BUNX_A", "XBUN_A", "B", "NODE_NAME", "NODE_ENV", "JSCX", "MALL", "PATH", "CNI_ARGS"];
  expect(Object.keys(seenOf(names.map((name) => `${name}=1`)).env)).toEqual(names);
});

test("a long environment is gone through to its end", () => {
  const kept = Array.from({ length: 3000 }, (_, index) => `KEEP_${index}=${"x".repeat(index % 50)}`);
  const mixed = kept.flatMap((entry, index) => index % 3 === 0 ? [`BUN_${entry}`, entry] : [entry]);
  expect(Object.entries(seenOf(mixed).env).map(([name, value]) => `${name}=${value}`)).toEqual(kept);
});

test("the dynamic loader is the one that the program names", () => {
  const mapped = Bun.spawnSync(["strace", "-e", "trace=openat,mprotect", program], {
    stdout: "pipe",
    stderr: "pipe",
  });
  expect(mapped.stderr.toString()).toContain(`openat(AT_FDCWD, "/lib64/ld-linux-x86-64.so.2", O_RDONLY|O_CLOEXEC)`);
});

test("what is executed by a descriptor takes its name, and nothing else asks for one", () => {
  const traced = (path: string) =>
    Bun.spawnSync(["bash", "-c", `exec 9<${program}; exec strace -e trace=prctl ${path} one`], {
      stdout: "pipe",
      stderr: "pipe",
    }).stderr.toString();
  expect(traced("/proc/self/fd/9")).toContain('prctl(PR_SET_NAME, "9")');
  expect(traced(program)).not.toContain("PR_SET_NAME");
});

test("without a loader it says so", () => {
  const wrong = new Uint8Array(readFileSync(program));
  const at = Buffer.from(wrong.buffer).indexOf("/lib64/ld-linux-x86-64.so.2");
  wrong.set(new TextEncoder().encode("/lib64/no"), at);
  const broken = join(directory, "broken");
  writeFileSync(broken, wrong);
  chmodSync(broken, 0o755);
  const { exitCode, stdout, stderr } = Bun.spawnSync([broken], { stdout: "pipe", stderr: "pipe" });
  expect([exitCode, stdout.toString()]).toEqual([1, ""]);
  expect(stderr.toString()).toStartWith(
    "patchbay: this host has no dynamic loader /lib64/no-linux-x86-64.so.2; install ",
  );
});

test("the code is mapped whatever pages the processor's kernels use", () => {
  const others = new Elf(new Uint8Array(compiled)), PAGE = 65536;
  for (const one of others.segments) if (one.type === PT_LOAD) others.setSegment({ ...one, alignment: PAGE });
  const bytes = replaceEntry(others.bytes, compileNative("entry", "x64"));
  const loadable = new Elf(bytes).segments.filter(({ type }) => type === PT_LOAD);
  const { offset, address, alignment } = loadable.pop()!;
  expect([alignment, offset % PAGE, address % PAGE]).toEqual([PAGE, 0, 0]);
  // It shares a page with no other.
  expect(address).toBeGreaterThanOrEqual(Math.max(...loadable.map((one) => one.address + one.memoryBytes)));
});

test("what is no program, or has no room for the code, is refused", () => {
  const code = compileNative("entry", "x64");
  expect(() => replaceEntry(new Uint8Array(64), code)).toThrow("no ELF file for x86-64 or arm64");
  const without = new Elf(new Uint8Array(compiled));
  without.view.setUint32(without.segments.find(({ type }) => type === PT_NOTE)!.at, PT_NULL, true);
  expect(() => replaceEntry(without.bytes, code)).toThrow("no note segment to replace");
});
