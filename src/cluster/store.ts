/**
 * Where a cluster's records are: a roster of files, etcd, or the API of Kubernetes. Nobody above asks which. Safety rests
 * on `put` alone, which compares and writes one key; decisions use `read`, never a list.
 */
import type { ClusterRecord } from "./effects.ts";
import type { Stored } from "./records.ts";

export type RecordKind = "pool" | "node" | "block" | "alarm";

export interface ClusterStore {
  /** For sentences: `etcd at https://10.0.0.1:2379`. */
  readonly name: string;
  /** False for a roster: people write it, and `put` is refused. */
  readonly isWritable: boolean;
  /** What the record is now, and not what some server remembers. Throws StoreSilent, and ForeignRecord. */
  read(key: string): Promise<Stored<ClusterRecord> | undefined>;
  /** To choose and to show: may be old. Blocks of one pool where `pool` is given. Throws StoreSilent. */
  list(kind: RecordKind, pool?: string): Promise<ListedRecords>;
  /**
   * Writes the value, or deletes the record where that is undefined, if the record still is what `was` says: that one, or
   * none. Deleting is for what holds nothing, as an alarm. Never throws.
   */
  put(
    key: string,
    was: Stored<ClusterRecord> | undefined,
    value: ClusterRecord | undefined,
  ): Promise<StoreOutcome>;
  /**
   * Calls `changed` when the record may have changed, and when the watch has begun. Returns why it has ended: an end is
   * usual, silence proves nothing. Never throws.
   */
  watch(key: string, changed: () => void, signal: AbortSignal): Promise<string>;
  close(): void;
}

export interface ListedRecords {
  records: Stored<ClusterRecord>[];
  /** What is in the store and is no record: its key, and why. Nothing of it counts. */
  problems: string[];
  /** The store's newest change, of whichever record; what a store cannot say is 0. */
  revision: number;
}

/**
 * `unknown`: it may have happened, or may happen yet. `refused`: it has not, and will not. Both say why, in a sentence that
 * names the cause and the next step.
 */
export type StoreOutcome =
  /** What the store has now; undefined after a deletion. */
  | { won: Stored<ClusterRecord> | undefined }
  | "lost"
  | { unknown: string }
  | { refused: string };
