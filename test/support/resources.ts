/** Calls the verbs of resources inside a machine, without a plugin. */
import { resolve } from "node:path";
import type { Machine } from "./machine.ts";

export interface Step {
  verb: "judge" | "apply" | "verify" | "repair" | "remove" | "undo" | "sweep" | "rivals" | "sh";
  /** For `sh`: the script. */
  kind: string;
  spec?: unknown;
  /** The specification comes from the configuration, not from a ledger. */
  isRestated?: boolean;
  /** For `sweep`: the network, and the containers that are still valid. */
  network?: string;
  valid?: string[];
}

/**
 * Runs the steps in one process, with the container of the environment's CNI_NETNS. Returns for each "judged", "applied", the differences, "repaired", "removed", "undone", "swept", what the
 * script wrote, or the text of the error. What they say on stderr is added to `warnings`.
 */
export async function drive(
  machine: Machine,
  steps: Step[],
  env: Record<string, string> = {},
  warnings: string[] = [],
): Promise<unknown[]> {
  const command = [process.execPath, resolve(import.meta.dir, "resource-driver.ts")];
  const { code, stdout, stderr } = await machine.run(command, { stdin: JSON.stringify(steps), env });
  if (code !== 0) throw new Error(`resource driver: ${stderr}`);
  warnings.push(stderr);
  return JSON.parse(stdout);
}
