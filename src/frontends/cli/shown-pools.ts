/** Pools, their blocks, and what is wrong with them, as the commands on a cluster print them. */
import type { ClusterFinding } from "../../cluster/findings.ts";
import type { BlockRun } from "../../cluster/runs.ts";
import { counted } from "../../contract/counted.ts";
import type { OwnAddresses } from "../../services/node/operator/addresses.ts";
import { oneLine } from "../../services/node/operator/one-line.ts";
import type { OwnPool } from "../../services/node/operator/host.ts";
import type { PoolList, PoolSummary, ShownPool } from "../../services/node/operator/pools.ts";
import type { OptionTable } from "./command.ts";
import { textTable } from "./text-table.ts";
import { CONFIGURATION_FILE } from "../../cluster/configuration.ts";

export const clusterOption: OptionTable = {
  config: { value: "FILE", isNeverEmpty: true, help: `which store and which node (${CONFIGURATION_FILE})` },
};

export function asLine(text: string): string {
  return `${oneLine(text)}\n`;
}

/** As part of a table. */
export function asCell(text: string): string {
  return text.length > 63 ? `${text.slice(0, 62)}…` : text;
}

export function findingsText(findings: readonly ClusterFinding[]): string {
  return findings.map(({ about, problem, step }) =>
    asLine(`${about}: ${problem}`) + (step === undefined ? "" : `  ${asLine(step)}`)
  ).join("");
}

/** Whether something is wrong, and not only to be known. */
export function areWrong(findings: readonly ClusterFinding[]): boolean {
  return findings.some(({ isNote }) => isNote !== true);
}

export function poolsText({ store, isWritable, pools, problems }: PoolList): string {
  const below = problems.map((problem) => asLine(`${problem}; nothing of it counts`)).join("");
  const step = isWritable
    ? "'patchbay pool add POOL FILE' adds one"
    : "write pools.d/POOL.json, the same on every host";
  if (pools.length === 0) return asLine(`no pool in ${store}; ${step}`) + below;
  const rows = pools.map(({ pool, layout, state, ranges, blocks, nodes }) => [
    pool,
    layout,
    state,
    ranges.map(rangeText).join(", "),
    `${blocks.owned} of ${blocks.total}`,
    inShortNames(nodes),
  ]);
  return textTable([["pool", "layout", "state", "addresses", "blocks", "nodes"], ...rows]) + below;
}

function inShortNames(names: readonly string[]): string {
  const more = names.length > 4 ? ` and ${names.length - 4} more` : "";
  return names.slice(0, 4).map(asCell).join(", ") + more;
}

function rangeText({ subnet, first, last }: PoolSummary["ranges"][number]): string {
  return `${first}-${last} of ${subnet}`;
}

export function poolText(pool: ShownPool): string {
  const { ranges, routes, labels, spare, mostBlocks, blocks } = pool;
  const lines = [
    `pool ${pool.pool}: ${pool.layout}, ${pool.state}`,
    ...ranges.map((range) =>
      [
        `range ${rangeText(range)}, ${range.blockSize} addresses a block`,
        ...range.gateway === undefined ? [] : [`gateway ${range.gateway}`],
        ...range.exclude.length === 0 ? [] : [`without ${range.exclude.join(" ")}`],
      ].join(", ")
    ),
    ...routes.map(({ dst, gw }) => `route ${dst}${gw === undefined ? "" : ` by ${gw}`}`),
    ...Object.entries(labels).map(([key, label]) => `for nodes with the label ${key}=${label}`),
    `each node claims ${counted(spare, "block")} ahead, and has ${mostBlocks} at most`,
    ...pool.singles.length === 0 ? [] : [`${counted(pool.singles.length, "single address")}, of whoever asks`],
    `${counted(blocks.total, "block")}: ${blocks.owned} owned, ${blocks.total - blocks.owned} free`,
  ];
  return lines.map(asLine).join("") + runsText([pool]);
}

/** `isOwned`: those that somebody has, of several pools. */
export function runsText(pools: readonly ShownPool[], isOwned = false): string {
  const rows = pools.flatMap(({ pool, runs }) =>
    runs.filter(({ fate }) => !isOwned || fate !== "free").map((run) => [
      ...isOwned ? [pool] : [],
      run.isSingle ? "single" : run.first === run.last ? String(run.first) : `${run.first}-${run.last}`,
      run.addresses.join(", "),
      asCell(run.node ?? "-"),
      remarkOn(run),
    ])
  );
  return textTable([[...isOwned ? ["pool"] : [], "blocks", "addresses", "node", "state"], ...rows]);
}

function remarkOn({ fate, isOfEarlierPool, isGoing }: BlockRun): string {
  const words = {
    free: "free",
    owned: "owned",
    dead: "dead: 'patchbay ipam check' says how it becomes free",
    unrecorded: "owned, and the node has no record",
  };
  return [
    words[fate],
    ...isOfEarlierPool ? ["of an earlier pool"] : [],
    ...isGoing ? ["somebody has asked to delete it"] : [],
  ].join("; ");
}

export function ownText({ store, node, pools }: OwnAddresses): string {
  const head = asLine(`node ${node}, ${store}`);
  if (pools.length === 0) return head + asLine("it has no block; 'patchbay node check' says why");
  return head + ownBlocksText(pools);
}

export function ownBlocksText(pools: readonly OwnPool[]): string {
  const rows = pools.flatMap(({ pool, blocks }) =>
    blocks.map(({ block, isSingle, addresses, state, leased, free }) => [
      pool,
      isSingle ? "single" : String(block),
      addresses.join(", "),
      state,
      String(leased),
      state === "served" ? String(free) : "-",
    ])
  );
  const remarks = pools.flatMap(({ pool, blocks, obstacle, isFull, silent }) => [
    ...blocks.length === 0 ? [`${pool}: it has no block`] : [],
    ...obstacle === undefined ? [] : [`${pool}: no further block comes: ${obstacle}`],
    ...isFull ? [`${pool}: each of its blocks has an owner: 'patchbay pool show ${pool}' says who`] : [],
    ...silent === undefined ? [] : [`${pool}: the store does not answer the agent: ${silent.why}`],
  ]);
  const table = rows.length === 0
    ? ""
    : textTable([["pool", "block", "addresses", "state", "leased", "free"], ...rows]);
  return table + remarks.map(asLine).join("");
}
