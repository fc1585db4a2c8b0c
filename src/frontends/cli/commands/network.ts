/** `patchbay network remove NETWORK`. */
import { checkNetworkName } from "../../../cni/invocation.ts";
import { throwJoined } from "../../../contract/failures.ts";
import { hasTraces, type Removal, removeNetwork } from "../../../runtime/network-removal.ts";
import type { Runtime } from "../../../runtime/plugin-call.ts";
import { attachmentsToNetwork, networkWithoutPlugins, recordedNetwork } from "../../../runtime/records.ts";
import type { Network } from "../../../runtime/conf/network.ts";
import { type Command, UsageError } from "../command.ts";
import { networkOrRecorded, runtimeOf, runtimeOptions } from "../network-arguments.ts";
import { printJson, printLine, printToStderr } from "../../../process/output.ts";

export const networkCommand: Command = {
  runsByItself: true,
  printsAfterwards: true,
  summary: "remove what a network has left on the host: its bridge, its leases, its records",
  operands: "remove NETWORK",
  operandCount: [1, 2],
  needsRoot: true,
  options: {
    "dry-run": { help: "only list what would be removed" },
    leases: { help: "also leases that no record explains; containers of other programs may have them" },
    json: { help: "print JSON" },
    ...runtimeOptions,
  },
  notes:
    "The command refuses while a container is attached. The network's file may be gone already; if it is there, it stays.\n" +
    "A bridge stays when something else uses it, or when patchbay did not make it for this network. What all networks\n" +
    "share stays, too: sysctls of forwarding, and chains of iptables such as CNI-FORWARD, which are as Go's plugins leave\n" +
    'them and are listed; with "disableGC" also what no record names.\n',
  examples: [{ args: "remove first --dry-run", what: "list what the network first has left" }],
  run(given) {
    const [action, name] = given.operands, runtime = runtimeOf(given), isDryRun = given.has("dry-run");
    if (action !== "remove") {
      throw new UsageError(`network knows remove, not ${action}; 'patchbay ls' lists networks`);
    }
    if (name === undefined) throw new UsageError("network remove needs the NETWORK's name");
    checkNetworkName(name);
    const { network } = networkOrRecorded(given, name, () => tracedNetwork(runtime, name));
    const removal = removeNetwork(runtime, network, { isDryRun, withLeases: given.has("leases") });
    if (given.has("json")) printJson(inJson(removal));
    else describe(removal, isDryRun ? "would remove" : "removed").forEach(printLine);
    if (network.path !== undefined) printToStderr(`${network.path} stays: the next 'add' makes the network again`);
    if (network.disableGC) printToStderr(`network ${name} has "disableGC": what no record names stays`);
    if (removal.isUnconfigured) {
      printToStderr(
        `no file and no record configures the network: leases in a "dataDir" of its own are not looked for`,
      );
    }
    throwJoined(removal.failures, "\n");
    return 0;
  },
};

/** For a network without a file; undefined when nothing is left of it. */
function tracedNetwork(runtime: Runtime, name: string): Network | undefined {
  const [attachment] = attachmentsToNetwork(runtime, name);
  const network = attachment && recordedNetwork(runtime, attachment) || networkWithoutPlugins(name);
  return hasTraces(runtime, network) ? network : undefined;
}

function describe({ attachments, retired }: Removal, verb: string): string[] {
  const lines = [
    ...attachments.map(({ ifName, containerId }) => `${verb} ${ifName} of container ${containerId}`),
    ...retired.map(({ what, staysBecause }) =>
      staysBecause === undefined ? `${verb} ${what}` : `${what} stays: ${staysBecause}`
    ),
  ];
  return lines.length > 0 ? lines : ["nothing is left of it"];
}

function inJson({ attachments, retired }: Removal) {
  return {
    attachments: attachments.map(({ containerId, ifName }) => ({ containerId, ifName })),
    removed: retired.filter(({ staysBecause }) => staysBecause === undefined).map(({ what }) => what),
    stays: retired.filter(({ staysBecause }) => staysBecause !== undefined)
      .map(({ what, staysBecause }) => ({ what, because: staysBecause })),
  };
}
