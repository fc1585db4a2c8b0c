/** What `patchbay serve --status` says in a machine, and waiting for it. */
import { existsSync, readFileSync } from "node:fs";
import type { ResidentStatus } from "../../src/frontends/resident/status-report.ts";
import type { Machine } from "./machine.ts";
import { PATCHBAY } from "./plugins.ts";
import { untilTrue } from "./until-true.ts";

export type Status = ResidentStatus & { problem?: string };

export async function statusOf(machine: Machine, program = PATCHBAY): Promise<Status> {
  const { code, stdout, stderr } = await machine.run([program, "serve", "--status", "--json"]);
  if (stdout === "") throw new Error(`no status, exit ${code}: ${stderr}`);
  return JSON.parse(stdout);
}

/** Returns when calls of the program are served, and all workers are there. */
export async function untilServed(machine: Machine, program = PATCHBAY): Promise<Status> {
  const isReady = ({ problem, pid, workers }: Status) =>
    problem === undefined && workers.length >= wantedWorkers(pid);
  return await untilTrue(() => statusOf(machine, program), isReady);
}

/** By `--workers`; it begins with one. */
function wantedWorkers(pid: number): number {
  const path = `/proc/${pid}/cmdline`;
  return existsSync(path) ? Number(/--workers=(\d+)/.exec(readFileSync(path, "utf8"))?.[1] ?? 1) : Infinity;
}
