/**
 * Unit tests that are quick share a process, because starting one takes longer than they do. `bun test --isolate` gives each
 * file modules, globals, an environment and a directory of its own. What the kernel keeps of a process goes on from
 * file to file: its umask, descriptors, namespaces. The order is another with each seed, so that a file that leaves
 * something of that behind is found.
 */
import { seedWith, shuffled } from "../support/random.ts";
import type { Durations } from "./queue.ts";

/** More would wait for one another too long, where several processes run at a time. */
const FILES_A_PROCESS = 32;

/** Seconds, rounded; a file that is not recorded is new or short. */
const QUICK = 1;

/** The files by process, in the order in which they run there. */
export function byProcess(
  files: readonly string[],
  units: ReadonlySet<string>,
  durations: Durations,
  seed: number,
): string[][] {
  const isQuick = (file: string) => units.has(file) && (durations[file]?.here ?? 0) <= QUICK;
  seedWith(seed);
  const quick = shuffled(files.filter(isQuick)), others = files.filter((file) => !isQuick(file));
  const processes = Math.ceil(quick.length / FILES_A_PROCESS);
  const shared = Array.from({ length: processes }, (_, at) => quick.filter((_, index) => index % processes === at));
  return [...others.map((file) => [file]), ...shared];
}
