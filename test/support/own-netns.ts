import { readlinkSync } from "node:fs";
import type { Subprocess } from "bun";
import type { Machine } from "./machine.ts";
import { untilTrue } from "./until-true.ts";

/** A process that sleeps in a network namespace of its own, as a container's first one does. */
export async function startInOwnNetns(machine: Machine): Promise<Subprocess<"pipe", "pipe", "pipe">> {
  const started = machine.start(["unshare", "--net", "sleep", "infinity"]);
  // On its way there the process is in the namespaces of the test and of the machine.
  await untilTrue(() => readlinkSync(`/proc/${started.pid}/exe`), (program) => program.endsWith("/sleep"));
  return started;
}
