/** Runs both sides in random order, run after run. */
import type { Bench, Row } from "./bench.ts";
import type { Side } from "./machine.ts";
import type { Runnable } from "./process.ts";
import { shuffled, summarise } from "./statistics.ts";
import { succeed } from "./call.ts";

/** An operation and its undo, each with a check that it worked. */
export interface Cycle {
  add: Runnable;
  del: Runnable;
  /** Throws when `add` did not make what it should. Gets ADD's result. */
  made(result: string): void;
  /** Throws when something is left after `del`. */
  gone(): void;
}

export interface Samples {
  add: number[];
  del: number[];
}

/** Runs the cycle of each side `runs` times, after one run that does not count. */
export function measureCycles(
  bench: Bench,
  runs: number,
  make: (side: Side) => Cycle,
  sides: readonly Side[] = [bench.machine.ours, bench.machine.go],
): Record<Side["name"], Samples> {
  const contestants = sides.map((side) => ({ side, cycle: make(side) }));
  const samples: Record<Side["name"], Samples> = { ours: { add: [], del: [] }, go: { add: [], del: [] } };
  for (let run = -1; run < runs; run++) {
    for (const { side, cycle } of shuffled(contestants)) {
      const { add, del } = runCycle(bench, side, cycle);
      if (run < 0) continue;
      samples[side.name].add.push(add);
      samples[side.name].del.push(del);
    }
  }
  return samples;
}

function runCycle({ machine }: Bench, side: Side, { add, del, made, gone }: Cycle): { add: number; del: number } {
  return side.onHost(() => {
    machine.settle();
    const added = succeed(add);
    made(add.stdout());
    machine.settle();
    const deleted = succeed(del);
    gone();
    return { add: added.ms, del: deleted.ms };
  });
}

export function cycleRows(
  what: string,
  samples: Record<Side["name"], Samples>,
  targets: { add?: number; del?: number } = {},
): Row[] {
  return (["add", "del"] as const).map((verb) => ({
    name: `${what} ${verb.toUpperCase()}`,
    unit: "ms",
    ours: summarise(samples.ours[verb]),
    against: samples.go[verb].length > 0 ? summarise(samples.go[verb]) : undefined,
    target: targets[verb],
  }));
}
