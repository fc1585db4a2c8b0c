/** What ADDs have wished for and not got yet, by pool. */
import { undefinedOnError } from "../../cni/error.ts";
import { isObject } from "../../cni/json.ts";
import { preciseSecondsSinceBoot } from "../../ffi/clock.ts";
import type { NodeFiles } from "./files.ts";

const LONGEST_S = 60;

export class Wishes {
  private readonly read = new Map<string, string>();
  private readonly settled = new Map<string, string>();

  constructor(private readonly files: NodeFiles) {}

  /** `"any"`, or the address that an ADD has asked for; undefined when nothing is wished. */
  of(pool: string): string | undefined {
    const wish = this.files.wishOf(pool);
    if (wish === undefined || wish === this.settled.get(pool)) return undefined;
    const value = undefinedOnError(() => JSON.parse(wish) as unknown);
    // It is being written.
    if (!isObject(value)) return undefined;
    const { at, address } = value;
    // An engine that still wants it has asked again since.
    if (typeof at === "number" && preciseSecondsSinceBoot() - at > LONGEST_S) return undefined;
    this.read.set(pool, wish);
    return typeof address === "string" ? address : "any";
  }

  /** Pools that ADDs want addresses of, and that are none of these. */
  beside(pools: readonly { name: string }[]): string[] {
    return this.files.wishedPools().filter((name) =>
      pools.every((pool) => pool.name !== name) && this.of(name) !== undefined
    );
  }

  /** There is no such pool. */
  forget(pool: string): void {
    this.files.removeWish(pool);
  }

  /** The one that was read: another may have come since. */
  settle(pool: string): void {
    const wish = this.read.get(pool);
    if (wish !== undefined) this.settled.set(pool, wish);
  }
}
