/** What stands in the way of port mappings on this host, for STATUS. */
import type { Host } from "../../../contract/host.ts";
import type { Owner } from "../../../contract/owner.ts";
import { obstacleToIptables, obstacleToNftables } from "../netfilter-obstacle.ts";
import type { PortMappingsSpec } from "./port-mappings.ts";
import { everyRule, lacksChain, missingChain } from "./iptables.ts";
import { planApply } from "./nftables.ts";
import { table } from "./nft-structure.ts";

export function obstacleTo(
  options: Omit<PortMappingsSpec, keyof Owner | "addresses" | "mappings">,
  host: Host,
): string | undefined {
  const { backend, conditions, setMarkChain } = options;
  const nobody: PortMappingsSpec = {
    ...options,
    network: "",
    containerId: "",
    ifName: "",
    addresses: ["192.0.2.1/32"],
    mappings: [{ protocol: "tcp", hostPort: 1, containerPort: 1 }],
    // Whatever the ports that are meant.
    conditions: conditions?.[4] && { 4: { ...conditions[4], protocol: undefined, ports: undefined } },
  };
  if (backend === "nftables") return obstacleToNftables(host, table, (socket) => planApply(socket, nobody));
  const obstacle = obstacleToIptables(host, everyRule(nobody, 4));
  if (obstacle !== undefined || !setMarkChain) return obstacle;
  const family = lacksChain(host, setMarkChain, [4, 6]);
  return family && missingChain(setMarkChain, family).message;
}
