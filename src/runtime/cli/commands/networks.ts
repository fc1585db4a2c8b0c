/** `patchbay networks`. */
import { summarizeNetworks } from "../../network-summary.ts";
import { type UnconfiguredNetwork, unconfiguredNetworks } from "../../unconfigured-networks.ts";
import { exists } from "../../../ffi/files.ts";
import type { Command } from "../command.ts";
import { runtimeOf, runtimeOptions } from "../network-arguments.ts";
import { isNamedButMissing } from "../../paths.ts";
import { nextSteps } from "../next-steps.ts";
import { print, printLine, printToStderr } from "../output.ts";
import { counted } from "../../../contract/counted.ts";
import { readable, textTable } from "../text-table.ts";
import type { NetworkSummary } from "../../../contract/shown.ts";

export const networksCommand: Command = {
  summary: "list all networks, their addresses, and what is broken or missing (also: ls)",
  operands: "",
  operandCount: [0, 0],
  needsRoot: true,
  options: {
    json: { help: "print JSON" },
    ...runtimeOptions,
  },
  notes: "The command tells of addresses that overlap with another network's, or with a route of the host.\n" +
    "Plugins that are not part of patchbay are not called.\n",
  exitStatus: "1 when something is broken or missing, as a directory that is named and does not exist.",
  run(given) {
    const runtime = runtimeOf(given),
      directory = runtime.configDirectory,
      networks = summarizeNetworks(runtime);
    const others = unconfiguredNetworks(runtime, networks.flatMap(({ name }) => name ?? []));
    const isEmpty = networks.length + others.length === 0;
    if (given.has("json")) printLine(JSON.stringify([...networks, ...others.map(inJson)], null, 2));
    else print(isEmpty ? noneIn(directory) : tableOf(networks, others, directory));
    if (isNamedButMissing(directory)) {
      if (given.has("json")) printToStderr(`patchbay networks: ${noneIn(directory).trimEnd()}`);
      return 1;
    }
    return networks.every(({ problems }) => problems.length === 0) ? 0 : 1;
  },
};

function noneIn(directory: string): string {
  const step = "it does not exist; --config-dir or $NETCONFPATH names another directory";
  return `no networks in ${directory}\n${exists(directory) ? "" : `  ${step}\n`}`;
}

/** As the other networks, without a file. */
function inJson(network: UnconfiguredNetwork) {
  return { ...network, plugins: [], pools: [], problems: [], warnings: [] };
}

function tableOf(
  networks: readonly NetworkSummary[],
  others: readonly UnconfiguredNetwork[],
  directory: string,
): string {
  const rows = networks.flatMap((network) => {
    const { name = "?", file, cniVersion = "", plugins, pools, problems } = network;
    const state = problems.length === 0 ? "ok" : "broken";
    const first = [name, cniVersion, plugins.join(", "), state, ...cellsOf(pools[0]), file];
    return [first, ...pools.slice(1).map((pool) => ["", "", "", "", ...cellsOf(pool), ""])];
  });
  for (const { name, leases } of others) rows.push([name, "", "", "in use", "", String(leases), "", "(none)"]);
  const head = ["network", "version", "plugins", "state", "subnets", "leased", "free", "file"];
  const below = networks.flatMap(({ name, file, problems, warnings }) =>
    [...problems, ...warnings].map((line) =>
      [
        `${name === undefined ? file : `network ${name}`}: ${line}\n`,
        ...nextSteps(line, name).map((step) => `  ${step}\n`),
      ]
        .join("")
    )
  );
  for (const { name, attachments, leases } of others) {
    const counts = `${counted(attachments, "attachment")} and ${
      counted(leases, "lease")
    }, and no file in ${directory}`;
    const step = attachments > 0 ? "" : `; 'patchbay network remove ${name}' ends it`;
    below.push(`network ${name}: ${counts}${step}\n`);
  }
  if (networks.length === 0) below.push(noneIn(directory));
  return [textTable([head, ...rows]), ...below].join("");
}

function cellsOf(pool: NetworkSummary["pools"][number] | undefined): string[] {
  return pool === undefined ? ["", "", ""] : [pool.subnets.join(", "), String(pool.leased), readable(pool.free)];
}
