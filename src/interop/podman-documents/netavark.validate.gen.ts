// Generated from netavark.schema.ts by compile/validators.ts; change those.
import { boolean, choice, integer, list, map, objectOf, string } from "../../cni/decode.ts";
import type { PodmanNetwork, PluginCall, ContainerCall, NamedAttachment, NetavarkConf, PluginStatus, Creation } from "./netavark.schema.ts";

const podmanNetworkSubnetsItemLeaseRange = objectOf({
  start_ip: string,
  end_ip: string,
}, {});

const podmanNetworkSubnetsItem = objectOf({
  subnet: string,
  gateway: string,
  lease_range: podmanNetworkSubnetsItemLeaseRange,
}, {}, "subnet");

const podmanNetworkRoutesItem = objectOf({
  destination: string,
  gateway: string,
  metric: integer,
  route_type: string,
}, {}, "destination");

const podmanNetwork = objectOf({
  name: string,
  id: string,
  driver: string,
  created: string,
  dns_enabled: boolean,
  internal: boolean,
  ipv6_enabled: boolean,
  network_interface: string,
  options: (value, at) => map(value, at, string),
  ipam_options: (value, at) => map(value, at, string),
  subnets: (value, at) => list(value, at, podmanNetworkSubnetsItem),
  routes: (value, at) => list(value, at, podmanNetworkRoutesItem),
  network_dns_servers: (value, at) => list(value, at, string),
  labels: (value, at) => map(value, at, string),
}, {}, "name", "id", "driver", "dns_enabled", "internal", "ipv6_enabled");

const pluginCallPortMappingsItem = objectOf({
  container_port: integer,
  host_port: integer,
  range: integer,
  host_ip: string,
  protocol: string,
}, {}, "container_port", "host_port", "range", "host_ip", "protocol");

const pluginCallNetworkOptions = objectOf({
  interface_name: string,
  aliases: (value, at) => list(value, at, string),
  static_ips: (value, at) => list(value, at, string),
  static_mac: string,
  options: (value, at) => map(value, at, string),
}, {}, "interface_name");

const pluginCall = objectOf({
  container_id: string,
  container_name: string,
  port_mappings: (value, at) => list(value, at, pluginCallPortMappingsItem),
  network: podmanNetwork,
  network_options: pluginCallNetworkOptions,
}, {}, "container_id", "container_name", "network", "network_options");

const containerCall = objectOf({
  container_id: string,
  container_name: string,
  container_hostname: string,
  port_mappings: (value, at) => list(value, at, pluginCallPortMappingsItem),
  dns_servers: (value, at) => list(value, at, string),
  network_info: (value, at) => map(value, at, podmanNetwork),
}, {}, "container_id", "container_name", "network_info");

const namedAttachment = objectOf({
  name: string,
  interface_name: string,
  aliases: (value, at) => list(value, at, string),
  static_ips: (value, at) => list(value, at, string),
  static_mac: string,
  options: (value, at) => map(value, at, string),
}, {}, "name", "interface_name");

const netavarkConfIpam = objectOf({
  type: string,
}, {}, "type");

const netavarkConf = objectOf({
  cniVersion: string,
  name: string,
  type: string,
  ipam: netavarkConfIpam,
  network: podmanNetwork,
  network_options: pluginCallNetworkOptions,
  container_name: string,
  port_mappings: (value, at) => list(value, at, pluginCallPortMappingsItem),
  dns_servers: (value, at) => list(value, at, string),
  configDirectory: string,
  isRootless: boolean,
  firewall: (value, at) => choice(value, at, ["nftables","firewalld","none"] as const, () => `is not supported`),
  dnsPort: integer,
  isolatesByDefault: boolean,
  aardvarkBinary: string,
}, {}, "cniVersion", "name", "type", "network", "network_options", "container_name", "configDirectory", "isRootless", "firewall", "dnsPort", "isolatesByDefault");

const pluginStatusInterfacesValueSubnetsItem = objectOf({
  ipnet: string,
  gateway: string,
}, {}, "ipnet");

const pluginStatusInterfacesValue = objectOf({
  mac_address: string,
  subnets: (value, at) => list(value, at, pluginStatusInterfacesValueSubnetsItem),
}, {}, "mac_address");

const pluginStatus = objectOf({
  dns_search_domains: (value, at) => list(value, at, string),
  dns_server_ips: (value, at) => list(value, at, string),
  interfaces: (value, at) => map(value, at, pluginStatusInterfacesValue),
}, {});

const creationUsed = objectOf({
  interfaces: (value, at) => list(value, at, string),
  names: (value, at) => map(value, at, string),
  subnets: (value, at) => list(value, at, string),
}, {}, "interfaces", "names", "subnets");

const creationOptionsSubnetPoolsItem = objectOf({
  base: string,
  size: integer,
}, {}, "base", "size");

const creationOptions = objectOf({
  subnet_pools: (value, at) => list(value, at, creationOptionsSubnetPoolsItem),
  default_interface_name: string,
  check_used_subnets: boolean,
}, {}, "subnet_pools", "check_used_subnets");

const creation = objectOf({
  network: podmanNetwork,
  used: creationUsed,
  options: creationOptions,
}, {}, "network", "used", "options");

export function decodeNetwork(document: unknown): PodmanNetwork {
  return podmanNetwork(document ?? {}, "");
}

export function decodePluginCall(document: unknown): PluginCall {
  return pluginCall(document ?? {}, "");
}

export function decodeContainerCall(document: unknown): ContainerCall {
  return containerCall(document ?? {}, "");
}

export function decodeNamedAttachment(document: unknown): NamedAttachment {
  return namedAttachment(document ?? {}, "");
}

export function decodeNetavarkConf(document: unknown): NetavarkConf {
  return netavarkConf(document ?? {}, "");
}

export function decodePluginStatus(document: unknown): PluginStatus {
  return pluginStatus(document ?? {}, "");
}

export function decodeCreation(document: unknown): Creation {
  return creation(document ?? {}, "");
}
