import { random } from "./random.ts";

interface Child {
  readonly exited: Promise<unknown>;
  readonly signalCode: unknown;
  kill(signal: "SIGKILL"): void;
}

/**
 * Kills calls of one kind at random moments. A call that ends before its moment says how long such a call takes, and the
 * next moments come before that. After each kill they may come a little later. So most calls are killed half-way, at
 * their end too, also on a machine whose load changes.
 */
export class RandomKills {
  killed = 0;
  #spanMs = 200;

  async kill(child: Child): Promise<void> {
    const started = performance.now();
    const ended = child.exited.then(() => performance.now() - started);
    await Promise.race([ended, Bun.sleep(this.#spanMs * random())]);
    child.kill("SIGKILL");
    const tookMs = await ended;
    if (child.signalCode === "SIGKILL") {
      this.killed++;
      this.#spanMs *= 1.1;
    } else this.#spanMs = Math.min(this.#spanMs, tookMs);
  }
}
