/** A store's values as records. Whatever is wrong with one is said with its key, and nothing of it counts. */
import { errorText } from "../cni/error.ts";
import { isObject, nestsDeeper } from "../cni/json.ts";
import { type ClusterRecord, ForeignRecord } from "./effects.ts";
import { poolFrom } from "./pool-decoding.ts";
import { isPoolName } from "./pool-name.ts";
import { ALARM_KEY, type AlarmRecord, type BlockOwner, type BlockRecord, type NodeRecord } from "./records.ts";
import type { RecordKind } from "./store.ts";

/** Names of records fit into a label of DNS and a file's name. */
const NAME = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/;
const BLOCK = /^(.+)\.(0|[1-9]\d{0,9})$/;

export function isNodeName(name: string): boolean {
  return NAME.test(name);
}

export interface RecordName {
  kind: RecordKind;
  /** Without the kind: `n1`, `lan.3`. The alarm has that of its kind. */
  name: string;
  /** A block's. */
  pool?: string;
  index?: number;
}

/** Undefined for what is no key of a record. */
export function recordName(key: string): RecordName | undefined {
  if (key === ALARM_KEY) return { kind: "alarm", name: ALARM_KEY };
  const slash = key.indexOf("/"), kind = key.slice(0, slash), name = key.slice(slash + 1);
  if (kind === "pool" && isPoolName(name)) return { kind, name };
  if (kind === "node" && isNodeName(name)) return { kind, name };
  const [, pool, index] = kind === "block" ? BLOCK.exec(name) ?? [] : [];
  return pool === undefined || !isPoolName(pool) ? undefined : { kind: "block", name, pool, index: Number(index) };
}

const TEXT_LIMIT = 4096;

/** Throws ForeignRecord. */
export function recordFrom(key: string, value: unknown): ClusterRecord {
  const named = recordName(key);
  if (named === undefined) throw new ForeignRecord(key, "no record has such a name");
  if (!isObject(value)) throw new ForeignRecord(key, "it is no object");
  if (nestsDeeper(value, 8)) throw new ForeignRecord(key, "it nests deeper than 8");
  try {
    return decoders[named.kind](value, named);
  } catch (error) {
    throw new ForeignRecord(key, errorText(error));
  }
}

type Values = Record<string, unknown>;

const decoders: Record<RecordKind, (value: Values, named: RecordName) => ClusterRecord> = {
  pool: (value, { name }) => {
    poolFrom(name, value);
    return value as unknown as ClusterRecord;
  },
  node: (value): NodeRecord => ({
    generation: whole(value, "generation", 1),
    machine: text(value, "machine"),
    boot: text(value, "boot"),
    state: word(value, "state", ["joined", "draining", "off"]),
    ...value["isContested"] === true && { isContested: true },
    ...value["heard"] !== undefined && { heard: text(value, "heard") },
    ...value["conflicts"] !== undefined && { conflicts: texts(value, "conflicts") },
  }),
  block: (value, { index }): BlockRecord => {
    const own = whole(value, "index", 0);
    if (own !== index) throw new Error(`"index" is ${own}`);
    return {
      poolBirth: text(value, "poolBirth"),
      index: own,
      ...value["owner"] !== undefined && { owner: ownerFrom(value["owner"]) },
      ...value["lastNode"] !== undefined && { lastNode: text(value, "lastNode") },
    };
  },
  alarm: (value): AlarmRecord => ({ by: text(value, "by"), saw: text(value, "saw") }),
};

function ownerFrom(value: unknown): BlockOwner {
  if (!isObject(value)) throw new Error('"owner" is no object');
  const node = text(value, "node");
  // Commands that people are advised to type have it.
  if (!isNodeName(node)) throw new Error('"owner.node" is no name of a node');
  return { node, generation: whole(value, "generation", 1), claim: text(value, "claim") };
}

function whole(value: Values, key: string, least: number): number {
  const found = value[key];
  if (Number.isSafeInteger(found) && (found as number) >= least) return found as number;
  throw new Error(`"${key}" is no whole number from ${least} on`);
}

function text(value: Values, key: string): string {
  const found = value[key];
  if (typeof found !== "string") throw new Error(`"${key}" is no text`);
  if (found.length > TEXT_LIMIT) throw new Error(`"${key}" is longer than ${TEXT_LIMIT}`);
  return found;
}

function texts(value: Values, key: string): string[] {
  const found = value[key];
  if (Array.isArray(found) && found.length <= TEXT_LIMIT && found.every((one) => typeof one === "string")) {
    return found;
  }
  throw new Error(`"${key}" is no list of texts`);
}

function word<Word extends string>(value: Values, key: string, words: readonly Word[]): Word {
  const found = value[key];
  if (words.includes(found as Word)) return found as Word;
  throw new Error(`"${key}" is none of ${words.join(", ")}`);
}
