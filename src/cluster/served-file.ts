/**
 * What ADD may give out of a pool on this host, and why not more: a small file for each pool, which the agent replaces
 * whole, and which ends with the boot. ADD and DEL read nothing else of a cluster.
 */
import { isObject } from "../cni/json.ts";
import type { PoolRoute } from "./pool.ts";
import type { PoolExtent, ServedRange } from "./served.ts";

export interface ServedPool {
  pool: string;
  node: string;
  /** For sentences: `etcd at https://10.0.0.1:2379`. */
  store: string;
  layout: "flat" | "routed";
  /** One list for each family. Without any block, each is empty. */
  ranges: ServedRange[][];
  /** Addresses of the pool that only who asks for them gets: all of them, and those that are served here. */
  singles: { all: readonly string[]; served: readonly string[]; ofOthers: Readonly<Record<string, string>> };
  /** One for each family, in the same order. */
  extents: PoolExtent[];
  routes: readonly PoolRoute[];
  /** How many blocks are served, ripen, are emptied before they are given back, and may have addresses that nobody knows. */
  blocks: { served: number; ripening: number; closing: number; unknown: number };
  /** Why no block comes to it: `draining`, `an alarm: …`; undefined when one may come any time. */
  obstacle?: string;
  /** The store does not answer: since when, in seconds since the boot, and what it says. */
  silent?: { since: number; why: string };
}

/** A name that no network has: the file is beside the directories of networks. */
export function servedPath(stateDirectory: string, pool: string): string {
  return `${stateDirectory}/pool~${pool}`;
}

/** Locked by the agent as long as it runs. */
export function agentLockPath(stateDirectory: string): string {
  return `${stateDirectory}/node~lock`;
}

/**
 * What ADD did not get, for the agent, which looks at it several times a second: one document, the last wish counts. It may
 * be lost: whoever wishes asks again.
 */
export function wishPath(stateDirectory: string, pool: string): string {
  return `${stateDirectory}/wish~${pool}`;
}

export function servedText(served: ServedPool): string {
  return `${JSON.stringify(served)}\n`;
}

const LISTS: readonly (keyof ServedPool)[] = ["ranges", "extents", "routes"];

/** This program wrote it, or another version of it. Throws for what it does not know. */
export function servedFrom(text: string): ServedPool {
  const value: unknown = JSON.parse(text);
  let isKnown = isObject(value) && isObject(value["blocks"]);
  for (const key of LISTS) isKnown &&= Array.isArray((value as Record<string, unknown>)[key]);
  if (isKnown) return value as ServedPool;
  throw new Error("it is of another version of this program");
}
