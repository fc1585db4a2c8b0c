/** A network as netavark writes it: keys in the order of its declaration, and none for what is not set. */
import type { PodmanNetwork as Network } from "../../documents/netavark.schema.ts";

export function inOrder(network: Network): Network {
  const { created, dns_enabled, driver, id, internal, ipv6_enabled, name, network_interface, options } = network;
  const { ipam_options, subnets, routes, network_dns_servers, labels } = network;
  return {
    ...created !== undefined && { created },
    dns_enabled,
    driver,
    id,
    internal,
    ipv6_enabled,
    name,
    ...network_interface !== undefined && { network_interface },
    ...options && { options },
    ...ipam_options && { ipam_options },
    ...subnets && {
      subnets: subnets.map(({ gateway, lease_range, subnet }) => ({
        ...gateway !== undefined && { gateway },
        ...lease_range && { lease_range: rangeInOrder(lease_range) },
        subnet,
      })),
    },
    ...routes && {
      routes: routes.map(({ gateway, destination, metric, route_type }) => ({
        ...gateway !== undefined && { gateway },
        destination,
        ...metric !== undefined && { metric },
        ...route_type !== undefined && { route_type },
      })),
    },
    ...network_dns_servers && { network_dns_servers },
    ...labels && { labels },
  };
}

function rangeInOrder({ end_ip, start_ip }: { end_ip?: string; start_ip?: string }) {
  return { ...end_ip !== undefined && { end_ip }, ...start_ip !== undefined && { start_ip } };
}
