/**
 * `npm run test:vm`: runs tests in a virtual machine on Debian's kernel, for features that this machine's kernel lacks.
 * Without arguments it runs test/vm/suites, else the files named.
 *
 *     --fetch         only fetches the kernel and qemu, so that later runs need no network
 *     --skipped=FILE  runs the tests that this JUnit report lists as skipped; may be given several times
 *     --report=FILE   writes a JUnit report of the tests that ran in the machine
 *
 * The last line is `N passed, N failed, N skipped`. With `--skipped`, tests count as skipped that ran on neither kernel.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { readJUnit, type TestCase } from "../runner/junit.ts";
import { fetchKernel, findKernel } from "./kernel.ts";
import { boot, QEMU, SHARE } from "./machine.ts";

const root = resolve(import.meta.dir, "../..");
const cache = join(root, ".cache/vm");
/** The limits only end what hangs: emulated, everything takes ten times as long, and more on a busy machine. */
const LIMIT_MS = process.env.PATCHBAY_TEST_FULL_SWEEP === "1" ? 24 * 3600_000 : 3600_000;
const TEST_TIMEOUT_MS = 600_000;
const REPORT = "report.xml";
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    fetch: { type: "boolean" },
    skipped: { type: "string", multiple: true, default: [] },
    report: { type: "string" },
  },
});

const skippedHere = options.skipped.flatMap((path) => readJUnit(readFileSync(path, "utf8")))
  .filter(({ outcome }) => outcome === "skipped");

try {
  process.exitCode = await main();
} catch (error) {
  say(`FAILED: ${error instanceof Error ? error.message : error}`);
  process.exitCode = conclude(0, 1, skippedHere.length);
}

async function main(): Promise<number> {
  installQemu();
  mkdirSync(cache, { recursive: true });
  removeTracesOfKilledRuns();
  const kernel = findKernel(cache) ?? (say("fetching Debian's kernel (70 MB)"), fetchKernel(cache));
  if (options.fetch) return 0;

  const suites = positionals.length > 0 ? positionals : [...new Bun.Glob("test/vm/suites/*.test.ts").scanSync(root)];
  const files = options.skipped.length === 0 ? suites : [...new Set(skippedHere.map(({ file }) => file))];
  // Without a file's name `bun test` would run everything.
  if (files.length === 0) throw new Error("there is no test to run");
  const thisRelease = Bun.spawnSync(["uname", "-r"]).stdout.toString().trim();
  say(`booting Linux ${kernel.release} (this machine runs ${thisRelease}) for ${files.length} test files`);

  const started = Date.now();
  const { status, files: left, processorSeconds } = await boot(kernel, cache, script(files.sort()), LIMIT_MS);
  const seconds = Math.round((Date.now() - started) / 1000);
  say(`took ${seconds} s, ${Math.round(processorSeconds)} s of one processor`);
  const report = left.get(REPORT) ?? "";
  if (options.report !== undefined) writeFileSync(options.report, report);
  const there = readJUnit(report);

  const count = (outcome: TestCase["outcome"]) => there.filter((one) => one.outcome === outcome).length;
  const key = ({ file, name }: TestCase) => `${file}: ${name}`;
  const ran = new Set(there.filter((one) => one.outcome !== "skipped").map(key));
  const nowhere = skippedHere.map(key).filter((one) => !ran.has(one));
  for (const one of nowhere) say(`FAILED: skipped on this machine's kernel, and not run on the other: ${one}`);
  let failed = count("failed");
  // A file that does not load is in no report.
  if (failed === 0 && (status !== 0 || nowhere.length > 0 || ran.size === 0)) failed = 1;
  return conclude(count("passed"), failed, nowhere.length);
}

function conclude(passed: number, failed: number, skipped: number): number {
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  return failed === 0 ? 0 : 1;
}

/** The shell script that runs in the machine. */
function script(files: string[]): string {
  const names = skippedHere.map(({ name }) => name.replace(/[^\w ]/g, "\\$&"));
  const command = [
    process.execPath,
    "test",
    `--timeout=${TEST_TIMEOUT_MS}`,
    ...["--reporter=junit", `--reporter-outfile=${SHARE}/${REPORT}`],
    ...(names.length > 0 ? ["-t", `^(${names.join("|")})$`] : []),
    ...files.map((path) => resolve(root, path)),
  ];
  const variables = Object.entries(process.env).filter(([name]) => name.startsWith("PATCHBAY_"));
  const environment = ["HOME=/root", "NO_COLOR=1", "PATCHBAY_TEST_VM=1", ...variables.map((pair) => pair.join("="))];
  const quoted = (words: string[]) => words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  return `
echo "[vm] $(uname -sr) is up after $(cut -d' ' -f1 /proc/uptime) s"
cd ${quoted([root])}
export ${quoted(environment)}
exec ${quoted(command)}
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

function removeTracesOfKilledRuns(): void {
  for (const name of readdirSync(cache)) {
    const pid = name.match(/^(?:run|download)\.(\d+)$/)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(join(cache, name), { recursive: true });
  }
}

function say(text: string): void {
  console.log(`[vm] ${text}`);
}
