/**
 * Where nobody sets up a resident, as on a node of Kubernetes that has only the DaemonSet: the first call runs by itself and
 * starts one, which serves the next ones.
 */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PERMISSION } from "../../src/process/resident-by-call.ts";
import { pluginNames } from "../../src/plugins/table.ts";
import type { Bench, Benchmark, Row } from "../bench.ts";
import { succeed } from "../call.ts";
import type { Side } from "../machine.ts";
import { type Cycle, cycleRows, measureCycles, noSamples, type Samples } from "../pairs.ts";
import { readAgain } from "../process.ts";
import { shuffled } from "../statistics.ts";
import { bridgeCycle } from "./attach.ts";
import { chainCycle } from "./chain.ts";
import { PAUSED } from "./paused.ts";

/** Plugins as a DaemonSet copies them, with the file by which a call starts a resident. */
function installed({ machine }: Bench): Side {
  const bin = join(machine.scratch, "installed"), program = join(bin, "patchbay");
  mkdirSync(bin);
  // In one write, as a build: what is written in pieces is slower to start.
  writeFileSync(program, readFileSync(machine.patchbay), { mode: 0o755 });
  for (const name of pluginNames) symlinkSync("patchbay", join(bin, name));
  writeFileSync(join(bin, PERMISSION), "");
  readAgain(program);
  return { ...machine.served, bin };
}

/** No resident is there before each call. */
function measureFirstCalls(bench: Bench, sides: readonly Side[], runs: number): Record<Side["name"], Samples> {
  const { machine } = bench, samples = noSamples();
  const contestants = sides.map((side) => ({
    side,
    cycle: bridgeCycle(bench, side, false, side.makeContainer("first")),
  }));
  const firstCall = (side: Side, { add, del }: Cycle, verb: "add" | "del") => {
    machine.end();
    machine.settle();
    samples[side.name][verb].push(succeed(verb === "add" ? add : del).ms);
    if (side.name === "served") machine.awaitResident();
  };
  for (let run = 0; run < runs; run++) {
    for (const { side, cycle } of shuffled(contestants)) {
      side.onHost(() => {
        firstCall(side, cycle, "add");
        cycle.made(cycle.add.stdout());
        firstCall(side, cycle, "del");
        cycle.gone();
      });
    }
  }
  return samples;
}

/** The calls after the first one, each after a pause. */
function measureNextCalls(bench: Bench, sides: readonly Side[], name: string, make: (side: Side) => Cycle): Row[] {
  const { machine } = bench, runs = bench.runs(50), [own] = sides as [Side];
  machine.end();
  const first = make(own);
  own.onHost(() => {
    succeed(first.add);
    machine.awaitResident();
    first.made(first.add.stdout());
    succeed(first.del);
    first.gone();
  });
  const measure = () => measureCycles(bench, runs, make, { sides, ...PAUSED });
  return cycleRows(`started by a call, ${name},`, machine.servedAtLeast(2 * runs, measure));
}

export const byCall: Benchmark = {
  name: "by-call",
  run(bench) {
    const sides = [installed(bench), bench.machine.go];
    const rows = [
      ...cycleRows("first call after install, bridge,", measureFirstCalls(bench, sides, bench.runs(30))),
      ...measureNextCalls(bench, sides, "bridge + host-local", (side) => bridgeCycle(bench, side, false, next(side))),
      ...measureNextCalls(
        bench,
        sides,
        "chain, each plugin called",
        (side) => chainCycle(bench, side, "exec", next(side)),
      ),
    ];
    bench.machine.startAgain();
    return rows;
  },
};

let containers = 0;

function next(side: Side) {
  return side.makeContainer(`by-call-${containers++}`);
}
