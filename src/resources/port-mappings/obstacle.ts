/** What stands in the way of port mappings on this host, for STATUS. */
import type { Host } from "../../engine/host.ts";
import { obstacleTo as obstacleToRules } from "../firewall-backend.ts";
import { lacksChain } from "./iptables.ts";

export function obstacleTo(
  backend: "nftables" | "iptables",
  host: Host,
  setMarkChain: string | undefined,
): string | undefined {
  const obstacle = obstacleToRules(backend, host);
  if (obstacle !== undefined || !setMarkChain) return obstacle;
  const family = lacksChain(host, setMarkChain, [4, 6]);
  if (family === undefined) return undefined;
  return `externalSetMarkChain "${setMarkChain}" is not in the table nat of ${
    family === 4 ? "iptables" : "ip6tables"
  }`;
}
