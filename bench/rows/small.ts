/** Calls that change nothing in the kernel: VERSION and static. */
import type { Bench, Benchmark } from "../bench.ts";
import { pluginCall, succeed } from "../call.ts";
import { prepare } from "../process.ts";
import { shuffled, summarise } from "../statistics.ts";

function measure({ machine }: Bench, runs: number, plugin: string, verb: string, conf: Record<string, unknown>) {
  const contestants = [machine.ours, machine.go].map((side) => ({
    call: prepare(pluginCall(side, plugin, verb, conf, side.makeContainer(plugin)), machine.scratch),
    samples: [] as number[],
  }));
  for (let run = -1; run < runs; run++) {
    for (const { call, samples } of shuffled(contestants)) {
      const { ms } = succeed(call);
      if (run >= 0) samples.push(ms);
      if (!call.stdout().includes("cniVersion")) throw new Error(`no answer to ${verb}: ${call.stdout()}`);
    }
  }
  const [ours, go] = contestants;
  return { unit: "ms" as const, ours: summarise(ours!.samples), against: summarise(go!.samples) };
}

export const version: Benchmark = {
  name: "version",
  run: (bench) => [{ name: "bridge VERSION", ...measure(bench, bench.runs(300), "bridge", "VERSION", {}) }],
};

export const staticAddresses: Benchmark = {
  name: "static",
  run(bench) {
    const addresses = [{ address: "10.10.0.1/24", gateway: "10.10.0.254" }, { address: "2001:db8::1/64" }];
    const conf = { name: "bench", ipam: { type: "static", addresses } };
    return [{ name: "static ADD", ...measure(bench, bench.runs(300), "static", "ADD", conf) }];
  },
};
