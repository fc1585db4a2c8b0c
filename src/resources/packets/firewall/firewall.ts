/**
 * Forwarding for a container's addresses: what it sends may leave and answers may come back, whatever happens to other
 * forwarded packets; and which bridges may reach it (`ingressPolicy`).
 */
import { resource, type ResourceKind } from "../../../contract/resource.ts";
import { nameOfTable } from "../../../ffi/netlink/nftables/table.ts";
import { Backends } from "../shared/backend.ts";
import { ownTables } from "../shared/own-tables.ts";
import { type FirewallBackend, type FirewallSpec, KIND, type MadeChains, sharedFirewallChains } from "./spec.ts";
import type { Host } from "../../../contract/host.ts";

const iptables = () => require("./iptables.ts") as typeof import("./iptables.ts");
const chains = () => require("../shared/iptables-chains.ts") as typeof import("../shared/iptables-chains.ts");

export const backends = new Backends<FirewallSpec, MadeChains>("firewall needs", {
  iptables: () => iptables().backend,
  nftables: () => (require("./nftables.ts") as typeof import("./nftables.ts")).backend,
  firewalld: () => (require("./firewalld.ts") as typeof import("./firewalld.ts")).backend,
});

export const firewallKind: ResourceKind<FirewallSpec, MadeChains> = {
  kind: KIND,
  unmade: {},
  apply(spec, host) {
    const made: MadeChains = {};
    host.useShared();
    backends.apply(spec, host, () => firewallKind.undo!(spec, made, host), made);
    return made;
  },
  ...backends.verbs,
  undo(spec, made, host) {
    firewallKind.remove(spec, host);
    if (Object.keys(made).length === 0 || !host.isAloneWithShared()) return;
    // The rules of attachments made by firewalld, or before there were ledgers, do not show in the chains.
    if (host.recordedByOthers(KIND, spec).length === 0) iptables().removeChains(host, spec, made);
  },
  ownTable: ({ backend, ingress }) =>
    backend === "nftables" || ingress?.isKnownToAll ? nameOfTable(ownTables.firewall) : undefined,
  retire: ({ isDryRun, before }, specs, host) => [
    ...before.filter(({ link, staysBecause }) => link !== undefined && staysBecause === undefined)
      .filter(({ link }) => iptables().removeIsolation(link!, host, isDryRun))
      .map(({ link }) => ({ what: `rules of iptables for bridge ${link}` })),
    ...chains().sharedLeft("filter", specs.flatMap(sharedFirewallChains), host),
  ],
  describe({ backend, addresses, ingress }) {
    const reached = ingress === undefined ? "" : `, ${ingress.policy} on ${ingress.bridge}`;
    return `forwarding for ${addresses.join(" and ")} by ${backend}${reached}`;
  },
};

export const firewall = resource(firewallKind);

/** Why a backend cannot be used on this host, for STATUS; undefined when it can. */
export function obstacleToFirewall(backend: FirewallBackend, ingressPolicy: string, host: Host): string | undefined {
  const example: FirewallSpec = {
    backend,
    network: "",
    containerId: "",
    ifName: "",
    addresses: ["192.0.2.1"],
    adminChain: "CNI-ADMIN",
    zone: "",
    ingress: ingressPolicy === "" || ingressPolicy === "open"
      ? undefined
      : { policy: "isolated", bridge: "br0", isKnownToAll: true },
  };
  return backends.obstacle(example, host);
}
