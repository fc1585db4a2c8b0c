/** Resources by themselves, without a plugin, inside a machine. */
import { resolve } from "node:path";
import type { Machine } from "./machine.ts";

export interface Step {
  verb: "apply" | "verify" | "repair" | "remove" | "sweep";
  kind: string;
  spec?: unknown;
  /** Told from the configuration, not read from a ledger. */
  isRestated?: boolean;
  /** For `sweep`: the network, and the containers that stay. */
  network?: string;
  valid?: string[];
}

/**
 * Runs the steps in one process. Answers for each "applied", the differences, "repaired", "removed", "swept", or the
 * error's text.
 */
export async function drive(machine: Machine, steps: Step[], env: Record<string, string> = {}): Promise<unknown[]> {
  const command = [process.execPath, resolve(import.meta.dir, "resource-driver.ts")];
  const { code, stdout, stderr } = await machine.run(command, { stdin: JSON.stringify(steps), env });
  if (code !== 0) throw new Error(`resource driver: ${stderr}`);
  return JSON.parse(stdout);
}
