/**
 * The order of a run. Files that have tests for the virtual machine start first, so that it has work early and starts
 * rarely. The others follow, the longest first, so that none is alone at the end. Files that wait more than they work
 * run beside these: most of them wait for packets that must not come.
 */

/**
 * Seconds that files took when they were last recorded: on this kernel, of a processor there, and their skipped tests in
 * the machine.
 */
export type Durations = Record<string, { here?: number; busy?: number; vm?: number }>;

export interface Limits {
  /** How many files that work run at a time, and as many beside them. With one, nothing runs beside. */
  jobs: number;
  usesVm: boolean;
}

/** The part of its time that a file works, at most, to run beside others. */
const MOSTLY_WAITING = 0.6;

/** What files take that are not recorded, which are new or short. */
const UNRECORDED_SECONDS = 1;

/** What starting the machine costs. */
const BOOT_SECONDS = 10;

/** Work in the machine that is worth a start of its own, so that it does not all come at the end. */
const WORTH_A_START_SECONDS = 100;

export type Step = { files: readonly string[]; on: "here" | "vm"; isBeside: boolean };

export class Queue {
  /** By process; all but quick unit tests have one of their own. */
  readonly #waiting: (readonly string[])[];
  readonly #durations: Durations;
  readonly #usesVm: boolean;
  readonly #jobs: number;
  /** Files with skipped tests, which the machine has not run yet. */
  #skipped: string[] = [];
  #isVmRunning = false;
  #working = 0;
  #beside = 0;

  constructor(processes: readonly (readonly string[])[], durations: Durations, { jobs, usesVm }: Limits) {
    this.#durations = durations;
    this.#usesVm = usesVm;
    this.#jobs = jobs;
    this.#waiting = processes.toSorted((a, b) => this.#rank(a) - this.#rank(b) || this.#here(b) - this.#here(a));
  }

  #here(files: readonly string[]): number {
    return files.reduce((sum, file) => sum + (this.#durations[file]?.here ?? UNRECORDED_SECONDS), 0);
  }

  #inVm(files: readonly string[]): number {
    return files.reduce((sum, file) => sum + (this.#durations[file]?.vm ?? 0), 0);
  }

  #isForVm(files: readonly string[]): boolean {
    return this.#usesVm && this.#inVm(files) > 0;
  }

  /** First what only the machine has work with, then what it has some work with, then the others. */
  #rank(files: readonly string[]): number {
    if (!this.#isForVm(files)) return 2;
    return this.#inVm(files) > this.#here(files) ? 0 : 1;
  }

  #seconds(files: readonly string[]): number {
    return this.#here(files) + this.#inVm(files);
  }

  #waitsMostly([file, ...others]: readonly string[]): boolean {
    const { here, busy } = this.#durations[file!] ?? {};
    if (this.#jobs === 1 || others.length > 0 || here === undefined || busy === undefined) return false;
    return busy < MOSTLY_WAITING * here;
  }

  /** What to do next; "wait" when something must end first, undefined when all is done. */
  next(): Step | "wait" | undefined {
    if (this.#beside < this.#jobs) {
      const files = this.#take((one) => this.#waitsMostly(one));
      if (files !== undefined) return this.#start({ files, on: "here", isBeside: true });
    }
    if (this.#working < this.#jobs) {
      if (this.#isVmDue()) {
        this.#isVmRunning = true;
        return this.#start({ files: this.#skipped.splice(0).sort(), on: "vm", isBeside: false });
      }
      const files = this.#take((one) => !this.#waitsMostly(one)) ?? this.#take(() => true);
      if (files !== undefined) return this.#start({ files, on: "here", isBeside: false });
    }
    return this.#working + this.#beside > 0 ? "wait" : undefined;
  }

  #take(isWanted: (files: readonly string[]) => boolean): readonly string[] | undefined {
    const at = this.#waiting.findIndex(isWanted);
    return at < 0 ? undefined : this.#waiting.splice(at, 1)[0];
  }

  #start(step: Step): Step {
    if (step.isBeside) this.#beside++;
    else this.#working++;
    return step;
  }

  done(step: Step, skipped: number): void {
    if (step.isBeside) this.#beside--;
    else this.#working--;
    if (step.on === "vm") this.#isVmRunning = false;
    else if (skipped > 0 && this.#usesVm) this.#skipped.push(...step.files);
  }

  /**
   * One machine at a time. It starts for much work, and otherwise when no more files with tests for it wait and their
   * tests take at least as long as any file that waits.
   */
  #isVmDue(): boolean {
    if (this.#isVmRunning || this.#skipped.length === 0) return false;
    const [longest] = this.#waiting;
    if (longest === undefined) return true;
    const seconds = BOOT_SECONDS + this.#inVm(this.#skipped);
    if (seconds >= WORTH_A_START_SECONDS) return true;
    return !this.#isForVm(longest) && seconds >= this.#seconds(longest);
  }
}
