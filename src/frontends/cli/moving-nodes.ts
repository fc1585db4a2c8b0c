/** `patchbay node adopt`, `move` and `export`: a host's addresses go over into a cluster, or from one store to another. */
import { CONFIGURATION_FILE } from "../../cluster/configuration.ts";
import { field, isObject } from "../../cni/json.ts";
import { counted } from "../../contract/counted.ts";
import { DEFAULT_DATA_DIRECTORY, leaseDirectory } from "../../ipam/go-directory.ts";
import { planRangeSets, type RangeConf } from "../../ipam/range.ts";
import { printLine, printToStderr } from "../../process/output.ts";
import { loadNetwork } from "../../runtime/conf/load.ts";
import type { Network } from "../../runtime/conf/network.ts";
import { configDirectoryOfCaller } from "../../runtime/paths.ts";
import { attachedOfPool } from "./attached-of-pool.ts";
import { type ExitStatus, type GivenArguments, type OptionTable, UsageError } from "./command.ts";
import { fileOption, importNvIpam } from "./imported-pools.ts";
import { runtimeOptions } from "./network-arguments.ts";

export const movingOptions: OptionTable = {
  pool: {
    value: "POOL",
    isNeverEmpty: true,
    help: "adopt: the pool whose blocks the network's addresses are in; import: which",
  },
  to: {
    value: "FILE",
    isNeverEmpty: true,
    help: "move: the configuration with the other store; export: a directory for pools.d and nodes.d",
  },
  ...fileOption,
  "config-dir": { ...runtimeOptions["config-dir"]!, help: `adopt: ${runtimeOptions["config-dir"]!.help}` },
};

export const movingNotes = [
  "adopt NETWORK   take what host-local gives out for NETWORK over into --pool: containers keep their addresses",
  "move            claim in the store of --to what this host has in that of --config: containers keep their addresses",
  "import nv-ipam  print a pool with the blocks of one of nv-ipam's, --pool, which is in --file",
  "export          write what the store has as files of a roster, into the directory --to",
].map((line) => `  ${line}\n`).join("");

/** Undefined for another action. */
export function movingAction(given: GivenArguments): ExitStatus | undefined {
  const [action, network, other] = given.operands;
  if (action === "adopt") {
    if (network === undefined || other !== undefined) throw new UsageError("node adopt needs the NETWORK's name");
    return adopt(given, network);
  }
  if (action === "import") {
    if (network !== "nv-ipam" || other !== undefined) throw new UsageError("node import knows nv-ipam");
    return importNvIpam(given);
  }
  if (action !== "move" && action !== "export") return undefined;
  if (network !== undefined) throw new UsageError(`"${network}" is one too many`);
  return action === "move" ? move(given) : exportFiles(given);
}

function needed(given: GivenArguments, option: string): string {
  const value = given.value(option);
  if (value === undefined) throw new UsageError(`node ${given.operands[0]} needs --${option}`);
  return value;
}

function onHost(given: GivenArguments) {
  return {
    config: given.value("config"),
    dataDirectory: given.value("data-dir"),
    attachedAddresses: attachedOfPool,
    say: (text: string) => printToStderr(`patchbay node: ${text}`),
  };
}

function adopt(given: GivenArguments, name: string): ExitStatus {
  const pool = needed(given, "pool"), directory = given.value("config-dir") ?? configDirectoryOfCaller();
  const network = loadNetwork(directory, name), { leases, ranges } = hostLocalOf(network, pool);
  const { adoptLeases } = require(
    "../../services/node/moving/adoption.ts",
  ) as typeof import("../../services/node/moving/adoption.ts");
  return adoptLeases({ ...onHost(given), pool, network: name, directory: leases, ranges }).then((adopted) => {
    const { node, store, blocks, kept, closed, isByHand } = adopted;
    printLine(
      `network ${name}: ${counted(kept.length, "lease")} moved into pool ${pool}; host-local gives out none of the ` +
        `blocks' ${closed} addresses any more`,
    );
    printLine(
      isByHand
        ? `write into nodes.d/${node}.json on every host: { "blocks": { "${pool}": [${blocks.join(", ")}] } }`
        : `node ${node} has ${counted(blocks.length, "block")} of the pool in ${store}: ${blocks.join(", ")}`,
    );
    if (ranges.length > 0) printLine(`in ${network.path}: "ipam": { "type": "patchbay-cluster", "pool": "${pool}" }`);
    printLine("then start the agent: 'patchbay node'");
    return 0;
  });
}

function move(given: GivenArguments): ExitStatus {
  const to = needed(given, "to");
  const { moveNode } = require(
    "../../services/node/moving/move.ts",
  ) as typeof import("../../services/node/moving/move.ts");
  return moveNode({ ...onHost(given), to }).then(({ node, to: store, blocks, waiting }) => {
    printLine(
      `node ${node} has ${counted(blocks.length, "block")} in ${store}${blocks.length > 0 ? ":" : ""} ${
        blocks.join(", ")
      }`.trimEnd(),
    );
    if (waiting.length > 0) printLine(`not there yet: ${waiting.join(", ")}`);
    printLine(`next: cp ${to} ${given.value("config") ?? CONFIGURATION_FILE}, and start the agent: 'patchbay node'`);
    return 0;
  });
}

function exportFiles(given: GivenArguments): ExitStatus {
  const to = needed(given, "to");
  const { exportRoster } = require(
    "../../services/node/moving/export.ts",
  ) as typeof import("../../services/node/moving/export.ts");
  return exportRoster(given.value("config"), to).then(({ store, pools, nodes }) => {
    printLine(`${store}: ${counted(pools.length, "pool")} and ${counted(nodes.length, "node")} written into ${to}`);
    printLine("next: copy it to every host, and on each: stop the agent, 'patchbay node move --to FILE'");
    return 0;
  });
}

interface HostLocal {
  /** The network's directory. */
  leases: string;
  /** None where the configuration says the pool already. */
  ranges: { start: Uint8Array; end: Uint8Array }[];
}

function hostLocalOf({ name, cniVersion, plugins, path }: Network, pool: string): HostLocal {
  for (const { config } of plugins) {
    const ipam = field(config, "ipam");
    if (!isObject(ipam)) continue;
    const leases = leaseDirectory(String(ipam["dataDir"] ?? DEFAULT_DATA_DIRECTORY), name);
    if (ipam["type"] === "patchbay-cluster" && ipam["pool"] === pool) return { leases, ranges: [] };
    if (ipam["type"] !== "host-local") continue;
    const single = ipam["subnet"] === undefined ? [] : [[ipam as RangeConf]];
    const several = ipam["ranges"];
    const sets = planRangeSets([...single, ...Array.isArray(several) ? several as RangeConf[][] : []], cniVersion);
    return { leases, ranges: sets.flat() };
  }
  throw new Error(`${path}: no plugin of network ${name} has "ipam" of host-local`);
}
