/** `patchbay node export`: what a store has as files of a roster, for hosts that leave it. */
import { fateOf } from "../../../cluster/runs.ts";
import { isSingle, piecesOf } from "../../../cluster/pool.ts";
import type { ClusterRecords } from "../../../cluster/findings.ts";
import { blockKey, nameIn, poolOf } from "../../../cluster/records.ts";
import { type RosterFile, rosterFrom } from "../../../cluster/roster.ts";
import { makeDirectories, namesIn, readConfiguredFile, replaceFile } from "../../../ffi/files.ts";
import { formatAddress } from "../../../net/address.ts";
import { inCluster, recordsOf } from "../operator/cluster.ts";
import { notDone } from "../not-done.ts";

export interface ExportedRoster {
  store: string;
  pools: string[];
  nodes: string[];
  paths: string[];
}

export function exportRoster(config: string | undefined, directory: string): Promise<ExportedRoster> {
  return inCluster(config, async ({ store }) => {
    if (!store.isWritable) throw notDone(`${store.name} are what an export writes`, "copy them");
    const records = await recordsOf(store), pools = (await store.list("pool")).records;
    refuseDoubt(records);
    const poolFiles = pools.map(({ key, value }) => fileOf(directory, "pools.d", nameIn(key), value));
    const nodes = nodesOf(records);
    const nodeFiles = [...nodes].map(([name, blocks]) => fileOf(directory, "nodes.d", name, { blocks }));
    const roster = rosterFrom(poolFiles, nodeFiles);
    if ("problems" in roster) throw new Error(roster.problems.join("; "));
    writeAllOf(directory, [...poolFiles, ...nodeFiles]);
    return {
      store: store.name,
      pools: poolFiles.map(({ name }) => name),
      nodes: [...nodes.keys()],
      paths: [...poolFiles, ...nodeFiles].map(({ path }) => path),
    };
  });
}

/** What is not certain cannot be written down. */
function refuseDoubt({ alarm, problems, blocks, pools }: ClusterRecords): void {
  if (alarm !== undefined) {
    throw notDone(
      `${alarm.value.by} has raised the alarm: ${alarm.value.saw}`,
      "'patchbay node check' says how it ends",
    );
  }
  if (problems.length > 0) throw notDone(problems[0]!, "what is no record has to be removed, or brought back");
  for (const { key, value } of blocks) {
    if (value.owner === undefined || pools.get(poolOf(key))?.birth === value.poolBirth) continue;
    throw notDone(
      `${key} is ${value.owner.node}'s, of a pool that the store has no more`,
      "'patchbay ipam check' says more",
    );
  }
}

type OwnBlocks = Record<string, (number | string)[]>;

/** A removed node has nothing any more. */
function nodesOf(records: ClusterRecords): Map<string, OwnBlocks> {
  const { nodes, blocks } = records, found = new Map<string, OwnBlocks>();
  for (const [name, { state }] of nodes) if (state !== "off") found.set(name, {});
  const sorted = blocks.toSorted((one, other) => one.value.index - other.value.index);
  for (const { key, value } of sorted) {
    const fate = fateOf(value, nodes), name = poolOf(key);
    if (value.owner === undefined || fate === "dead") continue;
    const own = found.getOrInsertComputed(value.owner.node, () => ({}));
    append(own[name] ??= [], isSingle(value.index) ? singleIn(records, name, value.index) : value.index);
  }
  return found;
}

function singleIn({ pools }: ClusterRecords, pool: string, index: number): string {
  const [piece] = piecesOf(pools.get(pool)!.pool, index);
  if (piece !== undefined) return formatAddress(piece.first);
  throw notDone(
    `${blockKey(pool, index)} is a single address that the pool no longer lists`,
    'put it back into "singles"',
  );
}

/** `4`, then `"4-5"`, then `"4-6"`. */
function append(list: (number | string)[], item: number | string): void {
  const last = list.at(-1), [from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(String(last))?.slice(1) ?? [];
  if (typeof item === "number" && from !== undefined && Number(to) === item - 1) {
    list[list.length - 1] = `${from}-${item}`;
  } else list.push(item);
}

function fileOf(directory: string, folder: string, name: string, value: unknown): RosterFile {
  return { name, path: `${directory}/${folder}/${name}.json`, text: `${JSON.stringify(value, undefined, 2)}\n` };
}

/** Nothing is written where other files would count beside these. */
function writeAllOf(directory: string, files: readonly RosterFile[]): void {
  const paths = new Set(files.map(({ path }) => path));
  for (const folder of ["pools.d", "nodes.d"]) {
    for (const name of namesIn(`${directory}/${folder}`)) {
      const path = `${directory}/${folder}/${name}`;
      if (paths.has(path) || !name.endsWith(".json")) continue;
      throw notDone(`${path} is there, and is not what the store has`, "export into an empty directory");
    }
  }
  for (const { path, text } of files) {
    const found = readConfiguredFile(path);
    if (found === undefined || found === text) continue;
    throw notDone(`${path} is there, with something else than the store has`, "export into an empty directory");
  }
  for (const folder of ["pools.d", "nodes.d"]) makeDirectories(`${directory}/${folder}`, 0o755);
  for (const { path, text } of files) replaceFile(path, text, { mode: 0o644, durable: true });
}
