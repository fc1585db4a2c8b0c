/** The commands of `patchbay` on a machine, with the network files of a directory. */
import { afterAll, expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import type { Machine, Outcome } from "./machine.ts";
import { PATCHBAY } from "./plugins.ts";

/** A directory of network files for the tests of a file, which goes with them. */
export function networkFiles() {
  const directory = mkdtempSync(`${tmpdir()}/networks-`);
  afterAll(() => rmSync(directory, { recursive: true }));
  const configure = (name: string, plugins: readonly object[], cniVersion = "1.1.0") =>
    writeFileSync(`${directory}/${name}.conflist`, JSON.stringify({ cniVersion, name, plugins }));
  return { directory, configure };
}

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
