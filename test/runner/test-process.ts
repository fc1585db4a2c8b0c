/**
 * One run of `bun test`, as a process: on one file, or on unit tests that share it (shared-process.ts). One that dies hides
 * nothing of the others.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { readJUnit, type TestCase } from "./junit.ts";

export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

export interface FileResult extends Counts {
  file: string;
  seconds: number;
  /**
   * The time of the process and all that it started and waited for, without the kernel's own work. Files that share a process
   * have equal parts of it.
   */
  processorSeconds: number;
  output: string;
  /** By name, as far as the process wrote a report. */
  cases: TestCase[];
  /** What is wrong with the run as a whole: it died, did not load, or ran no test. */
  trouble?: string;
}

/** No test asserts a time, and a machine may be slow: the limits only end what hangs. */
const TEST_TIMEOUT_MS = 300_000;
const FILE_TIMEOUT_MS = process.env.PATCHBAY_TEST_FULL_SWEEP === "1" ? 24 * 3600_000 : 3600_000;
const GRACE_MS = 2000;

interface RunOptions {
  cwd: string;
  /** Where the process writes its JUnit report. */
  report: string;
  /** Further flags of `bun test`, such as `-t`. */
  flags: readonly string[];
  /** More variables. */
  env: Record<string, string>;
}

const running = new Set<number>();

/** A test of 100 containers at once has some hundreds. More only has a program that starts itself again and again. */
const MOST_PROCESSES = 2000;

/**
 * Runs a command to its end with both outputs in one text. It ends with this process, however that ends, and with all
 * that it started when it takes longer than the limit, or starts processes without end.
 */
export async function runToEnd(
  command: readonly string[],
  cwd: string,
  env: Record<string, string | undefined> = {},
  limitMs = FILE_TIMEOUT_MS,
) {
  const started = performance.now();
  const child = Bun.spawn(["setpriv", "--pdeathsig", "KILL", ...command], {
    cwd,
    env: { ...process.env, FORCE_COLOR: "0", ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  running.add(child.pid);
  const kill = () => killTrees(new Set([child.pid]));
  const limit = setTimeout(kill, limitMs);
  const watch = setInterval(() => {
    if (treesOf(new Set([child.pid])).length > MOST_PROCESSES) kill();
  }, 5000);
  const chunks: string[] = [];
  const collect = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) chunks.push(decoder.decode(chunk, { stream: true }));
  };
  const collected = Promise.all([collect(child.stdout), collect(child.stderr)]);
  await child.exited;
  clearTimeout(limit);
  clearInterval(watch);
  // A process that it left behind may hold the pipes open.
  const { promise: late, resolve: giveUp } = Promise.withResolvers<void>();
  const timer = setTimeout(giveUp, GRACE_MS);
  await Promise.race([collected, late]);
  clearTimeout(timer);
  running.delete(child.pid);
  const ending = child.signalCode ?? child.exitCode!;
  const processorSeconds = Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6;
  return { ending, output: chunks.join(""), seconds: (performance.now() - started) / 1000, processorSeconds };
}

export async function runFile(file: string, options: RunOptions): Promise<FileResult> {
  const { ending, output, cases, ...times } = await runTests([file], options);
  const found: FileResult = { file, ...times, output: withoutFrame(output, file), cases, ...countsIn(output) };
  const trouble = troubleOf(ending, output, found);
  return trouble === undefined ? found : { ...found, failed: Math.max(1, found.failed), trouble };
}

/**
 * Files that share a process. When that does not come to its end as it should, each runs by itself, which shows whose fault
 * it is.
 */
export async function runFiles(files: readonly string[], options: RunOptions): Promise<FileResult[]> {
  if (files.length === 1) return [await runFile(files[0]!, options)];
  const { ending, output, cases, processorSeconds } = await runTests(files, options);
  const outputs = outputsByFile(output, files);
  const results = files.map((file, index): FileResult => {
    const own = cases.filter((one) => one.file === file);
    const count = (outcome: TestCase["outcome"]) => own.filter((one) => one.outcome === outcome).length;
    const failed = count("failed"), said = withoutFrame(outputs[index] ?? "", file);
    return {
      file,
      seconds: own.reduce((sum, { seconds }) => sum + seconds, 0),
      processorSeconds: processorSeconds / files.length,
      output: failed === 0 ? said : `${said}\n\n${howToRepeat(files.slice(0, index + 1))}`,
      cases: own,
      passed: count("passed"),
      failed,
      skipped: count("skipped"),
    };
  });
  const silent = results.findIndex((one) => one.cases.length === 0);
  const isExplained = ending === 0 || results.some(({ failed }) => failed > 0);
  if (silent < 0 && isExplained && hasRun(output, files.length)) return results;

  const alone: FileResult[] = [];
  for (const file of files) alone.push(await runFile(file, options));
  if (alone.some(({ failed }) => failed > 0)) return alone;
  const at = cases.length > 0 && silent >= 0 ? silent : outputs.length - 1;
  const trouble = `failed in a process that it shared, and not by itself: ${describeEnding(ending)}`;
  const said = `${outputs[at] ?? output}\n\n${howToRepeat(files.slice(0, at + 1))}`;
  return alone.with(at, { ...alone[at]!, failed: 1, trouble, output: said });
}

async function runTests(files: readonly string[], { cwd, report, flags, env }: RunOptions) {
  const options = [`--timeout=${TEST_TIMEOUT_MS}`, "--reporter=junit", `--reporter-outfile=${report}`];
  const shared = files.length > 1 ? ["--isolate"] : [];
  const command = [process.execPath, "test", ...options, ...shared, ...flags, ...files.map((file) => `./${file}`)];
  rmSync(report, { force: true });
  // In one pipe, both outputs are in order, so that what a file prints is under its name.
  const found = await runToEnd(["sh", "-c", 'exec "$@" 2>&1', "sh", ...command], cwd, env);
  return { ...found, cases: existsSync(report) ? readJUnit(readFileSync(report, "utf8")) : [] };
}

/** What each file printed, of the files that began: the name of each stands above it. */
function outputsByFile(output: string, files: readonly string[]): string[] {
  const lines = output.split("\n");
  const starts = files.map((file) => lines.indexOf(`${file}:`)).filter((start) => start >= 0);
  return starts.map((start, index) => lines.slice(start, starts[index + 1]).join("\n"));
}

function howToRepeat(files: readonly string[]): string {
  return `It shared a process: npx bun test --isolate ${files.map((file) => `./${file}`).join(" ")}`;
}

function hasRun(output: string, files: number): boolean {
  return new RegExp(`^Ran \\d+ tests? across ${files} files?\\.`, "m").test(output);
}

/** The totals stand at the end of Bun's output, one a line: " 12 pass", " 1 skip", " 0 fail". */
function countsIn(output: string): Counts {
  const total = (word: string) =>
    Number([...output.matchAll(new RegExp(`^ *(\\d+) ${word}$`, "gm"))].at(-1)?.[1] ?? 0);
  return { passed: total("pass"), failed: total("fail"), skipped: total("skip") + total("todo") };
}

function troubleOf(ending: string | number, output: string, found: FileResult): string | undefined {
  const { passed, failed, skipped, cases } = found;
  if (/^error: regex .* matched 0 tests/m.test(output)) return undefined;
  if (!hasRun(output, 1)) {
    return `ended before its tests did: ${describeEnding(ending)}`;
  }
  if (passed + failed + skipped === 0) return "ran no test";
  if (ending === 0 || cases.some(({ outcome }) => outcome === "failed")) return undefined;
  return `failed outside of its tests: ${describeEnding(ending)}`;
}

function describeEnding(ending: string | number): string {
  return typeof ending === "string" ? `killed by ${ending}` : `exit status ${ending}`;
}

/** Without the lines that Bun prints around each run: its version, the file's name, the totals. */
function withoutFrame(output: string, file: string): string {
  const lines = output.split("\n").filter((line) => !line.startsWith("bun test v") && line !== `${file}:`);
  const end = lines.findLastIndex((line) => /^Ran \d+ tests? across/.test(line));
  return lines.filter((line, index) =>
    index !== end && !(index < end && index > end - 8 && /^ *\d+ (pass|fail|skip|todo|expect\(\) calls)$/.test(line))
  ).join("\n").trim();
}

/** Ends the processes that `runToEnd` started and all that they started. */
export function killRunning(): void {
  killTrees(running);
}

/**
 * Ends what runs that was left behind, where this process adopts that: children that `runToEnd` did not start. Only those
 * whose environment has `variable`, if given.
 */
export function killOrphans(variable?: string): void {
  const children = [...parentsByPid()].filter(([pid, parent]) => parent === process.pid && !running.has(pid));
  const isMeant = (pid: number) => variable === undefined || environmentOf(pid).includes(variable);
  killTrees(new Set(children.map(([pid]) => pid).filter(isMeant)));
}

function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  } catch {
    return [];
  }
}

/** The processes and all that they started. */
function treesOf(roots: ReadonlySet<number>): number[] {
  const parents = parentsByPid();
  const isOurs = (pid: number | undefined): boolean =>
    pid !== undefined && (roots.has(pid) || isOurs(parents.get(pid)));
  return [...parents.keys()].filter(isOurs);
}

function killTrees(roots: ReadonlySet<number>): void {
  for (const pid of treesOf(roots)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended since.
    }
  }
}

function parentsByPid(): Map<number, number> {
  const found = new Map<number, number>();
  for (const entry of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      // The name of the program is in brackets and may have any character in it.
      const [, parent] = readFileSync(`/proc/${entry}/stat`, "utf8").split(") ").at(-1)!.split(" ");
      found.set(Number(entry), Number(parent));
    } catch {
      // It has ended since.
    }
  }
  return found;
}
