/** What ADDs have wished for and not got yet, by pool. */
import type { NodeFiles } from "./files.ts";

export class Wishes {
  private readonly settled = new Map<string, string>();

  constructor(private readonly files: NodeFiles) {}

  /** `"any"`, or the address that an ADD has asked for; undefined when nothing is wished. */
  of(pool: string): string | undefined {
    const wish = this.files.wishOf(pool);
    if (wish === undefined || wish === this.settled.get(pool)) return undefined;
    return this.files.wishedAddress(pool) ?? "any";
  }

  settle(pool: string): void {
    const wish = this.files.wishOf(pool);
    if (wish !== undefined) this.settled.set(pool, wish);
  }
}
