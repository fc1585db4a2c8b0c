/** How many workers there should be: as few as may be, and more while calls wait. */
export interface WorkerCount {
  least: number;
  most: number;
}

/** How long no call has waited before one worker ends, and then the next. */
const SPARE_MS = 30_000;

export class Demand {
  private count: number;
  private queuedAt = 0;

  constructor(readonly limits: WorkerCount, private readonly now = () => performance.now()) {
    this.count = limits.least;
  }

  get wanted(): number {
    return this.count;
  }

  /** Whether a queue can change anything. */
  get mayGrow(): boolean {
    return this.limits.most > this.limits.least;
  }

  /** Calls wait although so many workers are ready to take them: a burst does not wait for one more at a time. */
  noteQueue(ready: number): void {
    this.queuedAt = this.now();
    if (ready >= this.count) this.count = Math.min(this.count * 2, this.limits.most);
  }

  /** Takes one away when no call has waited for long. Returns after how many milliseconds to ask again. */
  settle(): number {
    if (this.count === this.limits.least) return Infinity;
    const leftMs = this.queuedAt + SPARE_MS - this.now();
    if (leftMs > 0) return leftMs;
    this.count--;
    this.queuedAt = this.now();
    return this.count === this.limits.least ? Infinity : SPARE_MS;
  }
}
