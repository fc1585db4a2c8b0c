/**
 * What of a long run fits into a time. Which is left to other runs is chance, and another one with each seed, so that a
 * few runs have everything.
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
  const taken = shuffled(runs).filter((run) => {
    const { here = 1, busy = here, vm = 0 } = durations[run] ?? {};
    const fits = busy + vm <= work && vm <= inVm;
    if (fits) work -= busy + vm, inVm -= vm;
    return fits;
  });
  return runs.filter((run) => taken.includes(run));
}
