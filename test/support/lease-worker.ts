/**
 * A process that uses a lease directory, for tests with several at once: `bun lease-worker.ts MODE JSON`.
 *
 *     steps   runs the steps one after the other and prints the list of their results
 *     churn   adds and deletes under names of its own `rounds` times, or until it is killed
 *
 * In `churn`, the worker creates `held/<address>` for each address it gets. If that file exists, another process has the
 * same address: the worker says so and exits with status 1.
 */
import { closeSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { add, del, leaseDirectory, rangeSet } from "./lease-directory.ts";
import { randomBelow } from "./random.ts";

export interface Churn {
  directory: string;
  held: string;
  name: string;
  subnet: string;
  rounds: number;
}

export interface Steps {
  directory: string;
  subnet: string;
  /** `add c1`, `add c1 10.1.0.9`, `del c1`, or `sh …`. */
  steps: string[];
}

function churn({ directory, held, name, subnet, rounds }: Churn): void {
  const made = leaseDirectory({ directory });
  const set = rangeSet(subnet);
  const holding: { id: string; address: string }[] = [];
  const letGo = () => {
    const { id, address } = holding.splice(randomBelow(holding.length), 1)[0]!;
    rmSync(join(held, address));
    if (del(made, id) !== 1) throw new Error(`${address} of ${id} was not there to release`);
  };
  for (let round = 0; round < rounds; round++) {
    const id = `${name}-${round}`;
    try {
      const address = add(made, set, id);
      closeSync(openSync(join(held, address), "wx"));
      holding.push({ id, address });
    } catch (error) {
      if (!String(error).includes("no IP addresses available")) throw error;
      if (holding.length > 0) letGo();
    }
    if (holding.length > 3) letGo();
  }
  while (holding.length > 0) letGo();
  if (made.reports.length > 0) throw new Error(made.reports.join("\n"));
}

function steps({ directory, subnet, steps }: Steps): unknown[] {
  const made = leaseDirectory({ directory });
  const set = rangeSet(subnet);
  const run = (step: string) => {
    const [verb, id, ip] = step.split(" ");
    if (verb === "add") return add(made, set, id!, { ip });
    if (verb === "del") return del(made, id!);
    const { exitCode, stdout } = Bun.spawnSync(["sh", "-c", step.slice(3)], { stderr: "inherit" });
    return `${exitCode} ${stdout.toString().trim()}`.trim();
  };
  const answers = steps.map((step) => {
    try {
      return run(step);
    } catch (error) {
      return `${error}`;
    }
  });
  return [...answers, ...made.reports];
}

if (import.meta.main) {
  const [mode, json] = process.argv.slice(2);
  if (mode === "churn") churn(JSON.parse(json!));
  else console.log(JSON.stringify(steps(JSON.parse(json!))));
}
