/**
 * The workers, for the parent. Each worker holds one end of a pipe whose other end only the parent has. When the parent
 * closes it, or ends, the worker ends after its call.
 */
import { errorText } from "../cni/error.ts";
import { Pause } from "../daemon/pause.ts";
import { moveUp } from "../ffi/descriptors.ts";
import { closeFile, O_CLOEXEC, O_RDONLY, openFile } from "../ffi/files.ts";
import { openPipe, spawn } from "../ffi/spawn.ts";
import { warn } from "../ffi/warn.ts";
import { Counters, makePage, readPage, REPLACED } from "./counters.ts";

/** The least time between a worker's start and that of the one that replaces it. */
const SHORT_LIFE_MS = 200;
/** The pause until the next attempt when the kernel has no process or memory left. */
const NO_ROOM_MS = 1000;

export const TOTALS_PAGE = "patchbay-resident", WORKER_PAGE = "patchbay-worker";

interface Worker {
  page: number;
  startedAt: number;
  /** The pipe that it holds. */
  lifeline: Lifeline;
}

interface Lifeline {
  workersEnd: number;
  ownEnd: number;
}

export class Workers {
  private readonly all = new Map<number, Worker>();
  /** The counters of workers that have ended. */
  private readonly totals = new Counters(makePage(TOTALS_PAGE));
  private lifeline: Lifeline | undefined;
  private listening = -1;
  private readonly pause = new Pause();

  constructor(private readonly wanted: number) {}

  /** From now on workers accept from this socket. Those that accept from another one end. */
  serve(listening: number): void {
    this.retire();
    const [workersEnd, ownEnd] = openPipe().map(moveUp) as [number, number];
    this.lifeline = { workersEnd, ownEnd };
    this.listening = listening;
  }

  /** Workers end, each after its call. */
  retire(): void {
    if (this.lifeline === undefined) return;
    closeFile(this.lifeline.workersEnd);
    closeFile(this.lifeline.ownEnd);
    this.lifeline = undefined;
  }

  /** Starts missing workers. Returns after how many milliseconds to call this again, or Infinity. */
  startMissing(): number {
    for (;;) {
      const count = [...this.all.values()].filter(({ lifeline }) => lifeline === this.lifeline).length;
      if (count >= this.wanted) return Infinity;
      const pauseMs = this.pause.leftMs;
      if (pauseMs !== 0) return pauseMs;
      try {
        this.start(this.lifeline!);
      } catch (error) {
        warn(`cannot start a worker: ${errorText(error)}`);
        this.pause.begin(NO_ROOM_MS);
      }
    }
  }

  /** Removes workers that have ended, and adds their counts to the totals. The other processes are ignored. */
  forget(pids: readonly number[]): void {
    for (const pid of pids) {
      const worker = this.all.get(pid);
      if (worker === undefined) continue;
      this.all.delete(pid);
      for (const [name, times] of readPage(worker.page)?.counts ?? []) this.totals.count(name, times);
      closeFile(worker.page);
      if (worker.lifeline !== this.lifeline) continue;
      this.totals.count(REPLACED);
      this.pause.begin(SHORT_LIFE_MS, worker.startedAt);
    }
  }

  private start(lifeline: Lifeline): void {
    const nothing = moveUp(openFile("/dev/null", O_RDONLY | O_CLOEXEC)), page = moveUp(makePage(WORKER_PAGE));
    try {
      const pid = spawn({
        path: "/proc/self/exe",
        argv: ["patchbay", "serve", "--worker"],
        environment: [],
        // worker.ts knows them by these numbers.
        descriptors: [nothing, 1, 2, this.listening, lifeline.workersEnd, page],
        hasOwnGroup: true,
        // A signal that ends a resident goes to the parent.
        inheritsBlockedSignals: true,
      });
      this.all.set(pid, { page, startedAt: performance.now(), lifeline });
    } catch (error) {
      closeFile(page);
      throw error;
    } finally {
      closeFile(nothing);
    }
  }
}
