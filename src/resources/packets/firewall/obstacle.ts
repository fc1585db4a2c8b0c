/** Why a backend cannot be used on this host, for STATUS; undefined when it can. */
import type { Host } from "../../../contract/host.ts";
import { backends } from "./firewall.ts";
import type { FirewallBackend, FirewallSpec } from "./spec.ts";

export function obstacleTo(backend: FirewallBackend, ingressPolicy: string, host: Host): string | undefined {
  const example: FirewallSpec = {
    backend,
    network: "",
    containerId: "",
    ifName: "",
    addresses: ["192.0.2.1"],
    adminChain: "CNI-ADMIN",
    zone: "",
    ingress: ingressPolicy === "" || ingressPolicy === "open" ? undefined : { policy: "isolated", bridge: "br0" },
  };
  return backends.obstacle(example, host);
}
