/**
 * Runs test files, as many at a time as the processors can (queue.ts), and prints what each said when it ends. The long
 * run (long.ts) takes tests that this kernel lacks the features for to another (test/vm/vm.ts). `npm test`,
 * `npm run test:long` and `npm run test:unit` end up here.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { Refused } from "../../compile/arguments.mjs";
import { defineTool, runTool } from "../../compile/tool.ts";
import { flagsOf, passedOn } from "./bun-flags.ts";
import { readJUnit } from "./junit.ts";
import { newSeed } from "../support/random.ts";
import { longRuns, matchingNamed, runOf, shortRuns } from "./long.ts";
import { type Durations, mostAtATime, Queue, type Step } from "./queue.ts";
import {
  describe,
  nowhereRun,
  ranNowhere,
  readDurations,
  record,
  repeatFailures,
  type Results,
  say,
  total,
  withoutSkipped,
} from "./report.ts";
import { matching, root, testFiles, unitTests } from "./test-files.ts";
import { testsFor } from "./tests-for.ts";
import { byProcess } from "./shared-process.ts";
import { within } from "./within.ts";
import { type FileResult, killRunning, runFiles, runToEnd } from "./test-process.ts";

interface Options {
  /** The directory with `test/`. */
  top: string;
  isUnit: boolean;
  isLong: boolean;
  isRecorded: boolean;
  /** The time of a long run. */
  withinSeconds: number | undefined;
  jobs: number;
  filters: string[];
  /** Source files. */
  changed: string[];
  /** Flags of `bun test`. */
  flags: string[];
}

const STILL_RUNNING_EVERY_MS = 60_000;
const isThroughResident = process.env.PATCHBAY_TEST_RESIDENT === "1";
/** What each file gets in a run of all files. */
const SHORT = { PATCHBAY_TEST_SHARE: "some" };

class Run {
  readonly #options: Options;
  readonly #directory: string;
  readonly results: Results = { files: [], vm: [] };
  /** What the time was not enough for. */
  readonly late: string[] = [];
  readonly #current = new Map<Step, number>();

  constructor(options: Options, directory: string) {
    this.#options = options;
    this.#directory = directory;
  }

  /** `until`: after that, files that wait are left out, because the machine is slower than it was when they were recorded. */
  async all(processes: readonly string[][], durations: Durations, usesVm: boolean, until: number): Promise<void> {
    const queue = new Queue(processes, durations, { jobs: this.#options.jobs, usesVm });
    const alive = setInterval(() => this.#sayWhatRuns(), STILL_RUNNING_EVERY_MS);
    let somethingEnded = Promise.withResolvers<void>();
    const worker = async () => {
      for (let step = queue.next(); step !== undefined; step = queue.next()) {
        if (performance.now() > until) this.late.push(...queue.leaveOut());
        if (step === "wait") {
          await somethingEnded.promise;
          continue;
        }
        this.#current.set(step, performance.now());
        const skipped = step.on === "vm" ? await this.#inVm(step.files) : await this.#here(step.files);
        this.#current.delete(step);
        queue.done(step, skipped);
        somethingEnded.resolve();
        somethingEnded = Promise.withResolvers();
      }
    };
    await Promise.all(Array.from({ length: mostAtATime(this.#options.jobs) }, worker));
    clearInterval(alive);
  }

  async #here(names: readonly string[]): Promise<number> {
    const [name] = names, { top: cwd, flags } = this.#options;
    // A run with a name of its own shares no process.
    const own = runOf(name!), files = names.length === 1 ? [own.file] : names;
    const found = await runFiles(files, {
      cwd,
      flags: [...flags, ...own.flags],
      env: isShort(this.#options) ? { ...own.env, ...SHORT } : own.env,
      report: this.#reportOf(name!),
    });
    const isAgain = own.env.PATCHBAY_TEST_RESIDENT !== undefined;
    let skipped = 0;
    for (const [index, result] of found.entries()) {
      // The report has those as skipped, too, that the run is not to have.
      const cases = result.cases.filter(({ name }) => own.named.test(name));
      const named = { ...result, cases, file: names[index]! };
      const told = isAgain ? withoutSkipped(named) : named;
      this.results.files.push(told);
      this.#print(told);
      skipped += told.skipped;
    }
    return skipped;
  }

  #print(result: FileResult): void {
    const { file, trouble, seconds, processorSeconds, output, failed } = result;
    // Unit tests are many and say nothing that is read when they pass.
    if (this.#options.isUnit && failed === 0) return;
    const took = `${seconds.toFixed(1)} s, ${processorSeconds.toFixed(1)} s of processor time`;
    console.log(`\n${file}: ${describe(result)}, ${took}${trouble === undefined ? "" : `; ${trouble}`}`);
    if (output !== "") console.log(output);
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
    const ran = { passed, failed: Math.max(failed, atLeast), skipped: skippedThere };
    this.results.vm.push({ ...ran, processorSeconds, output, cases });
    return 0;
  }

  #reportOf(file: string): string {
    return join(this.#directory, `${file.replaceAll("/", "-")}.xml`);
  }

  #sayWhatRuns(): void {
    for (const [{ files, on }, since] of this.#current) {
      const several = `${files.length} files in ${on === "vm" ? "the virtual machine" : "one process"}`;
      const what = on === "vm" || files.length > 1 ? several : files[0];
      say(`still running: ${what} (${Math.round((performance.now() - since) / 1000)} s)`);
    }
  }
}

/** Every run of a file that these options ask for, by name. */
function chosen(options: Options): string[] {
  const { top, filters, isUnit, isLong, changed } = options;
  if (isLong) return matching(longRuns(testFiles(top)), filters);
  if (changed.length > 0) return matching([...new Set(changed.flatMap(testsFor))].sort(), filters);
  const files = matching(isUnit ? unitTests(top) : testFiles(top), filters);
  return isShort(options) ? shortRuns(files) : [...files, ...matchingNamed(filters)];
}

/** With flags of `bun test`, such as `--bail`, each file has a process of its own. */
function processesOf({ top, flags }: Options, files: readonly string[], durations: Durations, seed: number) {
  if (flags.length > 0) return files.map((file) => [file]);
  return byProcess(files, new Set(unitTests(top)), durations, seed);
}

/** The run of all files. */
function isShort({ isUnit, isLong, filters, changed, flags }: Options): boolean {
  return !isUnit && !isLong && filters.length === 0 && changed.length === 0 && flags.length === 0;
}

function usesVm({ isLong, flags }: Options): boolean {
  return isLong && flags.length === 0;
}

async function runAll(options: Options, files: readonly string[]): Promise<number> {
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
    const seed = process.env.PATCHBAY_TEST_SEED ??= String(newSeed());
    say(
      `running ${files.length} test files, the work of ${options.jobs} processors at a time${way}, PATCHBAY_TEST_SEED=${seed}`,
    );
    const durations = readDurations(), { withinSeconds: seconds = Infinity, jobs } = options;
    const taken = seconds === Infinity ? files : within(files, durations, { seconds, jobs, seed: Number(seed) });
    for (const file of files) if (!taken.includes(file)) say(`left to other runs: ${file}`);
    const until = started + 1000 * seconds;
    await run.all(processesOf(options, taken, durations, Number(seed)), durations, usesVm(options), until);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  const counts = total(run.results, usesVm(options));
  repeatFailures(run.results);
  const nowhere = isShort(options) ? nowhereRun(run.results) : [];
  for (const file of nowhere) say(`FAILED: ${file} skips tests, and test/runner/long.ts does not have it`);
  if (usesVm(options)) { for (const one of ranNowhere(run.results)) say(`FAILED: ran nowhere: ${one}`); }
  for (const one of run.late) say(`left out, because the time is over: ${one}`);
  const isTooSlow = run.late.length > run.results.files.length;
  if (isTooSlow) say("FAILED: more was left out than was run");
  if (options.isRecorded) record(run.results, options.top);
  if (counts.skipped > 0) say("what is skipped runs in the virtual machine: npm run test:long");
  const processorSeconds = [...run.results.files, ...run.results.vm].reduce(
    (sum, one) => sum + one.processorSeconds,
    0,
  );
  const seconds = (performance.now() - started) / 1000;
  say(`took ${Math.round(seconds)} s, ${Math.round(processorSeconds)} s of processor time`);
  console.log(describe(counts));
  return counts.failed === 0 && nowhere.length === 0 && !isTooSlow ? 0 : 1;
}

export const tool = defineTool({
  name: "test",
  call: "npm test",
  about:
    `Runs the tests, as root. With PATHs, the files that have one in theirs, whole; "through a resident" is a PATH for what
the long run repeats so. Without a PATH, long tables of cases are run in part. npm run test:long, which takes an hour, has the rest: repetitions
through a resident, and what this kernel skips, in the virtual machine.

The last line is "N passed, N failed, N skipped". The exit status is 0 when nothing failed.`,
  words: "[PATH…]",
  options: {
    unit: { type: "boolean", default: false, about: "unit tests alone, which need no root: npm run test:unit" },
    for: {
      type: "string",
      multiple: true,
      default: [],
      value: "FILE",
      about: "the tests that notice a change of this source file; may be given several times",
    },
    long: { type: "boolean", default: false, about: "what a run of all files leaves out: npm run test:long" },
    jobs: {
      type: "string",
      value: "N",
      about: "the work of so many processors at a time, instead of all there are; with 1, one file at a time",
    },
    within: {
      type: "string",
      value: "SECONDS",
      about: "with --long and without a PATH: so much, by chance, as fits into this time; the seed says what",
    },
    record: { type: "boolean", default: false, about: "writes down how long each file took (durations.json)" },
    top: { type: "string", default: root },
    ...passedOn,
  },
  needs: ({ values }) => values.unit ? "packages" : "all",
  begin({ values, positionals }) {
    const { jobs = String(availableParallelism()), within } = values;
    if (!/^[1-9]\d*$/.test(jobs)) throw new Refused(`--jobs ${jobs}: not a number of files`);
    if (!/^[1-9]\d*$/.test(within ?? "1")) throw new Refused(`--within ${within}: not a number of seconds`);
    if (within !== undefined && !values.long) {
      throw new Refused("--within is for --long: npm test leaves nothing out");
    }
    const kinds = [values.unit && "--unit", values.long && "--long", values.for.length > 0 && "--for"].filter(
      Boolean,
    );
    if (kinds.length > 1) throw new Refused(`${kinds.join(" and ")} do not go together`);
    for (const path of values.for) {
      const isFile = existsSync(path) && statSync(path).isFile();
      if (!isFile) throw new Refused(`--for ${path}: there is no such file`);
    }
    const options: Options = {
      top: values.top,
      isUnit: values.unit,
      isLong: values.long,
      isRecorded: values.record,
      // What was asked for by name is run.
      withinSeconds: within === undefined || positionals.length > 0 ? undefined : Number(within),
      // Not more: the virtual machine would get less than a processor, and come last.
      jobs: Number(jobs),
      filters: positionals,
      changed: values.for.map((path) => relative(root, resolve(path))),
      flags: flagsOf(values),
    };
    const files = chosen(options);
    if (files.length === 0) {
      if (values.for.length > 0 && positionals.length === 0) {
        throw new Refused(`no test is known to notice a change of ${values.for.join(" or ")}`);
      }
      const kind = values.unit ? "unit test" : "test";
      throw new Refused(`no ${kind} file has ${positionals.join(" or ")} in its path`);
    }
    return () => runAll(options, files);
  },
});

if (import.meta.main) process.exitCode = await runTool(tool);
