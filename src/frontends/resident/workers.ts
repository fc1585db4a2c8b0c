/**
 * The workers, for the parent. Each worker holds one end of a pipe whose other end only the parent has. When the parent
 * closes it, or ends, the worker ends after its call.
 *
 * There are as few as may be: another one is started when workers say that calls wait, and ends when none has waited for a
 * while.
 */
import { errorText } from "../../cni/error.ts";
import { Pause } from "../../services/daemon/pause.ts";
import { moveUp, setNonblocking } from "../../ffi/descriptors.ts";
import { closeFile, O_CLOEXEC, O_RDONLY, openFile } from "../../ffi/files.ts";
import { libc } from "../../ffi/libc.ts";
import { openPipe, spawn } from "../../ffi/spawn.ts";
import { warn } from "../../process/warn.ts";
import { Board, REPLACED } from "./board.ts";
import { Demand, type WorkerCount } from "./demand.ts";

/** The least time between a worker's start and that of the one that replaces it. */
const SHORT_LIFE_MS = 200;
/** The pause until the next attempt when the kernel has no process or memory left. */
const NO_ROOM_MS = 1000;

interface Worker {
  startedAt: number;
  board: Board;
  slot: number;
  /** The parent's end of the pipe that it holds; undefined when it is to end. */
  lifeline: number | undefined;
  /** What the totals have of its counts. */
  collected: ReadonlyMap<string, number>;
}

export class Workers {
  private readonly all = new Map<number, Worker>();
  /** The counts of workers that have ended. */
  private readonly totals = new Map<string, number>();
  private board: Board | undefined;
  private listening = -1;
  private readonly pause = new Pause();
  private readonly queuePipe = openPipe().map(moveUp) as [readEnd: number, writeEnd: number];
  private readonly demand: Demand;

  constructor(count: WorkerCount, private readonly rehearsals: number) {
    this.demand = new Demand(count);
    this.queuePipe.forEach(setNonblocking);
  }

  /** Readable when a worker says that calls wait: see `noteQueue`. None where that changes nothing. */
  get queueFds(): readonly number[] {
    return this.demand.mayGrow ? [this.queuePipe[0]] : [];
  }

  /** From now on workers accept from this socket. Workers that accept from another socket end. */
  serve(listening: number): void {
    const board = Board.open();
    for (const worker of this.all.values()) this.collect(worker);
    board.setTotals(this.totals);
    this.retire();
    this.board = board;
    this.listening = listening;
  }

  /** False when launchers do not find what the workers do. */
  get isBoardInPlace(): boolean {
    return this.board?.isInPlace === true;
  }

  /** How many calls the workers have taken so far. */
  get calls(): number {
    return this.board?.calls ?? 0;
  }

  /** Workers end, each after its call. */
  retire(): void {
    for (const worker of this.all.values()) release(worker);
    this.board?.retire();
    this.board = undefined;
  }

  /** A worker has said that calls wait. */
  noteQueue(): void {
    const words = new Uint8Array(4096);
    while (Number(libc.read(this.queuePipe[0], words, words.length)) > 0);
    this.demand.noteQueue(this.serving().filter(({ board, slot }) => board.isReady(slot)).length);
  }

  /** Starts missing workers, and ends one that is not needed. Returns after how many milliseconds to call this again. */
  adjust(): number {
    const againMs = this.demand.settle(), { wanted } = this.demand;
    for (const spare of this.serving().slice(wanted)) release(spare);
    while (this.board !== undefined && this.serving().length < wanted) {
      const pauseMs = this.pause.leftMs;
      if (pauseMs !== 0) return pauseMs;
      try {
        this.start(this.board);
      } catch (error) {
        warn(`cannot start a worker: ${errorText(error)}`);
        this.pause.begin(NO_ROOM_MS);
      }
    }
    return againMs;
  }

  /** Removes workers that have ended, and adds their counts to the totals. The other processes are ignored. */
  forget(pids: readonly number[]): void {
    for (const pid of pids) {
      const worker = this.all.get(pid);
      if (worker === undefined) continue;
      this.all.delete(pid);
      this.collect(worker);
      worker.board.freeSlot(worker.slot);
      if (worker.lifeline === undefined) continue;
      release(worker);
      this.add(REPLACED, 1);
      this.pause.begin(SHORT_LIFE_MS, worker.startedAt);
    }
    this.board?.setTotals(this.totals);
  }

  /** Adds what a worker has counted since the last time: a new board shows nothing of the workers before it. */
  private collect(worker: Worker): void {
    const counts = worker.board.countsOf(worker.slot);
    for (const [name, times] of counts) this.add(name, times - (worker.collected.get(name) ?? 0));
    worker.collected = counts;
  }

  private add(name: string, times: number): void {
    this.totals.set(name, (this.totals.get(name) ?? 0) + times);
  }

  private serving(): Worker[] {
    return [...this.all.values()].filter(({ lifeline }) => lifeline !== undefined);
  }

  private start(board: Board): void {
    const slot = board.takeSlot(), opened: number[] = [];
    const keep = (fd: number) => (opened.push(fd), fd);
    try {
      const nothing = keep(moveUp(openFile("/dev/null", O_RDONLY | O_CLOEXEC)));
      const [workersEnd, lifeline] = openPipe().map((fd) => keep(moveUp(fd))) as [number, number];
      const pid = spawn({
        path: "/proc/self/exe",
        argv: ["patchbay", "serve", "--worker", String(slot), String(this.rehearsals)],
        environment: [],
        // worker.ts knows them by these numbers.
        descriptors: [nothing, 1, 2, this.listening, workersEnd, board.fd, this.queuePipe[1]],
        hasOwnGroup: true,
        // A signal that ends a resident goes to the parent.
        inheritsBlockedSignals: true,
      });
      this.all.set(pid, { startedAt: performance.now(), board, slot, lifeline, collected: new Map() });
      for (const fd of [nothing, workersEnd]) closeFile(fd);
    } catch (error) {
      board.freeSlot(slot);
      for (const fd of opened) closeFile(fd);
      throw error;
    }
  }
}

/** The worker ends after its call. */
function release(worker: Worker): void {
  if (worker.lifeline !== undefined) closeFile(worker.lifeline);
  worker.lifeline = undefined;
}
