/**
 * `patchbay node adopt`: a host whose network has host-local with a subnet of its own becomes a node that has it as blocks.
 *
 * In this order, each step repeatable: nothing is begun unless the blocks are free or this node's; host-local is closed for
 * their addresses, and the leases are the pool's (src/ipam/moved-leases.ts); then they are claimed, so that nothing of them is
 * served before its leases are known.
 */
import { poolFrom } from "../../../cluster/pool-decoding.ts";
import { blockWith, type ClusterPool, piecesOf } from "../../../cluster/pool.ts";
import { blockKey, indexOf, poolKey, type PoolRecord, type Stored } from "../../../cluster/records.ts";
import type { ClusterStore } from "../../../cluster/store.ts";
import { leasedAddresses, leaseOwnerIn, readLease } from "../../../ipam/go-directory.ts";
import { type MovedLeases, moveLeases } from "../../../ipam/moved-leases.ts";
import { formatAddress, toBigInt } from "../../../net/address.ts";
import { inCluster } from "../operator/cluster.ts";
import { notDone } from "../not-done.ts";
import { lockedFiles, type NodeOptions } from "../run.ts";
import { thisNode } from "../self.ts";
import { claimOwn, ownerOf, refuseBlocksOfOthers } from "./own-claims.ts";

export interface AdoptionOptions extends NodeOptions {
  pool: string;
  network: string;
  /** host-local's directory of the network. */
  directory: string;
  /** What its configuration gives out. */
  ranges: readonly { start: Uint8Array; end: Uint8Array }[];
}

export interface Adopted extends MovedLeases {
  store: string;
  node: string;
  blocks: number[];
  /** Whether people have to write down whose they are: the store is files. */
  isByHand: boolean;
}

/** Each address has a file at the end, which is written to the disk. */
const MOST_ADDRESSES = 4096n;

export function adoptLeases(options: AdoptionOptions): Promise<Adopted> {
  return inCluster(options.config, async ({ store, conf }) => {
    const self = thisNode(conf.node), files = lockedFiles(options.dataDirectory);
    const pool = await poolIn(store, options.pool), wanted = blocksFor(options, pool);
    const pieces = wanted.flatMap((key) => piecesOf(pool, indexOf(key)));
    refuseTooMany(options, pieces);
    await refuseBlocksOfOthers(store, self, wanted);
    await refuseOpenPool(store, pool, wanted);
    const { network, directory, say } = options;
    const from = { directory, keep: false, quarantineSeconds: 0, report: say };
    const to = { ...from, directory: `${files.leases}/${pool.name}` };
    const spans = pieces.map(({ first, last }) => ({ subnet: subnetOf(pool, first), first, last }));
    const moved = moveLeases({ network, pool: pool.name, from, to, spans });
    if (store.isWritable) await claimOwn({ ...options, self, store, files }, wanted);
    const owners = await Promise.all(wanted.map((key) => ownerOf(store, key)));
    const isByHand = !store.isWritable && owners.includes(undefined);
    return { ...moved, store: store.name, node: self.node, blocks: wanted.map(indexOf), isByHand };
  });
}

async function poolIn(store: ClusterStore, name: string): Promise<ClusterPool> {
  const found = await store.read(poolKey(name)) as Stored<PoolRecord> | undefined;
  if (found !== undefined) return poolFrom(name, found.value);
  throw notDone(
    `there is no pool ${name} in ${store.name}`,
    `'patchbay pool add ${name}' adds it, with "state": "closed" until each host has its blocks`,
  );
}

/** Which have a lease, or an address that host-local may give out. */
function blocksFor({ directory, ranges, network }: AdoptionOptions, pool: ClusterPool): string[] {
  const indices = new Set<number>();
  const note = (address: Uint8Array, what: () => string) => {
    const index = blockWith(pool, address);
    if (index === undefined) throw new Error(`${what()} is in no block of pool ${pool.name}`);
    indices.add(index);
  };
  for (const address of leasedAddresses(directory)) {
    note(address, () => {
      const text = readLease(directory, address) ?? "";
      return `${directory}/${formatAddress(address)}, of ${leaseOwnerIn(text)?.containerId ?? "nobody"},`;
    });
  }
  for (const { start, end } of ranges) {
    const what = () => `network ${network}: its range ${formatAddress(start)}-${formatAddress(end)}`;
    note(start, what);
    note(end, what);
    const from = blockWith(pool, start)!, to = blockWith(pool, end)!;
    if (to - from > Number(MOST_ADDRESSES)) {
      throw new Error(`${what()} is in ${to - from + 1} blocks of pool ${pool.name}`);
    }
    for (let index = from; index <= to; index++) indices.add(index);
  }
  return [...indices].sort((one, other) => one - other).map((index) => blockKey(pool.name, index));
}

function refuseTooMany(
  { network }: AdoptionOptions,
  pieces: readonly { first: Uint8Array; last: Uint8Array }[],
): void {
  const count = pieces.reduce((sum, { first, last }) => sum + toBigInt(last) - toBigInt(first) + 1n, 0n);
  if (count <= MOST_ADDRESSES) return;
  throw notDone(
    `network ${network}: ${count} addresses are more than the ${MOST_ADDRESSES} that go over at once`,
    "detach its containers, and attach them by the pool: then nothing needs to go over",
  );
}

/** Who claims of it meanwhile may get a block that other hosts' containers have addresses of. */
async function refuseOpenPool(store: ClusterStore, pool: ClusterPool, keys: readonly string[]): Promise<void> {
  if (!pool.isOpen || !store.isWritable) return;
  for (const key of keys) {
    if (await ownerOf(store, key) !== undefined) continue;
    throw notDone(
      `pool ${pool.name} is open, and ${key} is nobody's: another node may claim it any moment`,
      `patchbay pool close ${pool.name}; when each host has its blocks, 'pool close --undo' opens it`,
    );
  }
}

function subnetOf({ ranges }: ClusterPool, address: Uint8Array) {
  return ranges.find(({ first }) => first.length === address.length)!.subnet;
}
