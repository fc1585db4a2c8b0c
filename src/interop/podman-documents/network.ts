/** Checks of a network beyond its JSON types: addresses are addresses, numbers fit, subnets do not overlap. */
import {
  canonicalAddress,
  canonicalPrefix,
  hasHostBits,
  isV6,
  overlap,
  parsePrefix,
  type Prefix,
} from "../../net/address.ts";
import type { PodmanNetwork } from "./netavark.schema.ts";

const U32_MAX = 2 ** 32 - 1;

/** Returns the network with every address in its canonical form. `at` is its place in the document. */
export function checkedNetwork(network: PodmanNetwork, at: string): PodmanNetwork {
  const { subnets, routes, network_dns_servers: servers } = network;
  return {
    ...network,
    ...subnets && {
      subnets: subnets.map((subnet, index) => ({
        ...subnet,
        subnet: checkedPrefix(subnet.subnet, `${at}.subnets[${index}].subnet`),
        ...optional("gateway", subnet.gateway, `${at}.subnets[${index}].gateway`),
      })),
    },
    ...routes && {
      routes: routes.map((route, index) => ({
        ...route,
        destination: checkedPrefix(route.destination, `${at}.routes[${index}].destination`),
        ...optional("gateway", route.gateway, `${at}.routes[${index}].gateway`),
        ...route.metric !== undefined && {
          metric: checkedInteger(route.metric, U32_MAX, `${at}.routes[${index}].metric`),
        },
      })),
    },
    ...servers && { network_dns_servers: checkedAddresses(servers, `${at}.network_dns_servers`) },
  };
}

function optional<Key extends string>(key: Key, text: string | undefined, at: string) {
  return text === undefined ? {} : { [key]: checkedAddress(text, at) } as Record<Key, string>;
}

export function checkedAddresses(texts: readonly string[], at: string): string[] {
  return texts.map((text, index) => checkedAddress(text, `${at}[${index}]`));
}

export function checkedAddress(text: string, at: string): string {
  return canonicalAddress(text) ?? refuseAddress(text, at);
}

/** Host bits stay: the text names firewall chains. */
export function checkedPrefix(text: string, at: string): string {
  return canonicalPrefix(text) ?? refuseAddress(text, at);
}

function refuseAddress(text: string, at: string): never {
  throw new Error(`${JSON.stringify(at)}: invalid IP address syntax: ${JSON.stringify(text)}`);
}

export function checkedInteger(value: number, most: number, at: string): number {
  if (value >= 0 && value <= most) return value;
  throw new Error(`${JSON.stringify(at)} must be between 0 and ${most}, got ${value}`);
}

/** The prefix must have been checked. */
export function prefixOf(text: string): Prefix {
  return parsePrefix(text)!;
}

/** Two subnets of a network that overlap would each have a gateway for the other's addresses. */
export function refuseOverlaps(subnets: readonly { subnet: string }[]): void {
  const prefixes = subnets.map(({ subnet }) => prefixOf(subnet));
  for (let index = 0; index < subnets.length; index++) {
    for (let other = index + 1; other < subnets.length; other++) {
      const first = subnets[index]!.subnet, second = subnets[other]!.subnet;
      if (first === second) throw new Error(`duplicate subnet defined: ${first}`);
      if (overlap(prefixes[index]!, prefixes[other]!)) throw new Error(`overlapping subnets: ${first} and ${second}`);
    }
  }
}

const WITHOUT_GATEWAY = ["blackhole", "unreachable", "prohibit"];

/** Only a unicast route has a gateway. */
export function refuseBadRoutes(routes: NonNullable<PodmanNetwork["routes"]>): void {
  for (const { destination, gateway, route_type: type = "unicast" } of routes) {
    const prefix = prefixOf(destination);
    if (hasHostBits(prefix)) throw new Error(`route destination invalid: ${destination}`);
    if (type !== "" && type !== "unicast" && !WITHOUT_GATEWAY.includes(type)) {
      throw new Error(`invalid route type ${JSON.stringify(type)}`);
    }
    if (WITHOUT_GATEWAY.includes(type)) {
      if (gateway === undefined) continue;
      throw new Error(`route ${destination} must not have a gateway for type ${type}`);
    }
    if (gateway === undefined) throw new Error(`route ${destination} requires a gateway for type unicast`);
    const [to, via] = [destination, gateway].map((text) => isV6(text) ? "ipv6" : "ipv4");
    if (to !== via) {
      throw new Error(`route with ${to} destination and ${via} gateway (${destination} via ${gateway})`);
    }
  }
}

/** As netavark writes it: keys in the order of its declaration. JSON has none for what is not set. */
export function inOrder(network: PodmanNetwork): PodmanNetwork {
  const { created, dns_enabled, driver, id, internal, ipv6_enabled, name, network_interface, options } = network;
  const { ipam_options, subnets, routes, network_dns_servers, labels } = network;
  return {
    created,
    dns_enabled,
    driver,
    id,
    internal,
    ipv6_enabled,
    name,
    network_interface,
    options,
    ipam_options,
    subnets: subnets?.map(({ gateway, lease_range: range, subnet }) => ({
      gateway,
      lease_range: range && { end_ip: range.end_ip, start_ip: range.start_ip },
      subnet,
    })),
    routes: routes?.map(({ gateway, destination, metric, route_type }) => ({
      gateway,
      destination,
      metric,
      route_type,
    })),
    network_dns_servers,
    labels,
  };
}
