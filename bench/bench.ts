/** The types of a benchmark, which has a name and returns rows. bench/run.ts runs them all. */
import type { Machine } from "./machine.ts";
import type { Summary } from "./statistics.ts";

export interface Row {
  /** What is measured. The rows of a benchmark begin alike. */
  name: string;
  unit: "ms" | "µs" | "MiB";
  ours: Summary;
  /** Debian's Go plugin doing the same, or for the floor the kernel alone. */
  against?: Summary;
  /** What `against` measures, when it is not the Go plugin. */
  againstWhat?: string;
  /** The largest ratio ours ÷ against that meets the target. */
  target?: number;
  /** The number of leases, for the picture of cost over leases. */
  leases?: number;
  note?: string;
}

export interface Benchmark {
  name: string;
  run(bench: Bench): Row[] | Promise<Row[]>;
}

export interface Bench {
  machine: Machine;
  /** Another netavark to compare with than Debian's. */
  netavark?: string;
  /** Smoke mode: only shows that everything runs. */
  quick: boolean;
  /** The number of runs: `full`, or fewer in smoke mode. */
  runs(full: number): number;
}
