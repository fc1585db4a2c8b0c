/** A cluster that people write by hand, as files that are the same on every host: src/cluster/roster.ts. */
import { errorText, undefinedOnError } from "../cni/error.ts";
import { birthOf } from "../cluster/pool.ts";
import { StoreSilent } from "../cluster/effects.ts";
import { blockKey, type BlockRecord, type NodeRecord, type PoolRecord, type Stored } from "../cluster/records.ts";
import { type Roster, type RosterFile, rosterFrom } from "../cluster/roster.ts";
import type { ClusterStore, ListedRecords } from "../cluster/store.ts";
import { recordName } from "../cluster/decoding.ts";
import { entriesIn, identify, readConfiguredFile } from "../ffi/files.ts";
import { delay, NOT_WANTED } from "./delay.ts";

const LOOK_MS = 2000, SUFFIX = ".json";

export function openRoster(directory: string): ClusterStore {
  const name = `the files in ${directory}`;
  const everything = () => recordsIn(directory);
  return {
    name,
    isWritable: false,
    read: (key) => promised(() => everything().find((record) => record.key === key)),
    list: (kind, pool) =>
      promised((): ListedRecords => {
        const records = everything().filter(({ key }) => {
          const named = recordName(key);
          return named?.kind === kind && (pool === undefined || named.pool === pool);
        });
        return { records, problems: [], revision: 0 };
      }),
    put: () => Promise.resolve({ refused: `${name} are written by hand: change them on every host` }),
    watch: (_key, changed, signal) => lookAgain(directory, changed, signal),
    close() {},
  };
}

function promised<T>(work: () => T): Promise<T> {
  return new Promise((done) => done(work()));
}

type AnyRecord = Stored<PoolRecord | NodeRecord | BlockRecord>;

function recordsIn(directory: string): AnyRecord[] {
  const poolFiles = filesIn(`${directory}/pools.d`), nodeFiles = filesIn(`${directory}/nodes.d`);
  const roster = rosterFrom(poolFiles, nodeFiles);
  if ("problems" in roster) throw new StoreSilent(`nothing of ${directory} counts: ${roster.problems.join("; ")}`);
  const pools = poolFiles.map(({ name, text }) => stored(`pool/${name}`, JSON.parse(text) as PoolRecord));
  return [...pools, ...nodeFiles.flatMap(({ name }) => recordsOf(name, roster))];
}

function recordsOf(node: string, { pools, blocks }: Roster): AnyRecord[] {
  const record: NodeRecord = { generation: 1, machine: "", boot: "", state: "joined" };
  const owner = { node, generation: 1, claim: "by hand" };
  const own = [...blocks.get(node) ?? []].flatMap(([pool, indices]) =>
    indices.map((index): AnyRecord =>
      stored(blockKey(pool, index), { poolBirth: birthOf(BIRTH, pools.get(pool)!), index, owner })
    )
  );
  return [stored(`node/${node}`, record), ...own];
}

const BIRTH = "by hand";

function stored<Value>(key: string, value: Value): Stored<Value> {
  return { key, value, version: 1, birth: BIRTH, isGoing: false };
}

function filesIn(directory: string): RosterFile[] {
  return namesOf(directory).map((file) => {
    const path = `${directory}/${file}`, text = readConfiguredFile(path);
    if (text === undefined) throw new StoreSilent(`${path} is gone while it is read`);
    return { name: file.slice(0, -SUFFIX.length), path, text };
  });
}

function namesOf(directory: string): string[] {
  return entriesIn(directory).map(({ name }) => name).filter((name) => name.endsWith(SUFFIX) && !name.startsWith("."))
    .sort();
}

/** Files are few, and change seldom: looking at what they are is cheaper than a descriptor that waits. */
async function lookAgain(directory: string, changed: () => void, signal: AbortSignal): Promise<string> {
  let before: string | undefined;
  while (!signal.aborted) {
    const now = seenOf(directory);
    if (now !== before) changed();
    before = now;
    await delay(LOOK_MS, signal);
  }
  return NOT_WANTED;
}

/** What cannot be looked at is said by who reads it. */
function seenOf(directory: string): string {
  try {
    return stateOf(directory);
  } catch (error) {
    return errorText(error);
  }
}

function stateOf(directory: string): string {
  return ["pools.d", "nodes.d"].flatMap((folder) =>
    namesOf(`${directory}/${folder}`).map((name) => {
      const file = undefinedOnError(() => identify(`${directory}/${folder}/${name}`));
      return `${folder}/${name} ${file === undefined ? "is gone" : `${file.id} ${file.size} ${file.modified}`}`;
    })
  ).join("\n");
}
