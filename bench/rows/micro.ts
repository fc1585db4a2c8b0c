/** Micro-benchmarks: every `*.bench.ts` in this tree exports `tasks`, which tinybench times. */
import { Glob } from "bun";
import { resolve } from "node:path";
import { Bench as Tinybench } from "tinybench";
import type { Benchmark, Row } from "../bench.ts";
import { summarise } from "../statistics.ts";

const folder = resolve(import.meta.dir, "..");

export const micro: Benchmark = {
  name: "micro",
  async run({ quick }) {
    const time = quick ? { time: 1, iterations: 1, warmup: false } : { time: 500, warmupTime: 100 };
    const suite = new Tinybench({ ...time, retainSamples: true });
    for (const file of [...new Glob("**/*.bench.ts").scanSync(folder)].sort()) {
      const { tasks } = await import(resolve(folder, file)) as { tasks: Record<string, () => unknown> };
      for (const [name, task] of Object.entries(tasks)) suite.add(name, task);
    }
    await suite.run();
    return suite.tasks.map(({ name, result }): Row => {
      if (!("latency" in result)) throw new Error(`${name}: ${JSON.stringify(result)}`);
      return { name, unit: "µs", ours: summarise(result.latency.samples!.map((ms) => ms * 1000)) };
    });
  },
};
