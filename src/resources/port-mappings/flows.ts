/**
 * UDP flows that connection tracking remembers. A client that keeps sending keeps its entry, and with it the destination
 * from before: after ADD the mapping would not be looked up, after DEL packets would still go to the container's address.
 *
 * On ADD every flow to the mapped ports is forgotten, whoever answered it, as by the reference plugin; on DEL those that
 * the container answered. A mapping or two are looked for by the kernel; for many, all flows are listed.
 */
import { protocolNumbers } from "../../ffi/iptables/rule.ts";
import {
  type ConnectionFilter,
  deleteConnections,
  deleteOneByOne,
  fits,
} from "../../ffi/netlink/conntrack/connection.ts";
import { warn } from "../../ffi/warn.ts";
import type { Host } from "../../engine/host.ts";
import { addressOf, appliesTo, hostAddress, type PortMappingsSpec } from "../port-mappings.ts";

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
          const filter = filters.get(connection.original.protocol?.destinationPort ?? 0);
          return filter !== undefined && fits(connection, filter);
        });
      }
    } catch (error) {
      warn(`UDP flows to mapped ports may be stale: ${(error as Error).message}`);
    }
  }
}

/** By port: two mappings of one port, for two addresses, are looked for as one for all. */
function filtersOf(
  spec: PortMappingsSpec,
  family: 4 | 6,
  answeredBy: Uint8Array | undefined,
): Map<number, ConnectionFilter> {
  const filters = new Map<number, ConnectionFilter>();
  for (const mapping of spec.mappings) {
    const { protocol, hostPort } = mapping;
    if (protocol !== "udp" || !appliesTo(spec, mapping, family)) continue;
    const destination = filters.has(hostPort) ? undefined : hostAddress(mapping);
    filters.set(hostPort, {
      family,
      protocol: protocolNumbers.udp,
      destinationPort: hostPort,
      destination,
      answeredBy,
    });
  }
  return filters;
}
