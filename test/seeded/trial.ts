/** A copy of this checkout that faults are put into, one at a time. */
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
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

const root = resolve(import.meta.dir, "../..");
/** Ends tests that hang because of a fault. */
const RUN_TIMEOUT_MS = 1200_000;
const flags = ["--timeout=120000"];
/** These variables would make the tests run another program than the copy's. */
const OTHERWISE = { PATCHBAY_TEST_PROGRAM: undefined, PATCHBAY_TEST_PLUGINS: undefined };

interface Tests {
  tests: readonly string[];
  /** A regular expression for the names of tests. */
  named?: string;
}

interface Run {
  code: number | null;
  output: string;
}

async function run(directory: string, command: string[]): Promise<Run> {
  const child = Bun.spawn([process.execPath, ...command], {
    cwd: directory,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, ...OTHERWISE, FORCE_COLOR: "0" },
    timeout: RUN_TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code: child.exitCode, output: stdout + stderr };
}

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

/** Returns what is wrong, or undefined when the copy builds. */
async function build(directory: string): Promise<string | undefined> {
  const { code, output } = await run(directory, ["compile/build.ts"]);
  return code === 0 ? undefined : `it does not build:\n${output.slice(-2000)}`;
}

/** Whether the tests run the compiled program, and not just its modules. */
function usesProgram(directory: string, { tests }: Tests): boolean {
  const runs =
    /support\/(library\/installed|plugins|podman-driver|network|wire|injection|turns|dhcp\/(scene|service)|netavark\/(netavark|attached))\.ts|dist\/patchbay/;
  return tests.some((path) => runs.test(readFileSync(join(directory, path), "utf8")));
}

async function runTests(directory: string, { tests, named }: Tests): Promise<Run> {
  const only = named === undefined ? [] : ["-t", named];
  return await run(directory, ["test", ...flags, "--bail", ...tests, ...only]);
}

/** A test that failed. */
export interface Failed {
  file: string;
  name: string;
}

function failedIn(output: string): Failed[] {
  const failed: Failed[] = [];
  let file = "";
  for (const line of output.split("\n")) {
    file = /^(test\/.*\.test\.ts):$/.exec(line)?.[1] ?? file;
    const name = /^\(fail\) (.*?)(?: \[[\d.]+ms\])?$/.exec(line)?.[1];
    if (name !== undefined) failed.push({ file, name });
  }
  return failed;
}

/** Puts a change in, and returns the test that noticed it, or what is wrong. */
export async function tryChange(
  directory: string,
  file: string,
  change: (text: string) => string,
  tests: Tests,
): Promise<Failed | string> {
  const path = join(directory, file), text = readFileSync(path, "utf8");
  writeFileSync(path, change(text));
  try {
    const broken = usesProgram(directory, tests) ? await build(directory) : undefined;
    if (broken !== undefined) return broken;
    const { code, output } = await runTests(directory, tests);
    if (code === 0) return "no test notices";
    return failedIn(output)[0] ?? `no test was run to its end:\n${output.slice(-2000)}`;
  } finally {
    writeFileSync(path, text);
  }
}

/** Runs the tests that noticed faults on the unchanged code. Returns those that fail there, too. */
export async function spoiled(directory: string, noticed: readonly Failed[]): Promise<Failed[]> {
  const broken = await build(directory);
  if (broken !== undefined) throw new Error(broken);
  const failed: Failed[] = [];
  for (const file of new Set(noticed.map(({ file }) => file))) {
    const names = noticed.filter((one) => one.file === file).map(({ name }) => pattern(name));
    const { code, output } = await run(directory, ["test", ...flags, file, "-t", `^(${names.join("|")})$`]);
    const found = failedIn(output);
    if (code !== 0 && found.length === 0) throw new Error(`${file} cannot be run:\n${output.slice(-2000)}`);
    failed.push(...found);
  }
  return failed;
}

/** Bun prints the names of nested tests with " > " between, and matches them with a space. */
function pattern(name: string): string {
  return name.split(" > ").map((part) => part.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("( | > )");
}

/** Runs `work` in a copy that builds. */
export async function inCopy<Value>(work: (directory: string) => Promise<Value>): Promise<Value> {
  const directory = mkdtempSync(join(tmpdir(), "patchbay-faults-"));
  try {
    chmodSync(directory, 0o755); // some tests run what is in it as nobody
    copyCheckout(directory);
    const broken = await build(directory);
    if (broken !== undefined) throw new Error(broken);
    return await work(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
