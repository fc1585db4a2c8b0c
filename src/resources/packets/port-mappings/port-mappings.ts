/**
 * Ports of the host that lead to a container: connections to them get the container's address and port as their
 * destination, and the host's address as their source where the answer would not come back otherwise.
 */
import { resource, type ResourceKind } from "../../../contract/resource.ts";
import { attemptAll } from "../../../contract/failures.ts";
import type { Host } from "../../../contract/host.ts";
import { nameOfTable } from "../../../ffi/netlink/nftables/table.ts";
import { Backends } from "../shared/backend.ts";
import { ownTables } from "../shared/own-tables.ts";
import { portClaimantOf, type PortMappingsSpec, sharedMappingChains } from "./spec.ts";
import type { Owner } from "../../../contract/owner.ts";

const chains = () => require("../shared/iptables-chains.ts") as typeof import("../shared/iptables-chains.ts");

export const backends = new Backends<PortMappingsSpec>("port mappings need", {
  iptables: () => (require("./iptables.ts") as typeof import("./iptables.ts")).backend,
  nftables: () => (require("./nftables.ts") as typeof import("./nftables.ts")).backend,
}, () => (require("./reference-nft.ts") as typeof import("./reference-nft.ts")).backend);

/** Else existing flows would still go where the port led before. TCP has no such flows, see flows.ts. */
function forgetFlows(spec: PortMappingsSpec, host: Host, of: "everybody" | "container"): void {
  for (const { protocol } of spec.mappings) {
    if (protocol !== "tcp") {
      return (require("./flows.ts") as typeof import("./flows.ts")).forgetFlows(host, spec, of);
    }
  }
}

export const portMappingsKind: ResourceKind<PortMappingsSpec> = {
  kind: "port-mappings",
  ...backends.verbs,
  apply(spec, host) {
    if (spec.addresses.length === 0) return;
    backends.apply(spec, host, () => portMappingsKind.remove(spec, host));
    forgetFlows(spec, host, "everybody");
  },
  remove(spec, host, isRestated) {
    attemptAll([
      () => backends.verbs.remove(spec, host, isRestated),
      () => forgetFlows(spec, host, "container"),
    ]);
  },
  retire(_retirement, specs, host) {
    const written = specs.filter(({ backend }) => backend === "iptables");
    return chains().sharedLeft("nat", written.flatMap(sharedMappingChains), host);
  },
  claimedPorts: portClaimantOf,
  ownTable: ({ backend }) => backend === "nftables" ? nameOfTable(ownTables["port-mappings"]) : undefined,
  gist: ({ mappings }) => ({
    ports: mappings.map(({ hostIp, hostPort, containerPort, protocol }) => {
      const host = hostIp === undefined ? "" : hostIp.includes(":") ? `[${hostIp}]:` : `${hostIp}:`;
      return `${host}${hostPort}->${containerPort}/${protocol}`;
    }),
  }),
  describe({ mappings, addresses, backend }) {
    const ports = mappings.slice(0, 3).map(({ hostPort, protocol, containerPort }) =>
      `${hostPort}/${protocol} → ${containerPort}`
    );
    const more = mappings.length > 3 ? `, and ${mappings.length - 3} more` : "";
    return `port ${ports.join(", ")}${more} of ${addresses.join(" and ") || "no address"} by ${backend}`;
  },
};

export const portMappings = resource(portMappingsKind);

/** Why port mappings cannot be made on this host, for STATUS; undefined when they can. */
export function obstacleToPortMappings(
  options: Omit<PortMappingsSpec, keyof Owner | "addresses" | "mappings">,
  host: Host,
): string | undefined {
  const { conditions } = options;
  const example: PortMappingsSpec = {
    ...options,
    network: "",
    containerId: "",
    ifName: "",
    addresses: ["192.0.2.1/32"],
    mappings: [{ protocol: "tcp", hostPort: 1, containerPort: 1 }],
    // Whichever ports the conditions are for.
    conditions: conditions?.[4] && { 4: { ...conditions[4], protocol: undefined, ports: undefined } },
  };
  return backends.obstacle(example, host);
}
