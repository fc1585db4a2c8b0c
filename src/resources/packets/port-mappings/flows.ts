/**
 * Flows that connection tracking remembers. A client that keeps sending from one port keeps its entry, and with it the old
 * destination: after ADD the mapping would not be looked up, after DEL packets would still go to the container's address.
 * Clients of UDP do this, and many of SCTP. A new TCP connection takes another port.
 *
 * ADD forgets every UDP flow to the mapped ports of this host, whoever answered it, and every SCTP association that is not
 * established; flows to another host's port of that number are not its business. DEL forgets those that the container
 * answered. The kernel searches for a few; for many, all flows are listed.
 */
import { FAMILIES, type Family, protocolNumbers } from "../../../interop/iptables/rule.ts";
import {
  type ConnectionFilter,
  deleteConnections,
  deleteOneByOne,
  fits,
} from "../../../ffi/netlink/conntrack/connection.ts";
import { listAddresses } from "../../../ffi/netlink/route/address.ts";
import { AF_INET, AF_INET6 } from "../../../ffi/socket/socket.ts";
import { warn } from "../../../process/warn.ts";
import type { Host } from "../../../contract/host.ts";
import { addressOf, appliesTo, hostAddress, type PortMappingsSpec } from "./spec.ts";

/** The kernel compares every connection with each filter. */
const FEW = 8;

/** Only warns when it fails: a flow ends anyway when its client is silent for a while. */
export function forgetFlows(host: Host, spec: PortMappingsSpec, of: "everybody" | "container"): void {
  for (const family of FAMILIES) {
    try {
      const filters = filtersOf(spec, family, of, host);
      // The kernel compares no addresses of IPv6: each filter would be a listing.
      if (filters.length <= (family === 4 ? FEW : 1)) {
        for (const filter of filters) deleteConnections(host.netfilter, filter);
      } else deleteListed(host, family, filters);
    } catch (error) {
      warn(`flows to mapped ports may be stale: ${(error as Error).message}`);
    }
  }
}

function deleteListed({ netfilter }: Host, family: Family, filters: readonly ConnectionFilter[]): void {
  const byPort = new Map<number, ConnectionFilter[]>();
  for (const filter of filters) {
    byPort.getOrInsertComputed(keyOf(filter.protocol, filter.destinationPort), () => []).push(filter);
  }
  deleteOneByOne(netfilter, family, (connection) => {
    const { number = 0, destinationPort = 0 } = connection.original.protocol ?? {};
    return byPort.get(keyOf(number, destinationPort))?.some((filter) => fits(connection, filter)) === true;
  });
}

function keyOf(protocol: number, port: number): number {
  return protocol << 16 | port;
}

/** What the container answers came to this host. */
function filtersOf(
  spec: PortMappingsSpec,
  family: Family,
  of: "everybody" | "container",
  host: Host,
): ConnectionFilter[] {
  const answeredBy = of === "container" ? addressOf(spec, family)?.bytes : undefined;
  const filters: ConnectionFilter[] = [];
  let local: readonly (Uint8Array | undefined)[] | undefined;
  for (const mapping of spec.mappings) {
    if (mapping.protocol === "tcp" || !appliesTo(spec, mapping, family)) continue;
    const protocol = protocolNumbers[mapping.protocol], destinationPort = mapping.hostPort, at = hostAddress(mapping);
    const isUnassured = mapping.protocol === "sctp" && answeredBy === undefined;
    if (at === undefined) local ??= answeredBy === undefined ? addressesOf(host, family) : [undefined];
    for (const destination of at === undefined ? local! : [at]) {
      filters.push({ family, protocol, destinationPort, destination, answeredBy, isUnassured });
    }
  }
  return filters;
}

/** Each once: two links may have one address. */
function addressesOf({ route }: Host, family: Family): Uint8Array[] {
  const found = new Map<string, Uint8Array>();
  for (const { bytes } of listAddresses(route, 0, family === 4 ? AF_INET : AF_INET6)) found.set(bytes.toHex(), bytes);
  return [...found.values()];
}
