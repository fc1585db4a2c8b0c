/**
 * What ADD may give out of a pool on this host, and why not more: a small file for each pool, which the agent replaces
 * whole, and which ends with the boot. ADD and DEL read nothing else of a cluster.
 */
import { isObject } from "../cni/json.ts";
import { networkOf, nextAddress, parseAddress, type Prefix } from "../net/address.ts";
import type { PoolRoute } from "./pool.ts";

/** All that the blocks of a pool have of a family, whoever serves them. What is served of it are spans. */
export interface PoolExtent {
  subnet: string;
  /** In a flat pool. */
  gateway?: string;
  /** In a routed pool, where each block is a subnet: its prefix. Its gateway is `gatewayInBlock`. */
  blockLength?: number;
  /** The first address of block 0, and the last of all blocks. */
  first: string;
  last: string;
  /** How many addresses a block has, in digits: a block of IPv6 may have more than a number can say. */
  blockSize: string;
}

export interface ServedPool {
  pool: string;
  node: string;
  /** For sentences: `etcd at https://10.0.0.1:2379`. */
  store: string;
  /** Where the agent looks for leases, with a directory for each pool: blocks without any there are given back. */
  leases?: string;
  layout: "flat" | "routed";
  /**
   * One for each family: the first and the last address of each range, in order, all in hexadecimal digits. A node may have
   * a thousand ranges, and ADD looks at few.
   */
  spans: string[];
  /** Addresses of the pool that only who asks for them gets: all of them, and those that are served here. */
  singles?: { all: readonly string[]; served: readonly string[] };
  /** The nodes of addresses that ADD has asked for. */
  ofOthers?: Readonly<Record<string, string>>;
  /** One for each family, in the same order. */
  extents: PoolExtent[];
  routes: readonly PoolRoute[];
  /** Addresses of its blocks that hosts of the segment have without the cluster's knowledge. */
  foreign?: readonly string[];
  /** How many blocks are served, ripen, are emptied before they are given back, and may have addresses that nobody knows. */
  blocks: { served: number; ripening: number; closing: number; unknown: number };
  /** Why no block comes to it: `draining`, `an alarm: …`; undefined when one may come any time. */
  obstacle?: string;
  /** Each of the pool's blocks had an owner when the agent looked last: others may give one back any time. */
  isFull?: true;
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

export const WISH = "wish~";

/**
 * What ADD did not get, for the agent: one document, the last wish counts. It may be lost: whoever wishes asks again.
 */
export function wishPath(stateDirectory: string, pool: string): string {
  return `${stateDirectory}/${WISH}${pool}`;
}

export function isWish(file: string): boolean {
  return file.startsWith(WISH);
}

export interface ServedFile extends ServedPool {
  format: typeof FORMAT;
}

const FORMAT = 1;

export function servedText(served: ServedPool): string {
  return `${JSON.stringify({ format: FORMAT, ...served })}\n`;
}

/** Throws for what another version of this program has written. */
export function servedFrom(text: string): ServedFile {
  const value: unknown = JSON.parse(text);
  if (isObject(value) && value["format"] === FORMAT) return value as unknown as ServedFile;
  throw new Error("it is of another version of this program");
}

/** The subnet and the gateway that a container with this address has. */
export function surroundings(
  address: Uint8Array,
  { blockLength, gateway }: PoolExtent,
  pool: Prefix,
): { subnet: Prefix; gateway: Uint8Array | undefined } {
  if (blockLength === undefined) {
    return { subnet: pool, gateway: gateway === undefined ? undefined : parseAddress(gateway) };
  }
  const subnet = { bytes: networkOf({ bytes: address, bits: blockLength }), bits: blockLength };
  return { subnet, gateway: gatewayInBlock(subnet) };
}

/** In a routed pool, the node itself has the block's first address, where that can be a host's. */
export function gatewayInBlock({ bytes, bits }: Prefix): Uint8Array | undefined {
  return bytes.length * 8 - bits < 2 ? undefined : nextAddress(bytes);
}
