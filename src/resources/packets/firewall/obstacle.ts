/** What stands in the way of a backend on this host, for STATUS. */
import type { Host } from "../../../contract/host.ts";
import type { FirewallSpec } from "./firewall.ts";
import type { FirewallBackend } from "./backend.ts";
import { obstacleToIptables, obstacleToNftables } from "../netfilter-obstacle.ts";
import { whyNotRunning } from "./firewalld.ts";
import { everyRule } from "./iptables.ts";
import { planApply, table } from "./nftables.ts";

export function obstacleTo(backend: FirewallBackend, ingressPolicy: string, host: Host): string | undefined {
  const nobody: FirewallSpec = {
    backend,
    network: "",
    containerId: "",
    ifName: "",
    addresses: ["192.0.2.1"],
    adminChain: "CNI-ADMIN",
    zone: "",
    ingress: ingressPolicy === "" || ingressPolicy === "open" ? undefined : { policy: "isolated", bridge: "br0" },
  };
  if (backend === "nftables") return obstacleToNftables(host, table, (socket) => planApply(socket, nobody));
  const stopped = backend === "firewalld" ? whyNotRunning() : undefined, rules = everyRule(nobody);
  return stopped ?? (rules.length === 0 ? undefined : obstacleToIptables(host, rules));
}
