/** What a benchmark is: something with a name that answers rows. bench/run.ts runs them all. */
import type { Machine } from "./machine.ts";
import type { Summary } from "./statistics.ts";

export interface Row {
  /** What is measured; benchmarks group their rows by starting alike. */
  name: string;
  unit: "ms" | "µs" | "MiB";
  ours: Summary;
  /** Debian's Go plugin doing the same, or for the floor what the kernel alone takes. */
  against?: Summary;
  /** What `against` is, when it is not the Go plugin. */
  againstWhat?: string;
  /** The largest ratio ours ÷ against that counts as met. */
  target?: number;
  /** A point on the picture of cost over leases. */
  leases?: number;
  note?: string;
}

export interface Benchmark {
  name: string;
  run(bench: Bench): Row[] | Promise<Row[]>;
}

export interface Bench {
  machine: Machine;
  /** Smoke mode: shows that everything runs, measures nothing. */
  quick: boolean;
  /** How often to measure, of what a full run asks for. */
  runs(full: number): number;
}
