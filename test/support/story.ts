/** A plugin without a kernel: what it restates for an attachment that prevResult describes, and what it refuses. */
import { parsePrevResult } from "../../src/cni/result-versions.ts";
import type { Result } from "../../src/cni/result.ts";
import type { Host } from "../../src/contract/host.ts";
import type { PluginConfig, PluginDefinition } from "../../src/contract/plugin.ts";
import { restate } from "../../src/engine/restating.ts";
import { loadRecorded } from "../../src/plugins/table.ts";

const NETNS = "/run/netns/c1";

export interface Told {
  /** Each resource's kind and specification. */
  list: [kind: string, spec: unknown][];
  result: Result;
}

/** The host for a container whose namespace is gone: a plugin that looks at it fails. */
const nowhere = { container: undefined } as unknown as Host;

function read(type: string, written: Record<string, unknown>): [PluginDefinition<PluginConfig>, PluginConfig] {
  const plugin = loadRecorded(type)!;
  return [plugin, plugin.validate({ cniVersion: "1.1.0", name: "net", type, ...written })];
}

/** With `make`, what ADD would make; names and addresses are those of prevResult then, too. */
export function tell(
  type: string,
  purpose: "make" | "check" | "undo" | "plan",
  written: Record<string, unknown>,
  cniArgs = "",
  host: Host = nowhere,
): Told {
  const [plugin, conf] = read(type, written);
  const invocation = {
    command: ({ make: "ADD", check: "CHECK", undo: "DEL", plan: "ADD" } as const)[purpose],
    containerId: "c1",
    ifName: "eth0",
    netnsPath: NETNS,
    cniArgs,
    path: "/opt/cni/bin",
    stdin: JSON.stringify(written),
  };
  const call = {
    plugin: type,
    conf,
    invocation,
    prevResult: () => parsePrevResult({ ...conf, prevResult: written["prevResult"] }),
    host,
  };
  let result: Result | undefined;
  const add = purpose === "plan" ? plugin.foresee ?? plugin.add : plugin.add;
  const resources = restate(call, purpose as Exclude<typeof purpose, "make">, (at) => result = add(at));
  return { list: resources.map(({ kind, spec }) => [kind.kind, spec]), result: result! };
}

/** What `judge` says of an ADD with this configuration; undefined when nothing is wrong. */
export function refusal(type: string, written: Record<string, unknown>, cniArgs = ""): string | undefined {
  const [plugin, conf] = read(type, written);
  const call = { ifName: "eth0", cniArgs, stdin: JSON.stringify(written), prevResult: parsePrevResult(conf) };
  try {
    plugin.judge?.(conf, call);
  } catch (error) {
    return (error as Error).message;
  }
  return undefined;
}
