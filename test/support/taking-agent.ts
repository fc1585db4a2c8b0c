/**
 * An agent that takes blocks away from ADD, in a process of its own: `bun taking-agent.ts`. For each line of stdin, which is a
 * `GivenPool`, it writes down what is served from now on, then counts the leases with no ADD under way, and prints them.
 */
import { leasedExclusively } from "../../src/ipam/taking-away.ts";
import { formatAddress } from "../../src/net/address.ts";
import { StillLocked } from "../../src/process/lock.ts";
import { type GivenPool, POOLS, serveIn, STATE } from "./served-pool.ts";

/** An ADD that stands still does not end by waiting. */
const PATIENCE_MS = 100;

/** Undefined while an ADD is under way. */
function leasedBehind(given: GivenPool): string[] | null {
  const { pool } = serveIn(STATE, given);
  const options = { directory: `${POOLS}/${pool}`, keep: false, quarantineSeconds: 0, report: console.error };
  try {
    return leasedExclusively(options, (leased) => leased.map(formatAddress), PATIENCE_MS);
  } catch (error) {
    if (error instanceof StillLocked) return null;
    throw error;
  }
}

if (import.meta.main) {
  for await (const line of console) console.log(JSON.stringify(leasedBehind(JSON.parse(line))));
}
