/**
 * Flows that connection tracking remembers. A client that keeps sending from one port keeps its entry, and with it the old
 * destination: after ADD the mapping would not be looked up, after DEL packets would still go to the container's address.
 * Clients of UDP do this, and many of SCTP. A new TCP connection takes another port.
 *
 * ADD forgets every UDP flow to the mapped ports, whoever answered it, as the reference plugin does, and every SCTP
 * association that is not established. DEL forgets those that the container answered. The kernel searches for a few
 * mappings; for many, all flows are listed.
 */
import { FAMILIES, type Family, protocolNumbers } from "../../../iptables/rule.ts";
import {
  type ConnectionFilter,
  deleteConnections,
  deleteOneByOne,
  fits,
} from "../../../ffi/netlink/conntrack/connection.ts";
import { warn } from "../../../ffi/warn.ts";
import type { Host } from "../../../contract/host.ts";
import { addressOf, appliesTo, hostAddress, type PortMappingsSpec } from "./spec.ts";

/** The kernel compares every connection with each filter. */
const FEW = 4;

/** Only warns when it fails: a flow ends anyway when its client is silent for a while. */
export function forgetFlows(host: Host, spec: PortMappingsSpec, of: "everybody" | "container"): void {
  for (const family of FAMILIES) {
    const filters = filtersOf(spec, family, of === "container" ? addressOf(spec, family)?.bytes : undefined);
    try {
      if (filters.size <= FEW) { for (const [, filter] of filters) deleteConnections(host.netfilter, filter); }
      else {
        deleteOneByOne(host.netfilter, family, (connection) => {
          const { number = 0, destinationPort = 0 } = connection.original.protocol ?? {};
          const filter = filters.get(keyOf(number, destinationPort));
          return filter !== undefined && fits(connection, filter);
        });
      }
    } catch (error) {
      warn(`flows to mapped ports may be stale: ${(error as Error).message}`);
    }
  }
}

function keyOf(protocol: number, port: number): number {
  return protocol << 16 | port;
}

/** By protocol and port. Two mappings of one port, for two addresses of the host, become one filter for all addresses. */
function filtersOf(
  spec: PortMappingsSpec,
  family: Family,
  answeredBy: Uint8Array | undefined,
): Map<number, ConnectionFilter> {
  const filters = new Map<number, ConnectionFilter>();
  for (const mapping of spec.mappings) {
    if (mapping.protocol === "tcp" || !appliesTo(spec, mapping, family)) continue;
    const protocol = protocolNumbers[mapping.protocol], destinationPort = mapping.hostPort;
    const key = keyOf(protocol, destinationPort), destination = filters.has(key) ? undefined : hostAddress(mapping);
    const isUnassured = mapping.protocol === "sctp" && answeredBy === undefined;
    filters.set(key, { family, protocol, destinationPort, destination, answeredBy, isUnassured });
  }
  return filters;
}
