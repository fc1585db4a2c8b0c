/** The watch of this node's own record, begun again whenever it ends, and that of ADDs' wishes; and waiting for what they tell. */
import type { ClusterStore } from "../../cluster/store.ts";
import { isWish } from "../../cluster/served-file.ts";
import { delay } from "../../cluster-stores/delay.ts";
import { preciseSecondsSinceBoot } from "../../ffi/clock.ts";
import { changedEntries, Watch } from "../../ffi/watch.ts";

/** Between two attempts to begin. */
const PAUSE_MS = 1000;
/** Between two wishes that wake. */
const LEAST_MS = 100;

export class Watching {
  private hasChanged = false;
  private hasWish = false;
  /** Undefined while it runs. */
  private endedAt: number | undefined = preciseSecondsSinceBoot();
  private wake: () => void = () => {};
  /** Why the last one has ended. */
  reason = "it has not begun yet";

  constructor(store: ClusterStore, key: string, stateDirectory: string, private readonly signal: AbortSignal) {
    void this.keepUp(store, key);
    void this.watchWishes(stateDirectory);
  }

  /** Where the kernel has no more watches to give, a wish waits for the next look. */
  private async watchWishes(directory: string): Promise<void> {
    const watch = new Watch();
    if (watch.fd < 0) return;
    watch.entries(directory);
    for await (const events of watch.changes()) {
      if (!changedEntries(events).some(isWish)) continue;
      this.hasWish = true;
      this.wake();
      await delay(LEAST_MS, this.signal);
    }
  }

  private async keepUp(store: ClusterStore, key: string): Promise<void> {
    while (!this.signal.aborted) {
      const begun = performance.now();
      this.reason = await store.watch(key, () => this.changed(), this.signal);
      this.endedAt ??= preciseSecondsSinceBoot();
      if (performance.now() - begun < PAUSE_MS) await delay(PAUSE_MS, this.signal);
    }
  }

  private changed(): void {
    this.endedAt = undefined;
    this.hasChanged = true;
    this.wake();
  }

  /** Whether something may have changed since it was asked last. */
  takeChange(): boolean {
    const has = this.hasChanged;
    this.hasChanged = false;
    return has;
  }

  /** For how many seconds nobody would have told of a change. */
  get lostFor(): number {
    return this.endedAt === undefined ? 0 : preciseSecondsSinceBoot() - this.endedAt;
  }

  /** Ends early when something has changed, or an ADD has wished. */
  async wait(ms: number): Promise<void> {
    const { hasWish } = this;
    this.hasWish = false;
    if (this.hasChanged || hasWish || this.signal.aborted) return;
    const waking = new AbortController();
    this.wake = () => waking.abort();
    await delay(ms, waking.signal);
  }
}
