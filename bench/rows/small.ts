/** A call that changes nothing in the kernel. */
import type { Bench, Benchmark, Row } from "../bench.ts";
import { pluginCall, succeed } from "../call.ts";
import { prepare } from "../process.ts";
import { shuffled, summarise, type Summary } from "../statistics.ts";

function measure({ machine }: Bench, runs: number, plugin: string, verb: string, conf: Record<string, unknown>) {
  const contestants = machine.sides.map((side) => ({
    side,
    call: prepare(pluginCall(side, plugin, verb, conf, side.makeContainer(plugin)), machine.scratch),
    samples: [] as number[],
  }));
  machine.servedAtLeast(runs, () => {
    for (let run = -1; run < runs; run++) {
      for (const { side, call, samples } of shuffled(contestants)) {
        const { ms } = side.onHost(() => succeed(call));
        if (run >= 0) samples.push(ms);
        if (!call.stdout().includes("cniVersion")) throw new Error(`no answer to ${verb}: ${call.stdout()}`);
      }
    }
  });
  const [served, alone, go] = contestants.map(({ samples }) => summarise(samples));
  const row = (how: string, ours: Summary): Row => ({
    name: `${plugin} ${verb}${how}`,
    unit: "ms",
    ours,
    against: go,
  });
  return [row("", served!), row(", alone", alone!)];
}

export const staticAddresses: Benchmark = {
  name: "static",
  run(bench) {
    const addresses = [{ address: "10.10.0.1/24", gateway: "10.10.0.254" }, { address: "2001:db8::1/64" }];
    const conf = { name: "bench", ipam: { type: "static", addresses } };
    return measure(bench, bench.runs(300), "static", "ADD", conf);
  },
};
