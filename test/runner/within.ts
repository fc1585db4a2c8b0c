/**
 * What of a long run fits into a time. Which is left to other runs is chance, another one with each seed, and the same for
 * long and for short ones: with half of the work in each run, one is left out by four runs in a row with a probability of a
 * sixteenth.
 */
import { seedWith, shuffled } from "../support/random.ts";
import type { Durations } from "./queue.ts";

/** A machine may be busy, and processors wait for the last files: so much of the time is given away. */
const GIVEN_AWAY = 0.6;

/** `seconds` are those of a run that works for `jobs` processors at a time, and has one virtual machine. */
export function within(
  runs: readonly string[],
  durations: Durations,
  { seconds, jobs, seed }: { seconds: number; jobs: number; seed: number },
): string[] {
  let work = seconds * jobs * GIVEN_AWAY, inVm = seconds * GIVEN_AWAY;
  seedWith(seed);
  const taken = new Set<string>();
  for (const run of shuffled(runs)) {
    const { here = 1, busy = here, vm = 0 } = durations[run] ?? {};
    work -= busy + vm, inVm -= vm;
    // A shorter one in its place would make the long ones rare.
    if (taken.size > 0 && (work < 0 || inVm < 0)) break;
    taken.add(run);
  }
  return runs.filter((run) => taken.has(run));
}
