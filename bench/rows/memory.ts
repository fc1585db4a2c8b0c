/** Memory of one plugin process while it waits for its configuration: private and resident. */
import type { Benchmark, Row } from "../bench.ts";
import { pluginCall } from "../call.ts";
import { memoryAtRest } from "../process.ts";
import { summarise } from "../statistics.ts";

export const memory: Benchmark = {
  name: "memory",
  run({ machine }) {
    const container = { id: "c1", netnsPath: "/proc/1/ns/net" };
    const [ours, go] = [machine.alone, machine.go].map((side) =>
      memoryAtRest(pluginCall(side, "bridge", "ADD", {}, container), machine.scratch)
    );
    const row = (name: string, which: keyof NonNullable<typeof ours>, note?: string): Row => ({
      name,
      unit: "MiB",
      ours: summarise([ours![which] / 1024]),
      against: summarise([go![which] / 1024]),
      note,
    });
    return [
      row("memory: private to one process", "privateKiB"),
      row("memory: resident", "residentKiB", "with the pages of the program file that all processes share"),
    ];
  },
};
