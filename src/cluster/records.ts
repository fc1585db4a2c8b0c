/**
 * What a store keeps of a cluster: nodes, blocks of addresses, an alarm. Each has one key, and is written by compare and put
 * of that key alone.
 */

/** As a person wrote it: `poolFrom` reads it. */
export interface PoolRecord {
  layout: string;
  ranges: readonly unknown[];
  state?: string;
}

export interface NodeRecord {
  /** 1, 2, …: a node that was removed comes back as the next one, with nothing. */
  generation: number;
  /** What tells the machine from one with a copy of its disk. */
  machine: string;
  /** The kernel's boot id. */
  boot: string;
  state: "joined" | "draining" | "off";
  /** Two that run say that they are this node: only a person can tell. */
  isContested?: true;
  /** The birth of the alarm since which it has looked whether the store has all of its blocks. */
  heard?: string;
  /** Blocks that are another node's, although containers here have addresses of them. */
  conflicts?: readonly string[];
}

export interface BlockOwner {
  node: string;
  generation: number;
  /** New with each claim: a read tells whose a put was that nobody answered. */
  claim: string;
}

export interface BlockRecord {
  /** The pool's, so that a pool of the same name is another one. */
  poolBirth: string;
  index: number;
  /** Undefined when it is free. */
  owner?: BlockOwner;
  lastNode?: string;
}

export interface AlarmRecord {
  by: string;
  saw: string;
}

export interface Stored<Value> {
  key: string;
  value: Value;
  /** Rises with each change of the record. */
  version: number;
  /** A record that was deleted and made again has another. */
  birth: string;
  /** Somebody has asked to delete it. */
  isGoing: boolean;
}

export const ALARM_KEY = "alarm";

export function poolKey(pool: string): string {
  return `pool/${pool}`;
}

export function nodeKey(node: string): string {
  return `node/${node}`;
}

export function blockKey(pool: string, index: number): string {
  return `block/${pool}.${index}`;
}

/** The name in a pool's or a node's key. */
export function nameIn(key: string): string {
  return key.slice(key.indexOf("/") + 1);
}

/** The pool of a block's key. */
export function poolOf(key: string): string {
  return key.slice("block/".length, key.lastIndexOf("."));
}

export function indexOf(key: string): number {
  return Number(key.slice(key.lastIndexOf(".") + 1));
}

export function isOwnedBy({ owner }: BlockRecord, node: string, generation: number): boolean {
  return owner?.node === node && owner.generation === generation;
}

/** Its node has been removed, or has come back without it. */
export function isDead({ owner }: BlockRecord, node: NodeRecord | undefined): boolean {
  if (owner === undefined || node === undefined) return false;
  return node.generation > owner.generation || (node.state === "off" && node.generation >= owner.generation);
}
