/** What is served of a pool now, or the refusal that says why nothing is. */
import type { PoolPlace } from "./places.ts";
import { readServed, type Served } from "./served-sets.ts";

/** Throws a CniError. */
export function servedOf({ pool, options: { directory } }: PoolPlace): Served {
  let found: Served | undefined;
  try {
    found = readServed(pool);
  } catch (error) {
    throw loadRefusals().unusable(pool, error);
  }
  if (found === undefined) throw loadRefusals().notServed(pool);
  const { leases } = found.file;
  if (leases !== undefined && `${leases}/${pool}` !== directory) {
    throw loadRefusals().leasedElsewhere(directory, leases);
  }
  return found;
}

/** Few calls need them. */
export function loadRefusals() {
  return require("./refusals.ts") as typeof import("./refusals.ts");
}
