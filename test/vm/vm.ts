/**
 * `npm run test:vm`: runs tests in a virtual machine on Debian's kernel, for what the kernel of this machine lacks.
 *
 * Which tests: all files of test/vm/suites and test/kernel, and elsewhere the tests that ask for a kernel feature
 * (`test.skipIf(lacks("…"))`). Files named as arguments run in place of those, whole with `--all`.
 *
 * `--skipped=FILE` names the JUnit report of a run on this machine's kernel: every test skipped in it must then have
 * run in the virtual machine. The last line is `N passed, N failed, N skipped`; skipped are those that were not run on
 * either kernel.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { readJUnit, type TestCase } from "./junit.ts";
import { fetchKernel, findKernel } from "./kernel.ts";
import { boot, QEMU, SHARE } from "./machine.ts";

const root = resolve(import.meta.dir, "../..");
const cache = join(root, ".cache/vm");
const WHOLE = /^test\/(vm\/suites|kernel)\//;
const LIMIT_MS = 9 * 60_000;
/** Emulated, everything takes ten times as long. */
const TEST_TIMEOUT_MS = 60_000;

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { all: { type: "boolean" }, skipped: { type: "string" } },
});

const skippedHere = options.skipped === undefined
  ? []
  : readJUnit(readFileSync(options.skipped, "utf8")).filter(({ outcome }) => outcome === "skipped");

try {
  process.exitCode = await main();
} catch (error) {
  say(`FAILED: ${error instanceof Error ? error.message : error}`);
  process.exitCode = conclude(0, 1, skippedHere.length);
}

async function main(): Promise<number> {
  const files = positionals.length > 0 ? positionals.map((path) => relative(root, resolve(path))) : markedFiles();
  installQemu();
  mkdirSync(cache, { recursive: true });
  removeWhatKilledRunsLeft();
  const kernel = findKernel(cache) ?? (say("fetching Debian's kernel (70 MB)"), fetchKernel(cache));
  const thisRelease = Bun.spawnSync(["uname", "-r"]).stdout.toString().trim();
  say(`booting Linux ${kernel.release} (this machine runs ${thisRelease}) for ${files.length} test files`);

  const whole = options.all ? files : files.filter((path) => WHOLE.test(path));
  const parts = files.filter((path) => !whole.includes(path));
  const { status, files: left } = await boot(kernel, cache, script(whole, parts), LIMIT_MS);
  const there = ["whole.xml", "parts.xml"].flatMap((name) => readJUnit(left.get(name) ?? ""));

  const count = (outcome: TestCase["outcome"]) => there.filter((one) => one.outcome === outcome).length;
  const ran = new Set(there.filter((one) => one.outcome !== "skipped").map((one) => one.name));
  const nowhere = skippedHere.filter((one) => !ran.has(one.name));
  for (const { name } of nowhere) say(`FAILED: skipped on this machine's kernel, and not run on the other: ${name}`);
  let failed = count("failed");
  // A file that does not load is in no report.
  if (failed === 0 && (status !== 0 || nowhere.length > 0 || ran.size === 0)) failed = 1;
  return conclude(count("passed"), failed, nowhere.length);
}

function conclude(passed: number, failed: number, skipped: number): number {
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  return failed === 0 ? 0 : 1;
}

function markedFiles(): string[] {
  const found = [...new Bun.Glob("test/**/*.test.ts").scanSync(root)].sort();
  return found.filter((path) =>
    WHOLE.test(path) || /skipIf\(\s*lacks\(/.test(readFileSync(join(root, path), "utf8"))
  );
}

/** What runs inside. Two runs of `bun test`, because one environment decides what `lacks` answers. */
function script(whole: string[], parts: string[]): string {
  const quote = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;
  const run = (files: string[], mode: string) => {
    if (files.length === 0) return "";
    const report = [`--reporter=junit`, `--reporter-outfile=${SHARE}/${mode}.xml`];
    const command = [
      process.execPath,
      "test",
      `--timeout=${TEST_TIMEOUT_MS}`,
      ...report,
      ...files.map((f) => `./${f}`),
    ];
    return `PATCHBAY_TEST_VM=${mode} ${command.map(quote).join(" ")} || status=1\n`;
  };
  const variables = Object.entries(process.env).filter(([name]) => /^PATCHBAY_/.test(name));
  return `
cd ${quote(root)}
export HOME=/root NO_COLOR=1 ${variables.map(([name, value]) => quote(`${name}=${value}`)).join(" ")}
echo "[vm] $(uname -sr) is up after $(cut -d' ' -f1 /proc/uptime) s"
status=0
${run(whole, "whole")}${run(parts, "parts")}exit $status
`;
}

function installQemu(): void {
  if (Bun.which(QEMU) !== null) return;
  say("installing the Debian package qemu-system-x86");
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  Bun.spawnSync(["apt-get", "update", "-qq"], { env });
  const install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "qemu-system-x86"];
  const { exitCode, stderr } = Bun.spawnSync(install, { env });
  if (exitCode !== 0) throw new Error(`${install.join(" ")}: exit ${exitCode}\n${stderr}`);
}

function removeWhatKilledRunsLeft(): void {
  for (const name of readdirSync(cache)) {
    const pid = name.match(/^(?:run|download)\.(\d+)$/)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(join(cache, name), { recursive: true });
  }
}

function say(text: string): void {
  console.log(`[vm] ${text}`);
}
