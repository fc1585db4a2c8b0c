/** An agent where people write which blocks are whose: it tells ADD what the files say, as soon as they agree. */
import { StoreSilent } from "../../cluster/effects.ts";
import { poolFrom } from "../../cluster/pool-decoding.ts";
import { leasedAddresses } from "../../ipam/go-directory.ts";
import { type ClusterPool, shapeOf } from "../../cluster/pool.ts";
import { type BlockRecord, nameIn, nodeKey, poolOf, type PoolRecord, type Stored } from "../../cluster/records.ts";
import { servedAddresses } from "../../cluster/served.ts";
import type { ServedPool } from "../../cluster/served-file.ts";
import type { ClusterStore } from "../../cluster/store.ts";
import { SyscallError } from "../../ffi/errno.ts";
import { preciseSecondsSinceBoot } from "../../ffi/clock.ts";
import { ServedFiles } from "./serving.ts";
import { keptPool, type NodeFiles } from "./files.ts";
import type { Watching } from "./watching.ts";

const LOOK_MS = 1000;

export interface ByHandOptions {
  node: string;
  store: ClusterStore;
  files: NodeFiles;
  say(text: string): void;
}

export class AgentByHand {
  private readonly served: ServedFiles;
  private silent: ServedPool["silent"];
  private known: ServedPool[];

  constructor(private readonly options: ByHandOptions) {
    const { files } = options;
    this.served = new ServedFiles(files);
    this.known = files.servedPools().flatMap((pool) => files.readServed(pool) ?? []);
  }

  readonly patienceMs = 0;

  get name(): string {
    return this.options.node;
  }

  async run(watching: Watching, goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      if (watching.takeChange()) await this.look();
      await watching.wait(LOOK_MS);
    }
  }

  /** Whether the files agree; otherwise what was served goes on being served. */
  async look(): Promise<boolean> {
    const { store, say, node } = this.options;
    try {
      const pools = (await store.list("pool")).records as Stored<PoolRecord>[],
        blocks = (await store.list("block")).records as Stored<BlockRecord>[];
      const own = blocks.filter(({ value }) => value.owner?.node === node);
      if (await store.read(nodeKey(node)) === undefined) {
        throw new StoreSilent(`${store.name} have no nodes.d/${node}.json; it has {"blocks": {}} where it has none`);
      }
      this.refuseOthers(pools);
      this.silent = undefined;
      this.known = pools.map(({ key, value }) => {
        const pool = poolFrom(nameIn(key), value);
        return this.servedOf(pool, own.filter(({ key }) => poolOf(key) === pool.name));
      });
    } catch (error) {
      if (!(error instanceof StoreSilent || error instanceof SyscallError)) throw error;
      say(error.message);
      this.silent ??= { since: Math.floor(preciseSecondsSinceBoot()), why: error.message };
    }
    const { silent } = this;
    this.served.write(
      this.known.map(({ silent: _, ...served }) => ({ ...served, ...silent !== undefined && { silent } })),
    );
    return silent === undefined;
  }

  /** The store of a cluster keeps that from every host; here each one looks for itself. */
  private refuseOthers(records: readonly Stored<PoolRecord>[]): void {
    const { files, store } = this.options, before = files.readPools();
    const now = records.map(keptPool);
    for (const { name, value } of now) {
      const earlier = before.find((each) => each.name === name);
      if (earlier === undefined || shapeOf(poolFrom(name, earlier.value)) === shapeOf(poolFrom(name, value))) {
        continue;
      }
      if (leasedAddresses(`${files.leases}/${name}`).length === 0) continue;
      throw new StoreSilent(
        `in ${store.name}, the ranges of pool ${name} have become others while containers have addresses of it: ` +
          "make a pool of another name instead",
      );
    }
    if (JSON.stringify(now) !== JSON.stringify(before)) files.savePools(now);
  }

  private servedOf(pool: ClusterPool, own: readonly Stored<BlockRecord>[]): ServedPool {
    const { node, store } = this.options;
    return {
      ...servedAddresses(pool, own.map(({ value }) => value.index)),
      node,
      store: store.name,
      blocks: { served: own.length, ripening: 0, closing: 0, unknown: 0 },
      obstacle: `${store.name} say which blocks are its own`,
    };
  }
}
