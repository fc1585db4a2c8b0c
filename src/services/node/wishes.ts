/** What ADDs have wished for and not got yet, by pool. */
import { undefinedOnError } from "../../cni/error.ts";
import { isObject } from "../../cni/json.ts";
import type { NodeFiles } from "./files.ts";

export class Wishes {
  private readonly settled = new Map<string, string>();

  constructor(private readonly files: NodeFiles) {}

  /** `"any"`, or the address that an ADD has asked for; undefined when nothing is wished. */
  of(pool: string): string | undefined {
    const wish = this.files.wishOf(pool);
    if (wish === undefined || wish === this.settled.get(pool)) return undefined;
    return addressIn(wish) ?? "any";
  }

  settle(pool: string): void {
    const wish = this.files.wishOf(pool);
    if (wish !== undefined) this.settled.set(pool, wish);
  }
}

function addressIn(wish: string): string | undefined {
  const value = undefinedOnError(() => JSON.parse(wish) as unknown);
  const address = isObject(value) ? value["address"] : undefined;
  return typeof address === "string" ? address : undefined;
}
