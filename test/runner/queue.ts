/**
 * The order of a run. Files that have tests for the virtual machine start first, so that it has work early and starts
 * rarely. The others follow, the longest first, so that none is alone at the end.
 *
 * Half of the time files wait, most of them for packets that must not come. So as many run at a time as together work no
 * more than the processors can, by what was recorded of each.
 */

/**
 * Seconds that files took when they were last recorded: on this kernel, of a processor there, and their skipped tests in
 * the machine.
 */
export type Durations = Record<string, { here?: number; busy?: number; vm?: number }>;

export interface Limits {
  /** So many processors' work runs at a time. With one, no two files do. */
  jobs: number;
  usesVm: boolean;
}

/** Files that mostly wait work all at once when they start: no more run at a time for each processor. */
const FILES_A_JOB = 4;

/** What a run works, in percent of a processor, that works all the time. */
const ALL_THE_TIME = 100;

/** Files wait longer than was recorded of them while others run, so there is always work for an idle processor. */
const AHEAD = 1.2;

/** What files take that are not recorded, which are new or short. */
const UNRECORDED_SECONDS = 1;

/** What starting the machine costs. */
const BOOT_SECONDS = 10;

/** Work in the machine that is worth a start of its own, so that it does not all come at the end. */
const WORTH_A_START_SECONDS = 100;

/** `work` is in percent of a processor. */
export type Step = { files: readonly string[]; on: "here" | "vm"; work: number };

export function mostAtATime(jobs: number): number {
  return jobs === 1 ? 1 : FILES_A_JOB * jobs;
}

export class Queue {
  /** By process; all but quick unit tests have one of their own. */
  readonly #waiting: (readonly string[])[];
  readonly #durations: Durations;
  readonly #usesVm: boolean;
  readonly #jobs: number;
  /** Files with skipped tests, which the machine has not run yet. */
  #skipped: string[] = [];
  readonly #running = new Set<Step>();

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

  /** A file that is not recorded may work all the time, and so may those that share a process. */
  #work([file, ...others]: readonly string[]): number {
    const { here = 0, busy = here } = this.#durations[file!] ?? {};
    return others.length > 0 || busy >= here ? ALL_THE_TIME : Math.round(ALL_THE_TIME * busy / here);
  }

  #hasRoomFor(work: number): boolean {
    if (this.#running.size === 0) return true;
    const whole = [...this.#running].reduce((sum, step) => sum + step.work, work);
    return this.#running.size < mostAtATime(this.#jobs) && whole <= AHEAD * ALL_THE_TIME * this.#jobs;
  }

  /** What to do next; "wait" when something must end first, undefined when all is done. */
  next(): Step | "wait" | undefined {
    if (this.#isVmDue()) {
      if (!this.#hasRoomFor(ALL_THE_TIME)) return "wait";
      return this.#start({ files: this.#skipped.splice(0).sort(), on: "vm", work: ALL_THE_TIME });
    }
    const files = this.#take((one) => this.#hasRoomFor(this.#work(one)));
    if (files !== undefined) return this.#start({ files, on: "here", work: this.#work(files) });
    return this.#running.size > 0 ? "wait" : undefined;
  }

  /** What waits does not run. What has run, has its tests for the machine run there. */
  leaveOut(): string[] {
    return this.#waiting.splice(0).flat();
  }

  #take(isWanted: (files: readonly string[]) => boolean): readonly string[] | undefined {
    const at = this.#waiting.findIndex(isWanted);
    return at < 0 ? undefined : this.#waiting.splice(at, 1)[0];
  }

  #start(step: Step): Step {
    this.#running.add(step);
    return step;
  }

  done(step: Step, skipped: number): void {
    this.#running.delete(step);
    if (step.on === "here" && skipped > 0 && this.#usesVm) this.#skipped.push(...step.files);
  }

  /**
   * One machine at a time. It starts for much work, and otherwise when no more files with tests for it wait and their
   * tests take at least as long as any file that waits.
   */
  #isVmDue(): boolean {
    const isRunning = [...this.#running].some(({ on }) => on === "vm");
    if (isRunning || this.#skipped.length === 0) return false;
    const [longest] = this.#waiting;
    if (longest === undefined) return true;
    const seconds = BOOT_SECONDS + this.#inVm(this.#skipped);
    if (seconds >= WORTH_A_START_SECONDS) return true;
    return !this.#isForVm(longest) && seconds >= this.#seconds(longest);
  }
}
