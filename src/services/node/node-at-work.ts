/** What those who look after blocks know of the agent. */
import type { ClusterNode } from "../../cluster/node.ts";
import type { ProtocolDriver } from "./driving.ts";
import type { ForeignHosts } from "./foreign-hosts.ts";
import type { NodePool } from "./pools.ts";

export interface NodeAtWork {
  readonly node: ClusterNode;
  readonly driver: ProtocolDriver;
  readonly pools: readonly NodePool[];
  readonly foreign: ForeignHosts;
  /** Unless they were looked at within so many seconds: then it is false. */
  refreshPools(withinS: number): Promise<boolean>;
  /** By block; an ADD may be under way. */
  countLeases(): Map<string, number>;
}
