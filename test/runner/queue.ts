/**
 * The order of a run. Files that have tests for the virtual machine start first, so that it has work early and starts
 * rarely. The others follow, the longest first, so that none is alone at the end.
 */

/** Seconds that files took when they were last recorded: on this kernel, and their skipped tests in the machine. */
export type Durations = Record<string, { here?: number; vm?: number }>;

/** What files take that are not recorded, which are new or short. */
const UNRECORDED_SECONDS = 1;

/** What starting the machine costs. */
const BOOT_SECONDS = 10;

/** Work in the machine that is worth a start of its own, so that it does not all come at the end. */
const WORTH_A_START_SECONDS = 100;

export type Step = { files: string[]; on: "here" | "vm" };

export class Queue {
  readonly #waiting: string[];
  readonly #durations: Durations;
  readonly #usesVm: boolean;
  /** Files with skipped tests, which the machine has not run yet. */
  #skipped: string[] = [];
  #isVmRunning = false;
  #running = 0;

  constructor(files: readonly string[], durations: Durations, usesVm: boolean) {
    this.#durations = durations;
    this.#usesVm = usesVm;
    this.#waiting = files.toSorted((a, b) => this.#rank(a) - this.#rank(b) || this.#here(b) - this.#here(a));
  }

  #here(file: string): number {
    return this.#durations[file]?.here ?? UNRECORDED_SECONDS;
  }

  #inVm(file: string): number {
    return this.#durations[file]?.vm ?? 0;
  }

  #isForVm(file: string): boolean {
    return this.#usesVm && this.#inVm(file) > 0;
  }

  /** First what only the machine has work with, then what it has some work with, then the others. */
  #rank(file: string): number {
    if (!this.#isForVm(file)) return 2;
    return this.#inVm(file) > this.#here(file) ? 0 : 1;
  }

  #seconds(file: string): number {
    return this.#here(file) + this.#inVm(file);
  }

  /** What to do next; "wait" when that depends on what is running, undefined when all is done. */
  next(): Step | "wait" | undefined {
    if (this.#isVmDue()) {
      this.#isVmRunning = true;
      return this.#start({ files: this.#skipped.splice(0).sort(), on: "vm" });
    }
    const file = this.#waiting.shift();
    if (file !== undefined) return this.#start({ files: [file], on: "here" });
    return this.#running > 0 ? "wait" : undefined;
  }

  #start(step: Step): Step {
    this.#running++;
    return step;
  }

  done(step: Step, skipped: number): void {
    this.#running--;
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
    const seconds = this.#skipped.reduce((sum, file) => sum + this.#inVm(file), BOOT_SECONDS);
    if (seconds >= WORTH_A_START_SECONDS) return true;
    return !this.#isForVm(longest) && seconds >= this.#seconds(longest);
  }
}
