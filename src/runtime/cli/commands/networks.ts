/** `patchbay networks`. */
import { type NetworkSummary, summarizeNetworks } from "../../network-summary.ts";
import type { Command } from "../command.ts";
import { configDirectoryOf, runtimeOf, runtimeOptions } from "../network-arguments.ts";
import { print, printLine } from "../output.ts";
import { readable, textTable } from "../text-table.ts";

export const networksCommand: Command = {
  summary: "list all networks, their addresses, and what is broken or missing (also: ls)",
  operands: "",
  operandCount: [0, 0],
  needsRoot: true,
  options: {
    json: { help: "print JSON" },
    "config-dir": runtimeOptions["config-dir"]!,
    "plugin-path": runtimeOptions["plugin-path"]!,
  },
  notes:
    "Exit status: 1 when something is broken or missing. Plugins that are not part of patchbay are not called.\n",
  run(given) {
    const directory = configDirectoryOf(given);
    const networks = summarizeNetworks(directory, runtimeOf(given).pluginPath);
    if (given.has("json")) printLine(JSON.stringify(networks, null, 2));
    else if (networks.length === 0) printLine(`no networks in ${directory}`);
    else print(tableOf(networks));
    return networks.every(({ problems }) => problems.length === 0) ? 0 : 1;
  },
};

function tableOf(networks: readonly NetworkSummary[]): string {
  const rows = networks.flatMap((network) => {
    const { name = "?", file, cniVersion = "", plugins, pools, problems } = network;
    const state = problems.length === 0 ? "ok" : "broken";
    const first = [name, cniVersion, plugins.join(", "), state, ...cellsOf(pools[0]), file];
    return [first, ...pools.slice(1).map((pool) => ["", "", "", "", ...cellsOf(pool), ""])];
  });
  const head = ["network", "version", "plugins", "state", "subnets", "leased", "free", "file"];
  const below = networks.flatMap(({ name, file, problems }) =>
    problems.map((problem) => `${name === undefined ? file : `network ${name}`}: ${problem}\n`)
  );
  return [textTable([head, ...rows]), ...below].join("");
}

function cellsOf(pool: NetworkSummary["pools"][number] | undefined): string[] {
  return pool === undefined ? ["", "", ""] : [pool.subnets.join(", "), String(pool.leased), readable(pool.free)];
}
