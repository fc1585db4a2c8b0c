/**
 * What the protocol asks of the world: of the store, of this host's disk and clock. The protocol is generators that yield
 * these, so that the agent runs it against a real store, and the tests against a world that fails as it likes.
 */
import type { AlarmRecord, BlockRecord, NodeRecord, PoolRecord, Stored } from "./records.ts";

export type ClusterRecord = PoolRecord | NodeRecord | BlockRecord | AlarmRecord;

/** `unknown`: it may have happened. `refused`: it has not, and will not. */
export type PutOutcome<Value> = { won: Stored<Value> } | "lost" | "unknown" | "refused";

export type ClusterEffect =
  | { does: "read"; key: string }
  | { does: "list"; pool: string }
  | { does: "put"; key: string; was?: Stored<ClusterRecord>; value: ClusterRecord }
  /** Durable when it returns. */
  | { does: "save"; held: KeptState }
  /** Until the next boot. */
  | { does: "note"; boot: BootNotes }
  /** The blocks of which containers of this boot have addresses, whatever happened to the state directory. */
  | { does: "look for use" }
  | { does: "look at the clock" }
  | { does: "choose"; among: number }
  | { does: "name a claim" };

/** In the state directory, over boots. */
export interface KeptState {
  /** 0 before the first join. */
  generation: number;
  /** The machine's boots in which it was this node. */
  boots: readonly string[];
  /** One for each block that is mine, or may be. */
  grants: readonly Grant[];
  /** The store's newest change that this node has seen: a store with less has lost something. */
  seen: number;
  /** The state directory was emptied in this boot, while containers may have run. */
  wipedIn?: string;
}

export interface Grant {
  key: string;
  claim: string;
  /** `closing`: it is never leased from again. `unknown`: containers of this boot may have addresses of it. */
  state: "held" | "closing" | "unknown";
  /** The record's, as it was last seen. */
  version: number;
}

/** In the runtime directory: a boot ends it. */
export interface BootNotes {
  hasJoined: boolean;
  /** The claims that have ripened: what is held and ripe is served. */
  ripe: readonly string[];
}

/** What a list shows may be old; decisions use reads. */
export interface ListedBlocks {
  blocks: Stored<BlockRecord>[];
  /** The store's newest change, of whichever record. */
  revision: number;
}

/** A put of which nobody knows the outcome is looked at again so often. */
export const MOST_ATTEMPTS = 16;

export type Steps<Result> = Generator<ClusterEffect, Result, unknown>;

/** The store does not answer: what was begun ends here, and begins again with the next connection. */
export class StoreSilent extends Error {}

/** What is at the key is no record: another program's, or a newer version's. Nothing of it counts. */
export class ForeignRecord extends StoreSilent {
  constructor(readonly key: string, why: string) {
    super(`${key} is no record: ${why}`);
  }
}

export function* readStored<Value extends ClusterRecord>(key: string): Steps<Stored<Value> | undefined> {
  return (yield { does: "read", key }) as Stored<Value> | undefined;
}

export function* listBlocks(pool: string): Steps<ListedBlocks> {
  return (yield { does: "list", pool }) as ListedBlocks;
}

export function* putRecord<Value extends ClusterRecord>(
  key: string,
  was: Stored<Value> | undefined,
  value: Value,
): Steps<PutOutcome<Value>> {
  return (yield { does: "put", key, was, value }) as PutOutcome<Value>;
}

/**
 * Reads a record, and puts what `change` makes of it; again, when another was faster or nobody knows (`isRepeated`). Nothing is
 * put where it is what it was, or where there is a word in its place, which is the outcome then.
 */
export function* changeRecord<Value extends ClusterRecord, Word extends string = never>(
  key: string,
  change: (value: Value | undefined, isRepeated: boolean) => Value | Word,
): Steps<"done" | "refused" | Word> {
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    const found = yield* readStored<Value>(key), value = change(found?.value, attempt > 0);
    if (typeof value === "string") return value;
    if (value === found?.value) return "done";
    const written = yield* putRecord<Value>(key, found, value);
    if (typeof written === "object") return "done";
    if (written === "refused") return written;
  }
  throw new StoreSilent(`${key} changes again and again`);
}

export function* usedBlocks(): Steps<readonly string[]> {
  return (yield { does: "look for use" }) as readonly string[];
}

export function* now(): Steps<number> {
  return (yield { does: "look at the clock" }) as number;
}

export function* chosen(among: number): Steps<number> {
  return (yield { does: "choose", among }) as number;
}

/** One that nobody else has. */
export function* newClaim(): Steps<string> {
  return (yield { does: "name a claim" }) as string;
}
