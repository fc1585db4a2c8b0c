/** What the agent of a cluster's node tells ADD of a pool, for tests without one. */
import { chmodSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { poolFrom } from "../../src/cluster/pool-decoding.ts";
import { servedAddresses } from "../../src/cluster/served.ts";
import { servedPath, type ServedPool, servedText } from "../../src/cluster/served-file.ts";
import { formatAddress, parsePrefix } from "../../src/net/address.ts";
import type { Machine } from "./machine.ts";

/** As people write a pool, and the blocks that are served here. */
export interface GivenPool {
  name?: string;
  layout?: "flat" | "routed";
  ranges?: readonly object[];
  routes?: readonly object[];
  blocks?: readonly number[];
  /** What the file says in place of what follows from the others. */
  change?: Partial<ServedPool>;
}

export const STATE = "/run/patchbay", POOLS = "/var/lib/patchbay/pools";

/** Block i has the 16 addresses from 10.50.0.(16 i) on. */
const VLAN = [{
  cidr: "10.50.0.0/24",
  gateway: "10.50.0.254",
  from: "10.50.0.0",
  to: "10.50.0.255",
  blockSize: 16,
}];

export function servedPoolOf(given: GivenPool = {}): ServedPool {
  const { name = "lan", layout = "flat", ranges = VLAN, routes = [], blocks = [1], change } = given;
  const pool = poolFrom(name, { layout, ranges, routes });
  return {
    ...servedAddresses(pool, blocks),
    node: "n1",
    store: "etcd at https://10.0.0.1:2379",
    blocks: { served: blocks.length, ripening: 0, closing: 0, unknown: 0 },
    ...change,
  };
}

/** Replaces the file, as the agent does. */
export function serveIn(directory: string, given: GivenPool = {}): ServedPool {
  const served = servedPoolOf(given), path = servedPath(directory, served.pool);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.tmp`, servedText(served));
  chmodSync(`${path}.tmp`, 0o600);
  renameSync(`${path}.tmp`, path);
  return served;
}

/** A shell script that does the same in a machine, whose files are its own. */
export function serving(given: GivenPool = {}): string {
  const served = servedPoolOf(given), path = servedPath(STATE, served.pool);
  return `mkdir -p -m 700 ${STATE}; (umask 077; printf '%s' '${
    servedText(served)
  }' >${path}.tmp); mv ${path}.tmp ${path}`;
}

export async function serve(machine: Machine, given: GivenPool = {}): Promise<void> {
  await machine.sh(serving(given));
}

/** What is served of the first family, as people write it: `10.1.0.2-10.1.0.16`. */
export function servedRangesIn({ spans, extents }: Pick<ServedPool, "spans" | "extents">): string[] {
  const bytes = Uint8Array.fromHex(spans[0]!), width = parsePrefix(extents[0]!.subnet)!.bytes.length;
  const addressAt = (position: number) => formatAddress(bytes.slice(position * width, (position + 1) * width));
  return Array.from(
    { length: bytes.length / (2 * width) },
    (_, index) => `${addressAt(2 * index)}-${addressAt(2 * index + 1)}`,
  );
}

/** The first address that is served. */
export function firstOf(served: ServedPool): string {
  return servedRangesIn(served)[0]!.split("-")[0]!;
}

export function isServing(served: ServedPool | undefined): boolean {
  return served !== undefined && served.blocks.served > 0;
}
