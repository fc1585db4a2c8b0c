/** Copies of this checkout that changes are put into, one at a time, and the tests that run there. */
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dlopen } from "bun:ffi";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readDurations } from "../runner/report.ts";
import { root, unitTests } from "../runner/test-files.ts";
import { killOrphans, killRunning, runToEnd } from "../runner/test-process.ts";

const durations = readDurations(), units = new Set(unitTests());

/** The first two would make the tests run another program than the copy's, the third other cases each time. */
const VARIABLES = {
  PATCHBAY_TEST_PROGRAM: undefined,
  PATCHBAY_TEST_PLUGINS: undefined,
  PATCHBAY_TEST_SEED: process.env.PATCHBAY_TEST_SEED ?? "1",
};

export const BUILD = "compile/build.ts";
const NO_SUCH_TEST = "stale: no test of its file has the name";
const BUILD_LIMIT_MS = 300_000;

export interface Tests {
  tests: readonly string[];
  /** A regular expression for the names of tests. */
  named?: string;
}

/** What noticed a change: a test, a file that did not come to its end, or the build. */
export interface Noticed {
  file: string;
  name?: string;
}

interface Run {
  ending: number | string;
  output: string;
}

/** A changed program may run for ever, and outlive the test that started it. Other copies run tests at the same time. */
async function run(directory: string, command: string[], limitMs: number): Promise<Run> {
  const variables = { ...VARIABLES, PATCHBAY_TEST_COPY: directory };
  const { ending, output } = await runToEnd([process.execPath, ...command], directory, variables, limitMs);
  // Some programs are started without their caller's variables: where one copy runs tests, all that is left is its own.
  killOrphans(copies.size === 1 ? undefined : `PATCHBAY_TEST_COPY=${directory}`);
  return { ending, output };
}

const PR_SET_CHILD_SUBREAPER = 36;

let adopts = false;

/** Whatever is left behind becomes this process's child, and ends with it. */
function adoptOrphans(): void {
  if (adopts) return;
  adopts = true;
  const { symbols } = dlopen("libc.so.6", { prctl: { args: ["i32", "u64"], returns: "i32" } });
  if (symbols.prctl(PR_SET_CHILD_SUBREAPER, 1) !== 0) throw new Error("prctl(PR_SET_CHILD_SUBREAPER) failed");
  for (const [signal, number] of [["SIGINT", 2], ["SIGTERM", 15], ["SIGHUP", 1]] as const) {
    process.once(signal, () => {
      killRunning();
      killOrphans();
      for (const directory of copies) rmSync(directory, { recursive: true, force: true });
      process.exit(128 + number);
    });
  }
}

const copies = new Set<string>();

/** Copies the files that are committed or could be, and links the npm packages. */
function copyCheckout(directory: string): void {
  const listed = Bun.spawnSync(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
  });
  if (listed.exitCode !== 0) throw new Error(`git ls-files: ${listed.stderr}`);
  for (const path of listed.stdout.toString().split("\0")) {
    if (path === "" || !existsSync(join(root, path))) continue;
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    cpSync(join(root, path), join(directory, path));
  }
  symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
}

async function build(directory: string): Promise<boolean> {
  return (await run(directory, [BUILD], BUILD_LIMIT_MS)).ending === 0;
}

function digestOfProgram(directory: string): string {
  return String(Bun.hash(readFileSync(join(directory, "dist/patchbay"))));
}

function isOfProgram(file: string): boolean {
  return file.startsWith("src/") && !file.startsWith("src/frontends/library/");
}

/** Only ends what hangs: a busy machine may take many times what was recorded. */
function limitMs(file: string): number {
  return 90_000 + 6000 * (durations[file]?.here ?? 0);
}

/** Returns the first test that fails, and no test when the file dies or hangs; undefined when the tests pass. */
async function failureIn(
  directory: string,
  file: string,
  named?: string,
): Promise<Noticed | typeof NO_SUCH_TEST | undefined> {
  const only = named === undefined ? [] : ["-t", named];
  const { ending, output } = await run(
    directory,
    ["test", "--timeout=60000", "--bail", file, ...only],
    limitMs(file),
  );
  if (/^error: regex .* matched 0 tests/m.test(output)) return NO_SUCH_TEST;
  return ending === 0 ? undefined : { file, name: firstFailed(output) };
}

/** The test that failed first; undefined when a hook did, which has no name to run it by, or when the file died. */
export function firstFailed(output: string): string | undefined {
  const [, name] = /^\(fail\) (.*?)(?: \[[\d.]+ms\])?$/m.exec(output) ?? [];
  return name === "(unnamed)" ? undefined : name;
}

/** A test that fails once may have failed because the machine was busy. */
async function failsAgain(directory: string, { file, name }: Noticed): Promise<boolean> {
  const failed = await failureIn(directory, file, name === undefined ? undefined : pattern(name));
  return failed !== undefined && failed !== NO_SUCH_TEST;
}

/** Bun prints the names of nested tests with " > " between, and matches them with a space. */
function pattern(name: string): string {
  return `^${name.split(" > ").map((part) => part.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("( | > )")}$`;
}

/** A directory with the checkout, in which it builds. */
export interface Copy {
  directory: string;
  /** The digest of the program that the unchanged sources make. */
  digest: string;
}

/**
 * Puts a change in, and returns what notices it. Tests that need no build run first, then those that take least.
 * A change that leaves the program as it was is told apart: no test of the program can notice it.
 */
export async function tryChange(
  { directory, digest }: Copy,
  file: string,
  change: (text: string) => string,
  { tests, named }: Tests,
): Promise<Noticed | "no test notices" | "the program stays the same" | typeof NO_SUCH_TEST> {
  const path = join(directory, file), text = readFileSync(path, "utf8");
  writeFileSync(path, change(text));
  try {
    const quickest = tests.toSorted((one, other) => (durations[one]?.here ?? 0) - (durations[other]?.here ?? 0));
    const noticed = await firstFailure(quickest.filter((test) => units.has(test)));
    const others = quickest.filter((test) => !units.has(test));
    if (noticed !== undefined || others.length === 0) return noticed ?? "no test notices";
    if (!await build(directory)) return { file: BUILD };
    if (isOfProgram(file) && digestOfProgram(directory) === digest) return "the program stays the same";
    return await firstFailure(others) ?? "no test notices";
  } finally {
    writeFileSync(path, text);
  }

  async function firstFailure(files: readonly string[]): Promise<Noticed | typeof NO_SUCH_TEST | undefined> {
    for (const test of files) {
      const failed = await failureIn(directory, test, named);
      if (failed === NO_SUCH_TEST) return failed;
      if (failed !== undefined && await failsAgain(directory, failed)) return failed;
    }
    return undefined;
  }
}

/** Runs the tests that noticed changes on the unchanged code. Returns those that fail there, too. */
export async function spoiled({ directory }: Copy, noticed: readonly Noticed[]): Promise<Noticed[]> {
  if (!await build(directory)) throw new Error("the unchanged sources do not build");
  const once = new Map(noticed.filter(({ file }) => file !== BUILD).map((one) => [describe(one), one]));
  const failed: Noticed[] = [];
  for (const one of once.values()) if (await failsAgain(directory, one)) failed.push(one);
  return failed;
}

export function describe({ file, name }: Noticed): string {
  return name === undefined ? file : `${file}: ${name}`;
}

/** Runs `work` in a copy that builds. */
export async function inCopy<Value>(work: (copy: Copy) => Value | Promise<Value>): Promise<Value> {
  adoptOrphans();
  const directory = mkdtempSync(join(tmpdir(), "patchbay-faults-"));
  copies.add(directory);
  try {
    chmodSync(directory, 0o755); // some tests run what is in it as nobody
    copyCheckout(directory);
    if (!await build(directory)) throw new Error("the unchanged sources do not build");
    return await work({ directory, digest: digestOfProgram(directory) });
  } finally {
    rmSync(directory, { recursive: true, force: true });
    copies.delete(directory);
    if (copies.size === 0) killOrphans();
  }
}
