/** `patchbay pool`: pools of addresses for many hosts. */
import { isObject, parseDocument } from "../../../cni/json.ts";
import { counted } from "../../../contract/counted.ts";
import { readAll, readConfiguredFile } from "../../../ffi/files.ts";
import { POLLIN } from "../../../ffi/poll.ts";
import { awaitReady } from "../../../process/interruption.ts";
import { print, printJson, printLine, printToStderr } from "../../../process/output.ts";
import type { AddedPool, PoolList } from "../../../services/node/operator/pools.ts";
import { type Command, type ExitStatus, type GivenArguments, UsageError } from "../command.ts";
import { asLine, clusterOption, poolsText, poolText } from "../shown-pools.ts";

export const poolCommand: Command = {
  runsByItself: true,
  printsAfterwards: true,
  summary: "list pools of addresses that nodes claim from, show whose their blocks are, add and close them",
  operands: "list|show|add|close [POOL] [FILE]",
  operandCount: [1, 3],
  options: {
    ...clusterOption,
    json: { help: "list, show: print JSON" },
    undo: { help: "close: open it again" },
    subnet: { value: "SUBNET", isNeverEmpty: true, help: "add: in place of FILE" },
    gateway: { value: "ADDRESS", isNeverEmpty: true, help: "add --subnet: the gateway of a flat pool" },
    from: { value: "ADDRESS", isNeverEmpty: true, help: "add --subnet: the first address of a flat pool" },
    to: { value: "ADDRESS", isNeverEmpty: true, help: "add --subnet: the last address of a flat pool" },
    exclude: { value: "ADDRESS", isNeverEmpty: true, help: "add --subnet: an address or a subnet; may be repeated" },
    "block-size": {
      value: "COUNT",
      isNeverEmpty: true,
      help: "add --subnet: a flat pool; so many addresses a block",
    },
    "block-length": {
      value: "LENGTH",
      isNeverEmpty: true,
      help: "add --subnet: a routed pool; a block is such a subnet",
    },
  },
  notes: [
    "list             print all pools, and who has blocks of them",
    "show POOL        print its ranges, and whose each block is",
    "add POOL FILE    add the pool that FILE describes in JSON; - is stdin",
    "close POOL       nothing more is claimed of it; what nodes have, they keep until it is empty",
  ].map((line) => `  ${line}\n`).join("") +
    "Ranges of a pool never change: close it, and add another. Agents look for pools every five minutes, and when they start.\n",
  exitStatus: "1 also when something in the store is no record.",
  examples: [
    {
      args: "add lan --subnet 10.0.0.0/24 --gateway 10.0.0.1 --from 10.0.0.10 --block-size 16",
      what: "one segment for all nodes, of which each claims 16 addresses at a time",
    },
    { args: "add pods --subnet 10.8.0.0/16 --block-length 26", what: "each block a subnet of 64 addresses" },
  ],
  run(given) {
    const [action, pool, file] = given.operands, config = given.value("config");
    const mostOperands = action === "list" ? 1 : action === "add" ? 3 : 2;
    if (given.operands.length > mostOperands) {
      throw new UsageError(`"${given.operands[mostOperands]}" is one too many`);
    }
    if (action === "list") return operating().listPools(config).then((found) => listed(given, found));
    if (!["show", "add", "close"].includes(action!)) {
      throw new UsageError(`pool knows list, show, add and close, not ${action}`);
    }
    if (pool === undefined) throw new UsageError(`pool ${action} needs the POOL's name`);
    if (action === "show") {
      return operating().showPool(config, pool).then((found) => {
        if (given.has("json")) printJson(found);
        else print(poolText(found));
        return 0;
      });
    }
    if (action === "add") return add(config, pool, describedPool(given, file));
    const state = given.has("undo") ? "open" : "closed";
    return operating().setPoolState(config, pool, state).then((hasChanged) => {
      printLine(`pool ${pool} is ${state}${hasChanged ? "" : " already"}`);
      return 0;
    });
  },
};

function operating() {
  return require(
    "../../../services/node/operator/pools.ts",
  ) as typeof import("../../../services/node/operator/pools.ts");
}

function listed(given: GivenArguments, found: PoolList): number {
  if (given.has("json")) printJson(found);
  else print(poolsText(found));
  return found.problems.length === 0 ? 0 : 1;
}

function add(config: string | undefined, name: string, value: Record<string, unknown>): ExitStatus {
  return operating().addPool(config, name, value).then((added) => {
    const { blocks, ranges } = added.pool;
    printLine(`pool ${name} is added: ${counted(blocks.total, "block")} of ${ranges[0]!.blockSize} addresses`);
    for (const note of notesOn(added)) printToStderr(note);
    return 0;
  });
}

function notesOn({ overlaps, inNoBlock, singlesInBlocks, nodesOfEarlier }: AddedPool): string[] {
  const earlier =
    `${nodesOfEarlier.join(", ")}: has blocks of an earlier pool of this name; nothing is claimed before ` +
    "they are given back";
  return [
    ...inNoBlock.map(({ first, last, count }) =>
      count === 1n
        ? `${first} is behind the last whole block: nobody gets it`
        : `${count} addresses, ${first} to ${last}, are behind the last whole block: nobody gets them`
    ),
    ...singlesInBlocks.map((address) =>
      `${address} is in a block: while a host has that block, no other host gets the address; one outside of "from" and "to" is free of that`
    ),
    ...overlaps.map(({ pools: [, other], addresses }) =>
      `pool ${other} has ${addresses}, too: right for two segments that do not meet; where they meet, addresses come twice`
    ),
    ...nodesOfEarlier.length === 0 ? [] : [asLine(earlier).trimEnd()],
  ];
}

const RANGE_OPTIONS = ["gateway", "from", "to"] as const, LIMIT_BYTES = 1024 * 1024;

/** As the store keeps it. */
function describedPool(given: GivenArguments, file: string | undefined): Record<string, unknown> {
  const subnet = given.value("subnet");
  const other = [...RANGE_OPTIONS, "exclude", "block-size", "block-length"].find((option) => given.has(option));
  if (subnet === undefined && other !== undefined) throw new UsageError(`--${other} belongs to --subnet`);
  if ((subnet === undefined) === (file === undefined)) {
    throw new UsageError("pool add needs either a FILE, which may be - for stdin, or --subnet");
  }
  return subnet === undefined ? documentIn(file!) : rangeOf(given, subnet);
}

function documentIn(file: string): Record<string, unknown> {
  const shown = file === "-" ? "stdin" : file;
  const source = file === "-"
    ? readAll(0, LIMIT_BYTES, shown, Infinity, () => awaitReady(0, POLLIN))
    : readConfiguredFile(file);
  if (source === undefined) throw new Error(`${file}: no such file`);
  const value = parseDocument(source, shown);
  if (isObject(value)) return value;
  throw new Error(
    `${shown}: it is no object: { "layout": "flat", "ranges": [{ "cidr": "10.0.0.0/24", "blockSize": 16 }] }`,
  );
}

function rangeOf(given: GivenArguments, cidr: string): Record<string, unknown> {
  const size = given.value("block-size"), length = given.value("block-length");
  if ((size === undefined) === (length === undefined)) {
    throw new UsageError(
      "pool add --subnet needs either --block-size, for one segment, or --block-length, for routed blocks",
    );
  }
  const exclude = given.values("exclude");
  const range = {
    cidr,
    ...Object.fromEntries(RANGE_OPTIONS.flatMap((key) => given.has(key) ? [[key, given.value(key)]] : [])),
    ...exclude.length > 0 && { exclude },
    ...size !== undefined
      ? { blockSize: numberIn("block-size", size) }
      : { blockLength: numberIn("block-length", length!) },
  };
  return { layout: size === undefined ? "routed" : "flat", ranges: [range] };
}

function numberIn(option: string, text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new UsageError(`--${option} ${text} is no number`);
}
