/**
 * Containers that come one after the other with pauses, during which the machine does something else: through a resident that
 * has served ten calls of the kind. A loop without pauses keeps everything in the processor's caches.
 */
import type { Bench, Benchmark, Row } from "../bench.ts";
import type { Side } from "../machine.ts";
import { type Cycle, cycleRows, measureCycles } from "../pairs.ts";
import { bridgeCycle } from "./attach.ts";
import { chainCycle } from "./chain.ts";
import { cases, interfaceCycle } from "./interfaces.ts";

/** What is measured so: ten calls do not count. */
export const PAUSED = { pauseMs: 100, warmUpRuns: 5 } as const;

interface Kind {
  name: string;
  targets: { add: number; del: number };
  cycle(bench: Bench, side: Side, name: string): Cycle;
}

function ofInterface(plugin: string): Kind {
  const one = cases.find((each) => each.plugin === plugin)!;
  const cycle: Kind["cycle"] = (bench, side, name) => interfaceCycle(bench, side, one, side.makeContainer(name));
  return { name: `${plugin} + host-local`, targets: { add: 0.36, del: 0.13 }, cycle };
}

function ofBridge(name: string, ipMasq: boolean, targets: Kind["targets"]): Kind {
  return { name, targets, cycle: (bench, side, at) => bridgeCycle(bench, side, ipMasq, side.makeContainer(at)) };
}

function ofChain(name: string, how: "exec" | "runtime", targets: Kind["targets"]): Kind {
  return { name, targets, cycle: (bench, side, at) => chainCycle(bench, side, how, side.makeContainer(at)) };
}

const kinds: readonly Kind[] = [
  ofBridge("bridge + host-local", false, { add: 0.38, del: 0.13 }),
  ofBridge("bridge + host-local, ipMasq", true, { add: 0.2, del: 0.05 }),
  ofChain("chain, each plugin called", "exec", { add: 0.13, del: 0.035 }),
  ofChain("chain by the runtime", "runtime", { add: 0.1, del: 0.025 }),
  ofInterface("ptp"),
  ofInterface("macvlan"),
];

export const paused: Benchmark = {
  name: "paused",
  run(bench): Row[] {
    return kinds.flatMap(({ name, targets, cycle }, index) => {
      bench.machine.startAgain();
      const samples = measureCycles(bench, bench.runs(50), (side) => cycle(bench, side, `paused-${index}`), PAUSED);
      return cycleRows(`after ${PAUSED.pauseMs} ms, ${name},`, samples, targets);
    });
  },
};
