/** What has been found on segments, by block: each is asked once, when it ripens. It ends with the boot, as what is served. */
import type { Grant } from "../../cluster/effects.ts";
import { indexOf, poolOf } from "../../cluster/records.ts";
import { firstAddressesOf } from "../../cluster/served.ts";
import { errorText } from "../../cni/error.ts";
import { formatAddress } from "../../net/address.ts";
import type { NodeFiles } from "./files.ts";
import { foreignAmong, MOST_ASKED } from "./foreign.ts";
import type { NodePool } from "./pools.ts";

export class ForeignHosts {
  private readonly found: Map<string, readonly string[]>;
  private readonly asked = new Set<string>();
  /** Why a segment could not be asked, by pool. */
  readonly problems = new Map<string, string>();
  /** How often a segment has been asked, or could not be. */
  count = 0;

  constructor(private readonly files: NodeFiles, private readonly say: (text: string) => void) {
    this.found = new Map(Object.entries(files.readForeign()));
  }

  of(pool: string): string[] {
    return [...this.found].flatMap(([key, addresses]) => poolOf(key) === pool ? addresses : []);
  }

  /** Whether its addresses have been asked for, where the pool wants that. */
  isAsked({ pool }: NodePool, { claim }: Grant): boolean {
    return pool.probedLink === undefined || this.asked.has(claim);
  }

  /** Whether that could be done. */
  async ask({ pool }: NodePool, { key, claim }: Grant): Promise<boolean> {
    const link = pool.probedLink!;
    const addresses = firstAddressesOf(pool, indexOf(key), MOST_ASKED);
    if (addresses.length === 0) this.asked.add(claim);
    if (addresses.length === 0) return true;
    try {
      const found = await foreignAmong(link, addresses);
      this.problems.delete(pool.name);
      this.found.set(key, found);
      this.count++;
      this.files.saveForeign(Object.fromEntries(this.found));
      this.asked.add(claim);
      for (const address of found) {
        this.say(`${address} of ${key} is another host's on ${link}: it is given to nobody here`);
      }
      return true;
    } catch (error) {
      const why = `${formatAddress(addresses[0]!)} and others of ${key} cannot be asked for: ${errorText(error)}`;
      if (!this.problems.has(pool.name)) {
        this.say(why);
        this.count++;
      }
      this.problems.set(pool.name, why);
      return false;
    }
  }
}
