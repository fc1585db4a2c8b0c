/** A container as a runtime tells its hooks of: a process in a network namespace of its own, with a bundle. */
import type { Machine, Outcome } from "./machine.ts";
import { startInOwnNetns } from "./own-netns.ts";
import { PATCHBAY } from "./plugins.ts";

export const CONFIGS = "/run/networks";

export interface Hooked extends AsyncDisposable {
  readonly id: string;
  readonly pid: number;
  readonly bundle: string;
  state(changes?: Record<string, unknown>): Record<string, unknown>;
  inside(script: string): Promise<string>;
  /** Ends the process, and with it the namespace. */
  end(): Promise<void>;
}

export async function writeNetwork(machine: Machine, name: string, plugins: unknown[]): Promise<void> {
  const stdin = JSON.stringify({ cniVersion: "1.1.0", name, plugins });
  await machine.sh(`mkdir -p ${CONFIGS} && cat >${CONFIGS}/${name}.conflist`, { stdin });
}

/** `namespace` is the entry of type network in config.json; null for none. */
export async function startHooked(machine: Machine, id: string, namespace: unknown = {}): Promise<Hooked> {
  const process = await startInOwnNetns(machine), { pid } = process;
  const bundle = `/run/bundles/${id}-${pid}`;
  const namespaces = namespace === null ? [] : [{ type: "network", ...namespace as object }];
  const stdin = JSON.stringify({ ociVersion: "1.0.2", linux: { namespaces } });
  await machine.sh(`mkdir -p ${bundle}; cat >${bundle}/config.json`, { stdin });
  const end = async () => {
    process.kill("SIGKILL");
    await process.exited;
  };
  return {
    id,
    pid,
    bundle,
    state: (changes) => ({ ociVersion: "1.0.2", id, status: "creating", pid, bundle, ...changes }),
    inside: (script) => machine.sh(`nsenter --net=/proc/${pid}/ns/net sh -ec '${script}'`),
    end,
    [Symbol.asyncDispose]: end,
  };
}

/** Calls the hook with a state, as text or as what is printed of it; `before` is a tracer. */
export function hook(
  machine: Machine,
  words: readonly string[],
  state: unknown,
  before: readonly string[] = [],
): Promise<Outcome> {
  const stdin = typeof state === "string" ? state : JSON.stringify(state);
  return machine.run([...before, PATCHBAY, "hook", ...words], { stdin, env: { NETCONFPATH: CONFIGS } });
}

export const silent = { code: 0, stdout: "", stderr: "" };
