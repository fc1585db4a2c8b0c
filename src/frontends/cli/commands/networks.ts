/** `patchbay networks`. */
import { summarizeNetworks } from "../../../runtime/network-summary.ts";
import { type UnconfiguredNetwork, unconfiguredNetworks } from "../../../runtime/unconfigured-networks.ts";
import { exists } from "../../../ffi/files.ts";
import type { Command } from "../command.ts";
import { givenNetwork, runtimeOf, runtimeOptions } from "../network-arguments.ts";
import { isNamedButMissing } from "../../../runtime/paths.ts";
import { misnamedIn, noneIn, remarksOn } from "../network-remarks.ts";
import { nextSteps } from "../../answers/next-steps.ts";
import { errorText } from "../../../cni/error.ts";
import { print, printJson, printToStderr } from "../../../process/output.ts";
import { counted } from "../../../contract/counted.ts";
import { readable, textTable } from "../text-table.ts";
import type { NetworkSummary, Pool } from "../../../contract/summaries.ts";

export const networksCommand: Command = {
  summary: "list all networks or one, their addresses, and what is broken or missing (also: ls)",
  operands: "[NETWORK]",
  operandCount: [0, 1],
  needsRoot: true,
  options: {
    json: { help: "print JSON" },
    ...runtimeOptions,
  },
  notes:
    "The command tells of addresses that overlap with another network's, or with a route of the host, and of options\n" +
    "without effect. State: full when a pool has no address left, differs when the host's part is not as ADD made it.\n" +
    "Plugins that are not part of patchbay are not called.\n",
  exitStatus:
    "1 when the state of a network is not ok, and when something is missing, as a directory that is named and does not exist.",
  run(given) {
    const runtime = runtimeOf(given),
      directory = runtime.configDirectory,
      [wanted] = given.operands;
    const configured = summarizeNetworks(runtime);
    const unconfigured = unconfiguredNetworks(runtime, configured.flatMap(({ name }) => name ?? []));
    const isWanted = ({ name }: { name?: string }) => wanted === undefined || name === wanted;
    const networks = configured.filter(isWanted), others = unconfigured.filter(isWanted);
    // It throws, and says which there are.
    if (wanted !== undefined && networks.length + others.length === 0) givenNetwork(given);
    const isEmpty = networks.length + others.length === 0;
    if (given.has("json")) {
      const ofFiles = networks.map((network) => ({ ...network, problems: network.problems.map(errorText) }));
      printJson([...ofFiles, ...others.map(inJson)]);
    } else {
      const misnamed = wanted === undefined ? misnamedIn(directory) : "";
      print((isEmpty ? noneIn(directory) : tableOf(networks, others, directory)) + misnamed);
    }
    if (isNamedButMissing(directory)) {
      if (given.has("json")) printToStderr(`patchbay networks: ${noneIn(directory).trimEnd()}`);
      return 1;
    }
    return networks.every((network) => network.state === "ok") ? 0 : 1;
  },
};

/** As the other networks, without a file. */
function inJson(network: UnconfiguredNetwork) {
  return {
    ...network,
    state: "in use",
    plugins: [],
    pools: [],
    fixedAddresses: [],
    problems: [],
    differences: [],
    warnings: [],
  };
}

function tableOf(
  networks: readonly NetworkSummary<unknown>[],
  others: readonly UnconfiguredNetwork[],
  directory: string,
): string {
  const rows = networks.flatMap((network) => {
    const { name = "?", file, cniVersion = "", plugins, pools } = network;
    const first = [name, cniVersion, plugins.join(", "), network.state, ...cellsOf(network), file];
    return [first, ...pools.slice(1).map((pool) => ["", "", "", "", ...cellsOfPool(pool), ""])];
  });
  for (const { name, leases } of others) rows.push([name, "", "", "in use", "", String(leases), "", "(none)"]);
  const head = ["network", "version", "plugins", "state", "subnets", "leased", "free", "file"];
  const below = networks.flatMap((network) => {
    const { name, file, problems } = network, subject = name === undefined ? file : `network ${name}`;
    return [...problems, ...remarksOn(network)].map((line) =>
      [`${subject}: ${errorText(line)}\n`, ...nextSteps(line, name).map((step) => `  ${step}\n`)].join("")
    );
  });
  for (const { name, attachments, leases } of others) {
    const counts = `${counted(attachments, "attachment")} and ${
      counted(leases, "lease")
    }, and no file in ${directory}`;
    const step = attachments > 0 ? "" : `; 'patchbay network remove ${name}' ends it`;
    below.push(`network ${name}: ${counts}${step}\n`);
  }
  if (!exists(directory)) below.push(noneIn(directory));
  return [textTable([head, ...rows]), ...below].join("");
}

function cellsOf({ pools: [first], fixedAddresses }: NetworkSummary<unknown>): string[] {
  return first === undefined ? [fixedAddresses.join(", "), "", ""] : cellsOfPool(first);
}

function cellsOfPool({ subnets, leased, free }: Pool): string[] {
  return [subnets.join(", "), String(leased), readable(free)];
}
