/** What `patchbay serve --status` says of a resident, as text and as facts. */
import { RESIDENT_SOCKET } from "../../process/state-directory.ts";
import type { Difference } from "./caller-difference.ts";

/** What callers from here have that the resident has not, or the other way round. */
const DIFFERENCES: Record<Difference, string> = {
  uid: "another user or group",
  namespace: "another mount, network, process or user namespace, or root directory",
  capabilities: "other capabilities",
  confinement: "another no_new_privs, seccomp mode or number of filters, or security label",
};

export interface ResidentStatus {
  socket: string;
  pid: number;
  build: "this" | "another";
  /** Why calls from here are not served; undefined when they are. */
  declinesFromHere: Difference | undefined;
  /** Why the resident has not executed the file that has the place of its own by now. */
  refusedUpgrade: string | undefined;
  /** A call has started it. */
  isByCall: boolean;
  ageSeconds: number;
  served: number;
  takenBack: number;
  /** By reason. */
  declined: Record<string, number>;
  workersReplaced: number;
  workers: WorkerStatus[];
}

interface WorkerStatus {
  pid: number;
  ageSeconds: number;
  served: number;
  /** By a signal: it takes no calls. */
  isStopped: boolean;
  memoryKib: number;
  ownMemoryKib: number;
}

export interface StatusReport {
  /** Calls of this program, from where it was called, are served. */
  isServing: boolean;
  text: string;
  facts: unknown;
}

/** `hereAlone`: why the launcher here asks no resident, or none takes what it asks. */
export function reportOf(status: ResidentStatus, hereAlone?: string): StatusReport {
  const problem = hereAlone ?? whyNotServing(status);
  return { isServing: problem === undefined, text: describe(status, problem), facts: { ...status, problem } };
}

export function unseen(problem: string, consequence: string, facts: object = {}): StatusReport {
  const text = `${problem}\n${consequence}\n`;
  return { isServing: false, text, facts: { socket: RESIDENT_SOCKET, problem, ...facts } };
}

function whyNotServing({ build, declinesFromHere, workers }: ResidentStatus): string | undefined {
  if (build === "another") return "it is of another build";
  if (declinesFromHere !== undefined) return `it serves callers with ${DIFFERENCES[declinesFromHere]}`;
  if (workers.length === 0) return "it has no worker";
  return workers.every(({ isStopped }) => isStopped)
    ? "its workers are stopped (SIGCONT lets them go on)"
    : undefined;
}

function describe(status: ResidentStatus, problem: string | undefined): string {
  const { pid, ageSeconds, served, takenBack, declined, workersReplaced, workers, refusedUpgrade } = status;
  const reasons = Object.entries(declined), count = reasons.reduce((sum, [, times]) => sum + times, 0);
  const because = reasons.map(([reason, times]) => `${reason} ${times}`).join(", ");
  return [
    `process ${pid} listens on ${RESIDENT_SOCKET}, for ${duration(ageSeconds)}`,
    problem === undefined
      ? "calls of this program are served"
      : `calls of this program run by themselves: ${problem}`,
    ...status.isByCall
      ? ["a call started it; it ends when it serves nobody, or its program or .patchbay-resident changes"]
      : [],
    ...refusedUpgrade === undefined ? [] : [`it has not been upgraded: ${refusedUpgrade}`],
    `calls: ${served} served, ${count} declined${count > 0 ? ` (${because})` : ""}, ${takenBack} taken back`,
    `workers: ${workers.length}, replaced: ${workersReplaced}`,
    ...workers.map((worker) =>
      `  process ${worker.pid}: ${worker.served} served, ${mib(worker.memoryKib)} MiB ` +
      `(${mib(worker.ownMemoryKib)} not shared), ${duration(worker.ageSeconds)} old`
    ),
    "",
  ].join("\n");
}

function mib(kib: number): number {
  return Math.round(kib / 1024);
}

function duration(seconds: number): string {
  const units: [length: number, name: string][] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = units.findIndex(([length]) => seconds >= length || length === 1);
  return units.slice(first, first + 2).map(([length, name], index) => {
    const within = index === 0 ? seconds : seconds % units[first]![0];
    return `${Math.floor(within / length)} ${name}`;
  }).join(" ");
}
