/**
 * Lists, by what has changed since the one before. etcd's gateway takes 20 µs of a processor for each record that it writes,
 * which for a thousand blocks is ten times as long as a claim; it finds what is newer than a revision in a tenth of that.
 */
import { recordName } from "../../cluster/decoding.ts";
import { type ClusterRecord, ForeignRecord, StoreSilent } from "../../cluster/effects.ts";
import { ALARM_KEY, type Stored } from "../../cluster/records.ts";
import type { ListedRecords, RecordKind } from "../../cluster/store.ts";
import type { Gateway, RangeAnswer, RangeRequest } from "./gateway.ts";
import { Compacted } from "./refusals.ts";
import { keyBytes, keyFrom, type KeyValue, revisionFrom, storedFrom } from "./values.ts";

export interface ListingOptions {
  /** How many records an answer has at most. */
  page: number;
  /** After so long everything is asked for once more: a store that was restored may be newer, and still another. */
  wholeMs: number;
}

interface Listing {
  /** By the key's bytes: a record, or what is wrong with it; undefined for another pool's. */
  entries: Map<string, Stored<ClusterRecord> | ForeignRecord | undefined>;
  revision: number;
  cluster: string | undefined;
  term: number;
  /** When everything was asked for. */
  wholeAt: number;
}

export class Listings {
  private readonly known = new Map<string, Listing>();

  constructor(private readonly gateway: Gateway, private readonly options: ListingOptions) {}

  /** What the store is at one moment. Throws StoreSilent. */
  async list(kind: RecordKind, pool: string | undefined): Promise<ListedRecords> {
    const { prefix } = this.gateway.conf, [start, end] = kind === "alarm" ? [ALARM_KEY] : rangeOf(kind, pool);
    const range = { key: keyBytes(prefix + start), ...end !== undefined && { range_end: keyBytes(prefix + end) } };
    const known = this.known.get(range.key);
    const isRecent = known !== undefined && performance.now() - known.wholeAt < this.options.wholeMs;
    const isBroughtUp = isRecent && await this.bringUp(range, pool, known);
    const listing = isBroughtUp ? known : await this.whole(range, pool);
    this.known.set(range.key, listing);
    const records: Stored<ClusterRecord>[] = [], problems: string[] = [];
    for (const entry of listing.entries.values()) {
      if (entry instanceof ForeignRecord) problems.push(entry.message);
      else if (entry !== undefined) records.push(entry);
    }
    return { records, problems, revision: listing.revision };
  }

  private async whole(range: RangeRequest, pool: string | undefined): Promise<Listing> {
    const { first: { header }, kvs } = await this.everythingIn(range);
    return {
      entries: new Map(kvs.map((found) => [found.key, this.entryOf(found, pool)])),
      revision: revisionFrom(header.revision),
      cluster: header.cluster_id,
      term: revisionFrom(header.raft_term),
      wholeAt: performance.now(),
    };
  }

  /** False when something was deleted, or the store is another, or an earlier one. */
  private async bringUp(range: RangeRequest, pool: string | undefined, known: Listing): Promise<boolean> {
    const asked = known.revision, newer = { ...range, min_mod_revision: asked + 1 };
    const { first: { header, count }, kvs } = await this.everythingIn(newer);
    const revision = revisionFrom(header.revision), term = revisionFrom(header.raft_term);
    if (revision < asked || term < known.term || header.cluster_id !== known.cluster) return false;
    // Another question, asked at the same time, was answered later and with more.
    if (revision < known.revision) return true;
    for (const found of kvs) known.entries.set(found.key, this.entryOf(found, pool));
    // Each key that is there was there already, or is new: with as many, they are the same.
    if (known.entries.size !== revisionFrom(count)) return false;
    known.revision = revision;
    known.term = term;
    return true;
  }

  private entryOf(found: KeyValue, pool: string | undefined): Stored<ClusterRecord> | ForeignRecord | undefined {
    const key = keyFrom(this.gateway.conf.prefix, found), named = recordName(key);
    // Blocks of the pool `a.b` are between those of the pool `a`.
    if (pool !== undefined && named !== undefined && named.pool !== pool) return undefined;
    try {
      return storedFrom(key, found);
    } catch (error) {
      if (error instanceof ForeignRecord) return error;
      throw error;
    }
  }

  /** By pages of one revision. */
  private async everythingIn(range: RangeRequest): Promise<{ first: RangeAnswer; kvs: KeyValue[] }> {
    const asked = { ...range, limit: this.options.page }, first = await this.gateway.range(asked);
    const kvs = [...first.kvs ?? []], revision = revisionFrom(first.header.revision);
    for (let page = first; page.more; kvs.push(...page.kvs ?? [])) {
      const key = new Uint8Array([...Uint8Array.fromBase64(kvs.at(-1)!.key), 0]).toBase64();
      page = await this.pageAt({ ...asked, key, revision });
    }
    return { first, kvs };
  }

  private async pageAt(range: RangeRequest): Promise<RangeAnswer> {
    try {
      return await this.gateway.range(range);
    } catch (error) {
      throw error instanceof Compacted ? new StoreSilent(error.message) : error;
    }
  }
}

/** From a text up to the first one that does not begin so: `/` comes after `.`, and `0` after `/`. */
function rangeOf(kind: RecordKind, pool: string | undefined): [start: string, end: string] {
  return kind === "block" && pool !== undefined ? [`block/${pool}.`, `block/${pool}/`] : [`${kind}/`, `${kind}0`];
}
