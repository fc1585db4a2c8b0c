/** A cluster in etcd, 3.4 or newer: each record is a key below the prefix. */
import type { EtcdConf } from "../cluster/configuration.ts";
import { type ClusterRecord, ForeignRecord } from "../cluster/effects.ts";
import type { Stored } from "../cluster/records.ts";
import type { ClusterStore, StoreOutcome } from "../cluster/store.ts";
import { errorText } from "../cni/error.ts";
import { Gateway, type TxnRequest } from "./etcd/gateway.ts";
import { type ListingOptions, Listings } from "./etcd/listing.ts";
import { EtcdRefusal } from "./etcd/refusals.ts";
import { keyBytes, revisionFrom, storedFrom, valueBytes, writable } from "./etcd/values.ts";
import { watchKey } from "./etcd/watch.ts";

/** With what is added at random, within the time in which a node that is removed may object. */
const RENEW_MS = 70_000;
/** So many come within the limit of a request, also from a busy server. */
const LISTING: ListingOptions = { page: 2000, wholeMs: 60_000 };

export interface EtcdOptions extends Partial<ListingOptions> {
  /** The endpoint to begin with, by its number: nodes begin at different ones. */
  first?: number;
  /** How long a watch stays at one endpoint. */
  renewMs?: number;
}

/** Asks nobody yet. */
export function openEtcd(conf: EtcdConf, options: EtcdOptions = {}): ClusterStore {
  const { first = Math.floor(Math.random() * conf.endpoints.length), renewMs = RENEW_MS } = options;
  const gateway = new Gateway(conf, first), listings = new Listings(gateway, { ...LISTING, ...options });
  const at = (key: string) => keyBytes(conf.prefix + key);
  return {
    name: `etcd at ${conf.endpoints.join(", ")}`,
    isWritable: true,
    async read(key) {
      const { kvs = [] } = await gateway.range({ key: at(key) });
      return kvs[0] && storedFrom(key, kvs[0]);
    },
    list: (kind, pool) => listings.list(kind, pool),
    async put(key, was, value) {
      try {
        return await written(gateway, { key, at: at(key), was, value });
      } catch (error) {
        const why = errorText(error), isRefused = error instanceof EtcdRefusal || error instanceof ForeignRecord;
        if (!isRefused) return { unknown: why };
        return { refused: `${key} is not ${value === undefined ? "deleted" : "written"}: ${why}` };
      }
    },
    watch: (key, changed, signal) => watchKey(gateway, { key: at(key), changed, signal, renewMs }),
    close: () => gateway.close(),
  };
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
