/** Runs all sides in random order, run after run. */
import type { Bench, Row } from "./bench.ts";
import type { Host, Side } from "./machine.ts";
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

/** A worker of a resident is warm after some hundred calls. They do not count. */
export const WARM_UP_RUNS = 150;

interface Conditions {
  sides?: readonly Side[];
  /** Before each call, during which the machine does something else. */
  pauseMs?: number;
  warmUpRuns?: number;
}

/** Runs the cycle of each side `runs` times, after runs that do not count. */
export function measureCycles(
  bench: Bench,
  runs: number,
  make: (side: Side) => Cycle,
  { sides = bench.machine.sides, pauseMs = 0, warmUpRuns: wanted = WARM_UP_RUNS }: Conditions = {},
): Record<Side["name"], Samples> {
  const contestants = sides.map((side) => ({ side, cycle: make(side) }));
  const samples = noSamples();
  const measure = () => {
    for (const { side, cycle } of contestants) {
      const warmUpRuns = side.name === "served" ? bench.runs(wanted) : 1;
      for (let run = 0; run < warmUpRuns; run++) runCycle(bench, side, cycle, 0);
    }
    for (let run = 0; run < runs; run++) {
      for (const { side, cycle } of shuffled(contestants)) {
        const { add, del } = runCycle(bench, side, cycle, pauseMs);
        samples[side.name].add.push(add);
        samples[side.name].del.push(del);
      }
    }
  };
  if (sides.includes(bench.machine.served)) bench.machine.servedAtLeast(2 * runs, measure);
  else measure();
  return samples;
}

export function noSamples(): Record<Side["name"], Samples> {
  const [served, alone, go] = Array.from({ length: 3 }, (): Samples => ({ add: [], del: [] }));
  return { served: served!, alone: alone!, go: go! };
}

export function runCycle(
  { machine }: Bench,
  side: Host,
  { add, del, made, gone }: Cycle,
  pauseMs = 0,
): { add: number; del: number } {
  return side.onHost(() => {
    const settle = () => {
      machine.settle();
      if (pauseMs > 0) Bun.sleepSync(pauseMs);
    };
    settle();
    const added = succeed(add);
    made(add.stdout());
    settle();
    const deleted = succeed(del);
    gone();
    return { add: added.ms, del: deleted.ms };
  });
}

/** Two rows a verb: through a resident, which the targets are for, and alone. */
export function cycleRows(
  what: string,
  samples: Record<Side["name"], Samples>,
  targets: { add?: number; del?: number } = {},
): Row[] {
  const { served, alone, go } = samples;
  return (["add", "del"] as const).flatMap((verb) => {
    const against = go[verb].length > 0 ? summarise(go[verb]) : undefined;
    const row = (how: string, ours: Samples, target?: number): Row[] =>
      ours[verb].length === 0
        ? []
        : [{ name: `${what} ${verb.toUpperCase()}${how}`, unit: "ms", ours: summarise(ours[verb]), against, target }];
    return [...row("", served, targets[verb]), ...row(", alone", alone)];
  });
}
