/** `patchbay node`: the agent of a cluster's node. */
import { printToStderr } from "../../../ffi/terminal.ts";
import { DATA_DIRECTORY } from "../../../services/node/paths.ts";
import { CONFIGURATION_FILE } from "../../../cluster/configuration.ts";
import { attachedOfPool } from "../attached-of-pool.ts";
import { type Command, type GivenArguments, UsageError } from "../command.ts";
import { movingAction, movingNotes, movingOptions } from "../moving-nodes.ts";

export const nodeCommand: Command = {
  runsByItself: true,
  stays: true,
  summary: "stay, and claim blocks of addresses for this host from pools of many hosts",
  operands: "[sync|adopt|move|export] [NETWORK]",
  operandCount: [0, 2],
  needsRoot: true,
  options: {
    config: { value: "FILE", isNeverEmpty: true, help: `which store and which node (${CONFIGURATION_FILE})` },
    "data-dir": {
      value: "DIR",
      isNeverEmpty: true,
      help: `what it keeps over boots, and leases (${DATA_DIRECTORY})`,
    },
    ...movingOptions,
  },
  notes: [
    "sync   do what is due, and end: for timers, and hosts without a service",
  ].map((line) => `  ${line}\n`).join("") + movingNotes,
  examples: [{ args: "sync", what: "take the blocks that the files in /etc/patchbay give to this host" }],
  run(given) {
    const moving = movingAction(given);
    if (moving !== undefined) return moving;
    const [action] = given.operands, { runAgent, syncNode } = running();
    if (action === undefined) return runAgent(optionsOf(given));
    if (action === "sync") return syncNode(optionsOf(given));
    throw new UsageError(`node knows sync, not ${action}`);
  },
};

function running() {
  return require("../../../services/node/run.ts") as typeof import("../../../services/node/run.ts");
}

function optionsOf(given: GivenArguments) {
  return {
    config: given.value("config"),
    dataDirectory: given.value("data-dir"),
    attachedAddresses: attachedOfPool,
    say: (text: string) => printToStderr(`patchbay node: ${text}`),
  };
}
