/** `patchbay node`: the agent of a cluster's node, and what persons ask of nodes. */
import { printToStderr } from "../../../ffi/terminal.ts";
import { DATA_DIRECTORY } from "../../../services/node/paths.ts";
import { counted } from "../../../contract/counted.ts";
import { print, printJson, printLine } from "../../../process/output.ts";
import { attachedOfPool } from "../attached-of-pool.ts";
import { type Command, type ExitStatus, type GivenArguments, UsageError } from "../command.ts";
import { movingAction, movingNotes, movingOptions } from "../moving-nodes.ts";
import { nodeCheckText, nodesText } from "../shown-nodes.ts";
import { areWrong, clusterOption } from "../shown-pools.ts";

export const nodeCommand: Command = {
  runsByItself: true,
  stays: true,
  printsAfterwards: true,
  summary: "stay, and claim blocks of addresses for this host from pools of many hosts; list, check and remove nodes",
  operands: "[sync|list|check|drain|remove|replace|adopt|import|move|export] [NODE|NETWORK]",
  operandCount: [0, 2],
  // Not the agent itself: its unit takes root's capabilities away.
  needsRoot: ({ operands: [action] }) => ["check", "replace", "adopt", "move"].includes(action ?? ""),
  options: {
    ...clusterOption,
    "data-dir": {
      value: "DIR",
      isNeverEmpty: true,
      help: `what it keeps over boots, and leases (${DATA_DIRECTORY})`,
    },
    json: { help: "list, check: print JSON" },
    over: { help: "check: take the alarm away, when everybody has looked since and nobody disagrees" },
    undo: { help: "drain: claim again" },
    ...movingOptions,
    "it-is-off": {
      help: "remove, replace: the machine that is NODE in the store is off, for good or until its next boot",
    },
  },
  notes: [
    "sync           do what is due, and end: for timers, and hosts without a service",
    "list           print all nodes, and the alarm",
    "check [NODE]   say how a node stands, and what is wrong: in the store and, of this host, also here",
    "drain NODE     claim nothing more, and give blocks back as they become empty",
    "remove NODE    after 90 s in which it may object, give the blocks of a machine that is off to others",
    "replace NODE   on another machine: it is NODE from now on, and the one that was it is off",
  ].map((line) => `  ${line}\n`).join("") + movingNotes +
    "remove and replace may be interrupted, and repeated. remove without --it-is-off frees only what a node had before it\n" +
    "was removed.\n",
  exitStatus:
    "1 also when list or check find something wrong, when sync cannot do all that is due, and when a node that\n" +
    "is to be removed lives.",
  examples: [
    { args: "sync", what: "take the blocks that the files in /etc/patchbay give to this host" },
    { args: "check", what: "why this host gets no block" },
    { args: "remove n3 --it-is-off", what: "n3 has burnt: its blocks are free for others" },
  ],
  run(given) {
    const [action, node] = given.operands, moving = movingAction(given);
    if (moving !== undefined) return moving;
    if (action === undefined) return running().runAgent(optionsOf(given));
    const work = Object.hasOwn(actions, action) ? actions[action]! : undefined;
    if (work === undefined) {
      throw new UsageError(
        `node knows sync, list, check, drain, remove, replace, adopt, import, move and export, not ${action}`,
      );
    }
    const isOfAll = action === "sync" || action === "list";
    if (isOfAll && node !== undefined) throw new UsageError(`"${node}" is one too many`);
    if (!isOfAll && action !== "check" && node === undefined) {
      throw new UsageError(`node ${action} needs the NODE's name`);
    }
    return work(given, node ?? "");
  },
};

const actions: Record<string, (given: GivenArguments, node: string) => ExitStatus> = {
  sync: (given) => running().syncNode(optionsOf(given)),
  list: (given) =>
    nodes().listNodes(given.value("config")).then((found) => {
      if (given.has("json")) printJson(found);
      else print(nodesText(found));
      const isWrong = ({ isContested, conflicts, state }: typeof found.nodes[number]) =>
        isContested || conflicts.length > 0 || state === undefined;
      return found.alarm === undefined && found.problems.length === 0 && !found.nodes.some(isWrong) ? 0 : 1;
    }),
  check(given, node) {
    const operator = require(
      "../../../services/node/operator/check.ts",
    ) as typeof import("../../../services/node/operator/check.ts");
    if (given.has("over")) {
      return operator.endAlarm(given.value("config")).then((wasThere) => {
        printLine(wasThere ? "the alarm is over, and taken away: nodes claim again" : "there is no alarm");
        return 0;
      });
    }
    return operator.checkNode(onHost(given), node || undefined).then((found) => {
      if (given.has("json")) printJson(found);
      else print(nodeCheckText(found));
      return areWrong(found.findings) ? 1 : 0;
    });
  },
  drain: (given, node) =>
    nodes().drainNode(given.value("config"), node, given.has("undo")).then((hasChanged) => {
      const already = hasChanged ? "" : " already";
      printLine(
        given.has("undo")
          ? `node ${node} is joined${already}`
          : `node ${node} is draining${already}: 'patchbay node check ${node}' says which blocks it still has`,
      );
      return 0;
    }),
  remove(given, node) {
    const operator = require(
      "../../../services/node/operator/removal.ts",
    ) as typeof import("../../../services/node/operator/removal.ts");
    const secondsToObject = operator.SECONDS_TO_OBJECT;
    return operator.removeNode({ ...byPerson(given, node), secondsToObject }).then(({ outcome, freed }) => {
      const count = `${counted(freed.length, "block")} freed`;
      if (outcome === "only the dead") {
        printLine(`node ${node} is not removed; from before an earlier removal: ${count}`);
      } else if (outcome === "removed") printLine(`node ${node} is removed: ${count}`);
      else {printLine(
          `node ${node} runs: it has given up all that it had, and joined anew without containers; ${count}`,
        );}
      return outcome === "came back" ? 1 : 0;
    });
  },
  replace(given, node) {
    const operator = require(
      "../../../services/node/operator/replacement.ts",
    ) as typeof import("../../../services/node/operator/replacement.ts");
    const { SECONDS_TO_OBJECT: secondsToObject } = require(
      "../../../services/node/operator/removal.ts",
    ) as typeof import("../../../services/node/operator/removal.ts");
    const here = { dataDirectory: given.value("data-dir"), attachedAddresses: attachedOfPool, secondsToObject };
    return operator.replaceNode({ ...byPerson(given, node), ...here }).then(({ keepsBlocks, freed }) => {
      const what = keepsBlocks
        ? "with the blocks that it had: containers here have their addresses"
        : `and begins without blocks; ${counted(freed.length, "block")} freed`;
      printLine(`node ${node} is this machine now, ${what}; start its agent: 'patchbay node'`);
      return 0;
    });
  },
};

function running() {
  return require("../../../services/node/run.ts") as typeof import("../../../services/node/run.ts");
}

function nodes() {
  return require(
    "../../../services/node/operator/nodes.ts",
  ) as typeof import("../../../services/node/operator/nodes.ts");
}

function onHost(given: GivenArguments) {
  return { config: given.value("config"), dataDirectory: given.value("data-dir") };
}

function byPerson(given: GivenArguments, node: string) {
  const say = (text: string) => printToStderr(`patchbay node: ${text}`);
  return { config: given.value("config"), node, isOff: given.has("it-is-off"), say };
}

function optionsOf(given: GivenArguments) {
  return {
    ...onHost(given),
    attachedAddresses: attachedOfPool,
    say: (text: string) => printToStderr(`patchbay node: ${text}`),
  };
}
