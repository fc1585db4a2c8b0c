/**
 * Flows that connection tracking remembers. A client that keeps sending from one port keeps its entry, and with it the
 * destination from before: after ADD the mapping would not be looked up, after DEL packets would still go to the
 * container's address. Clients of UDP do so, and many of SCTP; who opens a TCP connection takes another port.
 *
 * On ADD every UDP flow to the mapped ports is forgotten, whoever answered it, as by the reference plugin, and every SCTP
 * association that is not established; on DEL those that the container answered. A mapping or two are looked for by the
 * kernel; for many, all flows are listed.
 */
import { protocolNumbers } from "../../../iptables/rule.ts";
import {
  type ConnectionFilter,
  deleteConnections,
  deleteOneByOne,
  fits,
} from "../../../ffi/netlink/conntrack/connection.ts";
import { warn } from "../../../ffi/warn.ts";
import type { Host } from "../../../contract/host.ts";
import { addressOf, appliesTo, hostAddress, type PortMappingsSpec } from "./port-mappings.ts";

/** The kernel looks at every connection for each filter. */
const FEW = 4;

/** A flow that stays is no reason to fail: it ends when its client is silent for a while. */
export function forgetFlows(host: Host, spec: PortMappingsSpec, isLeaving: boolean): void {
  for (const family of [4, 6] as const) {
    const filters = filtersOf(spec, family, isLeaving ? addressOf(spec, family)?.bytes : undefined);
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

/** By protocol and port: two mappings of one port, for two addresses, are looked for as one for all. */
function filtersOf(
  spec: PortMappingsSpec,
  family: 4 | 6,
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
