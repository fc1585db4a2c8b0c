/** Ours and theirs, run after run in random order. */
import type { Bench, Row } from "./bench.ts";
import type { Side } from "./machine.ts";
import type { Runnable } from "./process.ts";
import { shuffled, summarise } from "./statistics.ts";
import { succeed } from "./call.ts";

/** An operation and what undoes it, each with the look that shows that it was done. */
export interface Cycle {
  add: Runnable;
  del: Runnable;
  /** Throws when what `add` should have made is not there. Gets ADD's answer. */
  made(answer: string): void;
  /** Throws when something is left after `del`. */
  gone(): void;
}

export interface Samples {
  add: number[];
  del: number[];
}

/** Runs the cycles of the sides, both unless said otherwise, `runs` times each after one that does not count. */
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
