/** A cluster in etcd, 3.4 or newer: each record is a key below the prefix. */
import type { EtcdConf } from "../cluster/configuration.ts";
import { recordName } from "../cluster/decoding.ts";
import { type ClusterRecord, ForeignRecord, StoreSilent } from "../cluster/effects.ts";
import { ALARM_KEY, type Stored } from "../cluster/records.ts";
import type { ClusterStore, ListedRecords, RecordKind, StoreOutcome } from "../cluster/store.ts";
import { errorText } from "../cni/error.ts";
import { Gateway, type RangeRequest, type TxnRequest } from "./etcd/gateway.ts";
import { Compacted, EtcdRefusal } from "./etcd/refusals.ts";
import { keyBytes, keyFrom, revisionFrom, storedFrom, valueBytes, writable } from "./etcd/values.ts";
import { watchKey } from "./etcd/watch.ts";

/** So many come within the limit of a request, also from a busy server. */
const PAGE = 5000;
const RENEW_MS = 60_000;

export interface EtcdOptions {
  /** The endpoint to begin with, by its number: nodes begin at different ones. */
  first?: number;
  /** How long a watch stays at one endpoint. */
  renewMs?: number;
  /** How many records an answer to a list has at most. */
  page?: number;
}

/** Asks nobody yet. */
export function openEtcd(conf: EtcdConf, options: EtcdOptions = {}): ClusterStore {
  const { first = Math.floor(Math.random() * conf.endpoints.length), renewMs = RENEW_MS, page = PAGE } = options;
  const gateway = new Gateway(conf, first), at = (key: string) => keyBytes(conf.prefix + key);
  return {
    name: `etcd at ${conf.endpoints.join(", ")}`,
    isWritable: true,
    async read(key) {
      const { kvs = [] } = await gateway.range({ key: at(key) });
      return kvs[0] && storedFrom(key, kvs[0]);
    },
    list: (kind, pool) => listed(gateway, { kind, pool, page }),
    put: (key, was, value) => outcomeOf(key, value, () => written(gateway, { key, at: at(key), was, value })),
    watch: (key, changed, signal) => watchKey(gateway, { key: at(key), changed, signal, renewMs }),
    close: () => gateway.close(),
  };
}

interface Listing {
  kind: RecordKind;
  pool: string | undefined;
  page: number;
}

async function listed(gateway: Gateway, { kind, pool, page }: Listing): Promise<ListedRecords> {
  const records: Stored<ClusterRecord>[] = [], problems: string[] = [], { prefix } = gateway.conf;
  const [start, end] = kind === "alarm" ? [ALARM_KEY] : rangeOf(kind, pool);
  const range = { key: keyBytes(prefix + start), ...end !== undefined && { range_end: keyBytes(prefix + end) } };
  const { kvs, revision } = await everythingIn(gateway, { ...range, limit: page });
  for (const found of kvs) {
    const key = keyFrom(prefix, found), named = recordName(key);
    // Blocks of the pool `a.b` are between those of the pool `a`.
    if (pool !== undefined && named !== undefined && named.pool !== pool) continue;
    try {
      records.push(storedFrom(key, found));
    } catch (error) {
      if (!(error instanceof ForeignRecord)) throw error;
      problems.push(error.message);
    }
  }
  return { records, problems, revision };
}

/** From a text up to the first one that does not begin so: `/` comes after `.`, and `0` after `/`. */
function rangeOf(kind: RecordKind, pool: string | undefined): [start: string, end: string] {
  return kind === "block" && pool !== undefined ? [`block/${pool}.`, `block/${pool}/`] : [`${kind}/`, `${kind}0`];
}

/** By pages of one revision, so that it is what the store was at one moment. */
async function everythingIn(gateway: Gateway, range: RangeRequest) {
  let page = await gateway.range(range);
  const revision = revisionFrom(page.header.revision), kvs = [...page.kvs ?? []];
  while (page.more) {
    const next = new Uint8Array([...Uint8Array.fromBase64(kvs.at(-1)!.key), 0]).toBase64();
    try {
      page = await gateway.range({ ...range, key: next, revision });
    } catch (error) {
      throw error instanceof Compacted ? new StoreSilent(error.message) : error;
    }
    kvs.push(...page.kvs ?? []);
  }
  return { kvs, revision };
}

async function outcomeOf(
  key: string,
  value: ClusterRecord | undefined,
  write: () => Promise<StoreOutcome>,
): Promise<StoreOutcome> {
  try {
    return await write();
  } catch (error) {
    const why = errorText(error);
    const isRefused = error instanceof EtcdRefusal || error instanceof ForeignRecord;
    return isRefused
      ? { refused: value === undefined ? `${key} is not deleted: ${why}` : `${key} is not written: ${why}` }
      : { unknown: why };
  }
}

interface Write {
  key: string;
  /** The key in etcd, in base64. */
  at: string;
  was: Stored<ClusterRecord> | undefined;
  value: ClusterRecord | undefined;
}

async function written(gateway: Gateway, { key, at, was, value }: Write): Promise<StoreOutcome> {
  const made = value === undefined ? undefined : writable(key, value);
  const { succeeded, header } = await gateway.txn({
    compare: comparing(at, was),
    success: [
      made === undefined ? { request_delete_range: { key: at } } : { request_put: { key: at, value: made.bytes } },
    ],
  });
  if (!succeeded) return "lost";
  const version = revisionFrom(header.revision);
  return { won: made?.written(version, was?.birth ?? String(version)) };
}

/** A store that was restored gives its revisions out again: with the value and the birth, what is compared is the record. */
function comparing(key: string, was: Stored<ClusterRecord> | undefined): TxnRequest["compare"] {
  const result = "EQUAL";
  if (was === undefined) return [{ key, result, target: "MOD", mod_revision: 0 }];
  return [
    { key, result, target: "MOD", mod_revision: was.version },
    { key, result, target: "CREATE", create_revision: was.birth },
    { key, result, target: "VALUE", value: valueBytes(was) },
  ];
}
