/**
 * `npm run test:vm`: runs tests in a virtual machine on Debian's kernel, for features that this machine's kernel lacks.
 * Without arguments it runs test/vm/suites, and test/kernel/first-steps.test.ts on arm64; else the files named.
 *
 *     --arch=arm64    only on that processor, with the program that is built for it
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
import architectures from "../../compile/architectures.json";
import { bunExecutable } from "../../compile/bun-executable.mjs";
import { debianRoot } from "./debian-root.ts";
import { fetchKernel, findKernel } from "./kernel.ts";
import { boot, type Hardware, SHARE } from "./machine.ts";
import { isOwn, type ProcessorName, processors } from "./processors.ts";

const root = resolve(import.meta.dir, "../..");
const cache = join(root, ".cache/vm");
/** The limits only end what hangs: emulated, everything takes ten times as long, and more on a busy machine. */
const LIMIT_MS = process.env.PATCHBAY_TEST_FULL_SWEEP === "1" ? 24 * 3600_000 : 3600_000;
const TEST_TIMEOUT_MS = 600_000;
const REPORT = "report.xml";
const FIRST_STEPS = "test/kernel/first-steps.test.ts";
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    arch: { type: "string" },
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
  mkdirSync(cache, { recursive: true });
  removeTracesOfKilledRuns();
  const outcomes: Counts[] = [];
  for (const name of processorsWanted()) outcomes.push(await runOn(name));
  if (options.fetch) return 0;
  const sum = (of: keyof Counts) => outcomes.reduce((total, counts) => total + counts[of], 0);
  return conclude(sum("passed"), sum("failed"), sum("skipped"));
}

function processorsWanted(): ProcessorName[] {
  const { arch, fetch, skipped, report } = options;
  if (arch !== undefined && !Object.hasOwn(processors, arch)) {
    throw new Error(`no virtual machine has the processor ${arch}; there are ${Object.keys(processors).join(", ")}`);
  }
  if (arch !== undefined) return [arch as ProcessorName];
  const isPlain = positionals.length === 0 && !fetch && skipped.length === 0 && report === undefined;
  return isPlain ? ["x64", "arm64"] : ["x64"];
}

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

async function runOn(name: ProcessorName): Promise<Counts> {
  const hardware = prepare(name), { kernel } = hardware;
  if (options.fetch) return { passed: 0, failed: 0, skipped: 0 };
  const files = filesFor(name);
  // Without a file's name `bun test` would run everything.
  if (files.length === 0) throw new Error("there is no test to run");
  const thisRelease = Bun.spawnSync(["uname", "-r"]).stdout.toString().trim();
  say(`booting Linux ${kernel.release} (this machine runs ${thisRelease}) for ${files.length} test files`);

  const started = Date.now();
  const { status, files: left, processorSeconds } = await boot(hardware, cache, script(files.sort(), name), LIMIT_MS);
  const seconds = Math.round((Date.now() - started) / 1000);
  say(`took ${seconds} s, ${Math.round(processorSeconds)} s of one processor`);
  const report = left.get(REPORT) ?? "";
  if (options.report !== undefined) writeFileSync(options.report, report);
  return judge(readJUnit(report), status);
}

function judge(there: TestCase[], status: number): Counts {
  const count = (outcome: TestCase["outcome"]) => there.filter((one) => one.outcome === outcome).length;
  const key = ({ file, name }: TestCase) => `${file}: ${name}`;
  const ran = new Set(there.filter((one) => one.outcome !== "skipped").map(key));
  const nowhere = skippedHere.map(key).filter((one) => !ran.has(one));
  for (const one of nowhere) say(`FAILED: skipped on this machine's kernel, and not run on the other: ${one}`);
  let failed = count("failed");
  // A file that does not load is in no report.
  if (failed === 0 && (status !== 0 || nowhere.length > 0 || ran.size === 0)) failed = 1;
  return { passed: count("passed"), failed, skipped: nowhere.length };
}

/** Fetches and builds what is missing. */
function prepare(name: ProcessorName): Hardware {
  const processor = processors[name];
  install(processor.qemu, processor.qemuPackage);
  const kernel = findKernel(cache, name) ?? (say("fetching Debian's kernel (70 MB)"), fetchKernel(cache, name));
  if (isOwn(name)) return { processor, kernel, root: "/", checkout: undefined };
  const files = debianRoot(cache, name, say);
  const setUp = ["node", "compile/setup.mjs", "--arch", name];
  const { exitCode, stdout, stderr } = Bun.spawnSync(setUp, { cwd: root });
  if (exitCode !== 0) throw new Error(`${setUp.join(" ")}: exit ${exitCode}\n${stdout}${stderr}`);
  return { processor, kernel, root: files, checkout: root };
}

function filesFor(name: ProcessorName): string[] {
  if (options.skipped.length > 0) return [...new Set(skippedHere.map(({ file }) => file))];
  if (positionals.length > 0) return positionals;
  return isOwn(name) ? [...new Bun.Glob("test/vm/suites/*.test.ts").scanSync(root)] : [FIRST_STEPS];
}

function conclude(passed: number, failed: number, skipped: number): number {
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  return failed === 0 ? 0 : 1;
}

/** The shell script that runs in the machine. */
function script(files: string[], processor: ProcessorName): string {
  const names = skippedHere.map(({ name }) => name.replace(/[^\w ]/g, "\\$&"));
  const command = [
    isOwn(processor) ? process.execPath : bunExecutable(processor),
    "test",
    `--timeout=${TEST_TIMEOUT_MS}`,
    ...["--reporter=junit", `--reporter-outfile=${SHARE}/${REPORT}`],
    ...(names.length > 0 ? ["-t", `^(${names.join("|")})$`] : []),
    ...files.map((path) => resolve(root, path)),
  ];
  const variables = Object.entries(process.env).filter(([name]) => name.startsWith("PATCHBAY_"));
  const environment = ["HOME=/root", "NO_COLOR=1", "PATCHBAY_TEST_VM=1", ...variables.map((pair) => pair.join("="))];
  if (!isOwn(processor)) {
    environment.push(`PATCHBAY_TEST_PROGRAM=${join(root, architectures[processor].out, "patchbay")}`);
  }
  const quoted = (words: string[]) => words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  return `
echo "[vm] $(uname -sr) is up after $(cut -d' ' -f1 /proc/uptime) s"
cd ${quoted([root])}
export ${quoted(environment)}
exec ${quoted(command)}
`;
}

function install(program: string, name: string): void {
  if (Bun.which(program) !== null) return;
  say(`installing the Debian package ${name}`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  Bun.spawnSync(["apt-get", "update", "-qq"], { env });
  const words = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", name];
  const { exitCode, stderr } = Bun.spawnSync(words, { env });
  if (exitCode !== 0) throw new Error(`${words.join(" ")}: exit ${exitCode}\n${stderr}`);
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
