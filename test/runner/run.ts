/**
 * Runs test files, as many at a time as there are processors (queue.ts), and prints what each said when it ends. Tests
 * that this kernel lacks the features for run on another (test/vm/vm.ts), and some files a second time through a resident
 * (through-resident.ts). `npm test` and `npm run test:unit` end up here.
 *
 *     bun test/runner/run.ts [--unit] [--jobs=N] [--record] [PATH…] [FLAG OF bun test…]
 *
 * With PATHs, only the files whose path contains one of them run; with PATHs or flags, the virtual machine stays off, and
 * nothing runs a second time. `"through a resident"` as a PATH means what would.
 * `--unit` takes the unit tests alone, `--record` writes down how long each file took (durations.json).
 *
 * The last line is `N passed, N failed, N skipped`; the exit status is 0 when nothing failed.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { readJUnit } from "./junit.ts";
import { Queue, type Step } from "./queue.ts";
import { describe, readDurations, record, repeatFailures, type Results, say, total } from "./report.ts";
import { matching, root, testFiles, unitTests } from "./test-files.ts";
import { killRunning, runFile, runToEnd } from "./test-process.ts";
import { matchingThroughResident, runOf, runsThroughResident } from "./through-resident.ts";

interface Options {
  /** The directory with `test/`. */
  top: string;
  isUnit: boolean;
  isRecorded: boolean;
  jobs: number;
  filters: string[];
  /** Of `bun test`. */
  flags: string[];
}

const STILL_RUNNING_EVERY_MS = 60_000;

function parse(words: readonly string[]): Options {
  const own = words.filter((word) => /^--(unit|record|jobs=\d+|top=.+)$/.test(word));
  const value = (name: string) => own.find((word) => word.startsWith(`--${name}=`))?.split("=")[1];
  const rest = words.filter((word) => !own.includes(word));
  // A flag may have its value in the next word, so everything from the first flag on is for `bun test`.
  const firstFlag = rest.findIndex((word) => word.startsWith("-"));
  const end = firstFlag < 0 ? rest.length : firstFlag;
  return {
    top: value("top") ?? root,
    isUnit: own.includes("--unit"),
    isRecorded: own.includes("--record"),
    // Not more: the virtual machine would get less than a processor, and come last.
    jobs: Number(value("jobs") ?? availableParallelism()),
    filters: rest.slice(0, end),
    flags: rest.slice(end),
  };
}

class Run {
  readonly #options: Options;
  readonly #directory: string;
  readonly results: Results = { files: [], vm: [] };
  readonly #current = new Map<Step, number>();

  constructor(options: Options, directory: string) {
    this.#options = options;
    this.#directory = directory;
  }

  async all(files: readonly string[], usesVm: boolean): Promise<void> {
    const queue = new Queue(files, readDurations(), { jobs: this.#options.jobs, usesVm });
    const alive = setInterval(() => this.#sayWhatRuns(), STILL_RUNNING_EVERY_MS);
    let somethingEnded = Promise.withResolvers<void>();
    const worker = async () => {
      for (let step = queue.next(); step !== undefined; step = queue.next()) {
        if (step === "wait") {
          await somethingEnded.promise;
          continue;
        }
        this.#current.set(step, performance.now());
        const skipped = step.on === "vm" ? await this.#inVm(step.files) : await this.#here(step.files[0]!);
        this.#current.delete(step);
        queue.done(step, skipped);
        somethingEnded.resolve();
        somethingEnded = Promise.withResolvers();
      }
    };
    // The queue says what may run at a time; this is more.
    await Promise.all(Array.from({ length: 2 * this.#options.jobs }, worker));
    clearInterval(alive);
  }

  async #here(name: string): Promise<number> {
    const { top: cwd, flags } = this.#options, own = runOf(name);
    const found = await runFile(own.file, {
      cwd,
      flags: [...flags, ...own.flags],
      env: own.env,
      report: this.#reportOf(name),
    });
    // What it skips, the plain run of the file skips as well, and that counts.
    const result = own.file === name ? found : {
      ...found,
      file: name,
      skipped: 0,
      cases: found.cases.filter(({ outcome }) => outcome !== "skipped"),
    };
    this.results.files.push(result);
    const { trouble, seconds, processorSeconds, output, skipped } = result;
    const took = `${seconds.toFixed(1)} s, ${processorSeconds.toFixed(1)} s of processor time`;
    console.log(`\n${name}: ${describe(result)}, ${took}${trouble === undefined ? "" : `; ${trouble}`}`);
    if (output !== "") console.log(output);
    return skipped;
  }

  /** Runs there what these files skipped here. */
  async #inVm(files: readonly string[]): Promise<number> {
    const report = join(this.#directory, `vm-${this.results.vm.length}.xml`);
    const skipped = files.map((file) => `--skipped=${this.#reportOf(file)}`);
    const command = [process.execPath, "test/vm/vm.ts", ...skipped, `--report=${report}`];
    const { ending, output, processorSeconds } = await runToEnd(command, root);
    console.log(`\n${output.trim()}`);
    const counts = output.match(/^(\d+) passed, (\d+) failed, (\d+) skipped$/m)?.slice(1).map(Number);
    const [passed = 0, failed = 1, skippedThere = 0] = counts ?? [];
    const atLeast = ending === 0 ? 0 : 1;
    const cases = existsSync(report) ? readJUnit(readFileSync(report, "utf8")) : [];
    const result = {
      passed,
      failed: Math.max(failed, atLeast),
      skipped: skippedThere,
      processorSeconds,
      output,
      cases,
    };
    this.results.vm.push(result);
    return 0;
  }

  #reportOf(file: string): string {
    return join(this.#directory, `${file.replaceAll("/", "-")}.xml`);
  }

  #sayWhatRuns(): void {
    for (const [{ files, on }, since] of this.#current) {
      const what = on === "vm" ? `${files.length} files in the virtual machine` : files[0];
      say(`still running: ${what} (${Math.round((performance.now() - since) / 1000)} s)`);
    }
  }
}

async function main(words: readonly string[]): Promise<number> {
  const options = parse(words);
  const usesVm = !options.isUnit && options.filters.length === 0 && options.flags.length === 0;
  const isThroughResident = process.env.PATCHBAY_TEST_RESIDENT === "1";
  const files = [
    ...matching(options.isUnit ? unitTests(options.top) : testFiles(options.top), options.filters),
    ...usesVm && !isThroughResident ? runsThroughResident : matchingThroughResident(options.filters),
  ];
  if (files.length === 0) {
    console.error(`[patchbay] no test file has ${options.filters.join(" or ")} in its path`);
    return 1;
  }
  const directory = mkdtempSync(join(tmpdir(), "patchbay-test-"));
  for (const [signal, number] of [["SIGINT", 2], ["SIGTERM", 15], ["SIGHUP", 1]] as const) {
    process.on(signal, () => {
      killRunning();
      rmSync(directory, { recursive: true, force: true });
      process.exit(128 + number);
    });
  }
  const started = performance.now();
  const run = new Run(options, directory);
  try {
    const way = isThroughResident ? ", through a resident" : "";
    say(`running ${files.length} test files, ${options.jobs} at a time${way}`);
    await run.all(files, usesVm);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  const counts = total(run.results, usesVm);
  repeatFailures(run.results);
  if (options.isRecorded) record(run.results, options.top);
  if (counts.skipped > 0) say("the virtual machine runs what is skipped here: npm test, npm run test:vm");
  const processorSeconds = [...run.results.files, ...run.results.vm].reduce(
    (sum, one) => sum + one.processorSeconds,
    0,
  );
  const seconds = (performance.now() - started) / 1000;
  say(`took ${Math.round(seconds)} s, ${Math.round(processorSeconds)} s of processor time`);
  console.log(describe(counts));
  return counts.failed === 0 ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
