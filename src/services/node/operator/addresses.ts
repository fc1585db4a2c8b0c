/** `patchbay ipam show` and `ipam check`: which blocks a host has and who leases of them, and whether all of it agrees. */
import { ForeignRecord } from "../../../cluster/effects.ts";
import { type ClusterFinding, type ClusterRecords, recordsFindings } from "../../../cluster/findings.ts";
import {
  type AttachedAddress,
  foreignHostFindings,
  grantedLeaseFindings,
  grantFindings,
  type HostBlocks,
  type HostLease,
  selfFindings,
} from "../../../cluster/host-findings.ts";
import type { Self } from "../../../cluster/node.ts";
import { blockWith } from "../../../cluster/pool.ts";
import { blockKey, type BlockRecord, isOwnedBy, nodeKey, type Stored } from "../../../cluster/records.ts";
import type { ClusterStore } from "../../../cluster/store.ts";
import { delay } from "../../../cluster-stores/delay.ts";
import { DEFAULT_POOLS_DIRECTORY } from "../../../ipam/go-directory.ts";
import { listLeases } from "../../../ipam/take-over.ts";
import { formatAddress, parseAddress } from "../../../net/address.ts";
import { thisNode } from "../self.ts";
import { countUse } from "../use.ts";
import type { HostOptions } from "./check.ts";
import { checkName, inCluster, type OpenCluster, recordsOf, unknownName } from "./cluster.ts";
import { type HostFacts, hostFacts, type OwnPool, ownPools } from "./host.ts";
import { type ShownPool, shownPool } from "./pools.ts";

export interface OwnAddresses {
  store: string;
  node: string;
  pools: OwnPool[];
}

/** Without asking a store that is elsewhere. */
export function showOwn({ config, dataDirectory }: HostOptions, pool: string | undefined): Promise<OwnAddresses> {
  return inCluster(config, async ({ store, conf }) => {
    const records = store.isWritable ? undefined : await recordsOf(store);
    const host = hostFacts(thisNode(conf.node), dataDirectory, records), pools = ownPools(host, records);
    const shown = pools.filter((each) => pool === undefined || each.pool === pool);
    if (pool !== undefined && shown.length === 0) throw unknownName("pool", pool, pools.map((each) => each.pool));
    return { store: store.name, node: host.self.node, pools: shown };
  });
}

export function showAll(
  config: string | undefined,
  pool: string | undefined,
): Promise<{ store: string; pools: ShownPool[] }> {
  return inCluster(config, async ({ store }) => {
    if (pool !== undefined) checkName("pool", pool);
    const records = await recordsOf(store);
    if (pool !== undefined && !records.pools.has(pool)) throw unknownName("pool", pool, records.pools.keys());
    const wanted = [...records.pools.values()].filter((each) => pool === undefined || each.pool.name === pool);
    return { store: store.name, pools: wanted.map((each) => shownPool(each.pool, records)) };
  });
}

/** What records of containers say, which this room does not read. */
export interface KnownContainers {
  /** By the ledgers of this boot. */
  attached(pool: string): readonly { address: string; network: string; containerId: string }[];
  isKnown(containerId: string): boolean;
}

export interface IpamCheck {
  store: string;
  node: string;
  findings: ClusterFinding[];
}

/** An ADD writes its lease first, and an agent its claim, and the record of it a moment later. */
const ONCE_MORE_MS = 1000;

export function checkAddresses(options: HostOptions, containers: () => KnownContainers): Promise<IpamCheck> {
  return inCluster(options.config, async (cluster) => {
    const self = thisNode(cluster.conf.node),
      look = () => findingsAt(cluster, self, options.dataDirectory, containers());
    const first = await look(), result = { store: cluster.store.name, node: self.node };
    if (first.length === 0) return { ...result, findings: [] };
    await delay(ONCE_MORE_MS);
    const isStill = ({ about, problem }: ClusterFinding) =>
      first.some((before) => before.about === about && before.problem === problem);
    return { ...result, findings: (await look()).filter(isStill) };
  });
}

async function findingsAt(
  cluster: OpenCluster,
  self: Self,
  dataDirectory: string | undefined,
  containers: KnownContainers,
): Promise<ClusterFinding[]> {
  const { store } = cluster, records = await recordsOf(store), host = hostFacts(self, dataDirectory, records);
  const blocks = blocksOf(host, containers, records, store);
  const isForeign = records.problems.some((problem) => problem.startsWith(`${nodeKey(self.node)} `));
  return [
    ...recordsFindings(records),
    ...isForeign || !store.isWritable ? [] : selfFindings(blocks, records.nodes.get(self.node)),
    ...store.isWritable ? grantFindings(blocks, await ownRecords(cluster, host, records)) : [],
    ...grantedLeaseFindings(blocks),
    ...foreignHostFindings(blocks),
  ];
}

function blocksOf(
  host: HostFacts,
  containers: KnownContainers,
  records: ClusterRecords,
  store: ClusterStore,
): HostBlocks {
  const { pools, files, self, isAgentRunning, secondsSinceSync } = host;
  // Leases of an earlier boot end with it: their containers are gone.
  countUse(pools, files.leases, () => [], () => {});
  const own = records.blocks.filter(({ value }) => value.owner?.node === self.node);
  // What the files of a roster give is what is granted.
  const byHand = own.map(({ key }) => ({ key, claim: "by hand", state: "held" as const, version: 1 }));
  return {
    self,
    isAgentRunning,
    ...secondsSinceSync !== undefined && { secondsSinceSync },
    held: store.isWritable ? host.held : { ...host.held, grants: byHand },
    leaseDirectory: files.leases,
    foreign: host.served.flatMap(({ foreign = [] }) => foreign),
    isUsualDirectory: files.leases === DEFAULT_POOLS_DIRECTORY,
    leases: pools.flatMap(({ name, pool }) =>
      listLeases(`${files.leases}/${name}`).map(({ address, owner }): HostLease => {
        const index = blockWith(pool, parseAddress(address)!);
        return {
          pool: name,
          address,
          block: index === undefined ? undefined : blockKey(name, index),
          ...owner,
          isKnown: owner !== undefined && containers.isKnown(owner.containerId),
        };
      })
    ),
    attached: pools.flatMap(({ name, pool }) =>
      containers.attached(name).flatMap(({ address, ...holder }): AttachedAddress[] => {
        const parsed = parseAddress(address);
        // The answer of an ADD may have addresses of other pools, too.
        if (parsed === undefined || blockWith(pool, parsed) === undefined) return [];
        return [{ pool: name, address: formatAddress(parsed), ...holder }];
      })
    ),
  };
}

/** Read one by one: what a list shows may be old. */
async function ownRecords({ store }: OpenCluster, { held, self }: HostFacts, { blocks }: ClusterRecords) {
  const listed = blocks.filter(({ value }) => isOwnedBy(value, self.node, held.generation)).map(({ key }) => key);
  const found = new Map<string, Stored<BlockRecord> | undefined>();
  for (const key of new Set([...held.grants.map((grant) => grant.key), ...listed])) {
    try {
      found.set(key, await store.read(key) as Stored<BlockRecord> | undefined);
    } catch (error) {
      // It is told already, as what is no record.
      if (!(error instanceof ForeignRecord)) throw error;
    }
  }
  return found;
}
