/** The commands of `patchbay` on a machine, with the network files of a directory. */
import { expect } from "bun:test";
import type { Machine, Outcome } from "./machine.ts";
import { PATCHBAY } from "./plugins.ts";

/** The machine and the directory may be made only after this. */
export function commandsOn(machine: () => Machine, networks: () => string) {
  const patchbay = (args: readonly string[], env: Record<string, string> = {}): Promise<Outcome> =>
    machine().run([PATCHBAY, ...args], { env: { NETCONFPATH: networks(), ...env } });
  /** Returns what a command prints that has to succeed. */
  const must = async (...args: string[]): Promise<string> => {
    const outcome = await patchbay(args);
    expect({ args, ...outcome }).toMatchObject({ args, code: 0 });
    return outcome.stdout;
  };
  // deno-lint-ignore no-explicit-any
  const json = async (...args: string[]): Promise<any> => JSON.parse((await patchbay([...args, "--json"])).stdout);
  return { patchbay, must, json };
}
