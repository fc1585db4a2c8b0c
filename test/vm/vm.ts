/**
 * `npm run test:vm`: runs tests in a virtual machine on Debian's kernel, for features that this machine's kernel lacks.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Refused } from "../../compile/arguments.mjs";
import { defineTool, runTool } from "../../compile/tool.ts";
import { matching, testFiles } from "../runner/test-files.ts";
import { readJUnit, type TestCase } from "../runner/junit.ts";
import { architectures } from "../../compile/architectures.ts";
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

interface Wanted {
  processors: ProcessorName[];
  /** Only to fetch what a run needs. */
  isFetch: boolean;
  /** None for those of the processor. */
  files: string[];
  skippedHere: TestCase[];
  report: string | undefined;
}

async function main(wanted: Wanted): Promise<number> {
  mkdirSync(cache, { recursive: true });
  removeTracesOfKilledRuns();
  const outcomes: Counts[] = [];
  for (const name of wanted.processors) outcomes.push(await runOn(name, wanted));
  if (wanted.isFetch) return 0;
  const sum = (of: keyof Counts) => outcomes.reduce((total, counts) => total + counts[of], 0);
  return conclude(sum("passed"), sum("failed"), sum("skipped"));
}

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

async function runOn(name: ProcessorName, { isFetch, files: asked, skippedHere, report }: Wanted): Promise<Counts> {
  const hardware = prepare(name), { kernel } = hardware;
  if (isFetch) return { passed: 0, failed: 0, skipped: 0 };
  const files = asked.length > 0 ? asked : filesOf(name);
  const thisRelease = Bun.spawnSync(["uname", "-r"]).stdout.toString().trim();
  say(`booting Linux ${kernel.release} (this machine runs ${thisRelease}) for ${files.length} test files`);

  const started = Date.now();
  const commands = script(files.sort(), name, skippedHere);
  const { status, files: left, processorSeconds } = await boot(hardware, cache, commands, LIMIT_MS);
  const seconds = Math.round((Date.now() - started) / 1000);
  say(`took ${seconds} s, ${Math.round(processorSeconds)} s of one processor`);
  const cases = left.get(REPORT) ?? "";
  if (report !== undefined) writeFileSync(report, cases);
  return judge(readJUnit(cases), skippedHere, status);
}

function judge(there: TestCase[], skippedHere: TestCase[], status: number): Counts {
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

function filesOf(name: ProcessorName): string[] {
  return isOwn(name) ? [...new Bun.Glob("test/vm/suites/*.test.ts").scanSync(root)] : [FIRST_STEPS];
}

function conclude(passed: number, failed: number, skipped: number): number {
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  return failed === 0 ? 0 : 1;
}

/** The shell script that runs in the machine. */
function script(files: string[], processor: ProcessorName, skippedHere: TestCase[]): string {
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

export const tool = defineTool({
  name: "test:vm",
  about: `Runs tests in a virtual machine on Debian's kernel: those of test/vm/suites, and ${FIRST_STEPS}
on arm64. With PATHs, the test files that have one in theirs.

The last line is "N passed, N failed, N skipped". With --skipped, tests count as skipped that ran on neither kernel.`,
  words: "[PATH…]",
  options: {
    arch: { type: "string", value: "NAME", about: `only on this processor: ${Object.keys(processors).join(" or ")}` },
    fetch: { type: "boolean", default: false, about: "only fetches the kernel and qemu, for runs without a network" },
    skipped: {
      type: "string",
      value: "FILE",
      multiple: true,
      default: [],
      about: "runs the tests that this JUnit report lists as skipped; may be given several times",
    },
    report: { type: "string", value: "FILE", about: "writes a JUnit report of the tests that ran in the machine" },
  },
  needs: "all",
  begin({ values: { arch, fetch, skipped, report }, positionals }) {
    if (arch !== undefined && !Object.hasOwn(processors, arch)) {
      throw new Refused(
        `no virtual machine has the processor ${arch}; there are ${Object.keys(processors).join(", ")}`,
      );
    }
    const missing = skipped.find((path) => !existsSync(path));
    if (missing !== undefined) throw new Refused(`--skipped ${missing}: it is not there`);
    const skippedHere = skipped.flatMap((path) => readJUnit(readFileSync(path, "utf8")))
      .filter(({ outcome }) => outcome === "skipped");
    const named = positionals.join(" or "), isGiven = skipped.length + positionals.length > 0;
    const files = skipped.length > 0
      ? [...new Set(skippedHere.map(({ file }) => file))]
      : matching(testFiles(), positionals);
    // Without a file's name `bun test` would run everything.
    if (isGiven && files.length === 0) {
      throw new Refused(
        skipped.length > 0 ? "the reports have no skipped test" : `no test file has ${named} in its path`,
      );
    }
    const everywhere: ProcessorName[] = isGiven || fetch || report !== undefined ? ["x64"] : ["x64", "arm64"];
    const wanted: Wanted = {
      processors: arch === undefined ? everywhere : [arch as ProcessorName],
      isFetch: fetch,
      files: isGiven ? files : [],
      skippedHere,
      report,
    };
    return async () => {
      try {
        return await main(wanted);
      } catch (error) {
        say(`FAILED: ${error instanceof Error ? error.message : error}`);
        return conclude(0, 1, skippedHere.length);
      }
    };
  },
});

if (import.meta.main) process.exitCode = await runTool(tool);
