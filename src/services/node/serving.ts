/** What ADD is told of a pool: a file for each, from what the agent knows. */
import type { ClusterNode } from "../../cluster/node.ts";
import type { Grant } from "../../cluster/effects.ts";
import { indexOf, poolOf } from "../../cluster/records.ts";
import { servedAddresses } from "../../cluster/served.ts";
import type { ServedPool } from "../../cluster/served-file.ts";
import type { ProtocolDriver } from "./driving.ts";
import type { NodeFiles } from "./files.ts";
import type { NodePool } from "./pools.ts";

/** Writes what has changed, and nothing else. */
export class ServedFiles {
  private readonly written = new Map<string, string>();

  constructor(private readonly files: NodeFiles) {}

  write(served: readonly ServedPool[]): void {
    for (const each of served) {
      const text = JSON.stringify(each);
      if (this.written.get(each.pool) === text) continue;
      this.files.writeServed(each);
      this.written.set(each.pool, text);
    }
    const names = new Set(served.map(({ pool }) => pool));
    for (const pool of this.files.servedPools()) {
      if (names.has(pool)) continue;
      this.files.removeServed(pool);
      this.written.delete(pool);
    }
  }
}

export interface ServedState {
  node: ClusterNode;
  driver: ProtocolDriver;
  /** The store's, for sentences. */
  store: string;
  /** Pools of which every block has an owner. */
  full: ReadonlySet<string>;
  /** The node that has an address that ADD has asked for, by pool. */
  ofOthers: ReadonlyMap<string, ReadonlyMap<string, string>>;
  foreignOf(pool: string): string[];
  probeProblems: ReadonlyMap<string, string>;
}

export function servedPool(
  { name, pool, obstacle }: NodePool,
  { node, driver, store, full, ofOthers, foreignOf, probeProblems }: ServedState,
  grants: readonly Grant[],
  isServed: (grant: Grant) => boolean,
): ServedPool {
  const own = grants.filter(({ key }) => poolOf(key) === name), served = own.filter(isServed);
  const count = (state: Grant["state"]) => own.filter((grant) => grant.state === state).length;
  const unasked = pool.probedLink === undefined ? undefined : probeProblems.get(name);
  const why = obstacle ?? obstacleOf(node, driver) ?? (node.earlierPools.has(name) ? EARLIER : unasked);
  const others = ofOthers.get(name) ?? new Map<string, string>();
  return {
    ...servedAddresses(pool, served.map(({ key }) => indexOf(key)), foreignOf(name)),
    node: node.self.node,
    store,
    ...others.size > 0 && { ofOthers: Object.fromEntries(others) },
    blocks: {
      served: served.length,
      ripening: count("held") - served.length,
      closing: count("closing"),
      unknown: count("unknown"),
    },
    ...why !== undefined && { obstacle: why },
    ...full.has(name) && { isFull: true },
    ...driver.silent !== undefined && { silent: driver.silent },
  };
}

const EARLIER = "nodes have blocks of an earlier pool of this name, which they have to give back first";

/** Why no block comes to this node, whichever the pool. */
export function obstacleOf({ standing, self }: ClusterNode, { alarm }: ProtocolDriver): string | undefined {
  switch (standing) {
    case "draining":
      return `node ${self.node} is draining`;
    case "contested":
      return `two machines that run say that they are node ${self.node}: 'patchbay node list' shows it`;
    case "refused":
      return `another machine is node ${self.node} in the store: 'patchbay node check' says which`;
    case "away":
    case "joined":
      return alarm &&
        `${alarm.by} has raised the alarm (${alarm.saw}): 'patchbay node check' shows who has lost what`;
  }
}
