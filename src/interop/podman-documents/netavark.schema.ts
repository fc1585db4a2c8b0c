/**
 * What podman and buildah send on stdin, to netavark and to its plugins. Unknown keys are ignored, and null means
 * absent, as in netavark. All values of options are strings, also numbers and booleans.
 */
import { z } from "zod";

const texts = z.record(z.string(), z.string());

const subnet = z.object({
  subnet: z.string(),
  gateway: z.string().optional(),
  lease_range: z.object({ start_ip: z.string().optional(), end_ip: z.string().optional() }).optional(),
});

const route = z.object({
  destination: z.string(),
  gateway: z.string().optional(),
  metric: z.int().optional(),
  route_type: z.string().optional(),
});

const networkKeys = {
  name: z.string(),
  id: z.string(),
  driver: z.string(),
  created: z.string().optional(),
  dns_enabled: z.boolean(),
  internal: z.boolean(),
  ipv6_enabled: z.boolean(),
  network_interface: z.string().optional(),
  options: texts.optional(),
  ipam_options: texts.optional(),
  subnets: z.array(subnet).optional(),
  routes: z.array(route).optional(),
  network_dns_servers: z.array(z.string()).optional(),
  labels: texts.optional(),
};

/** A network as podman keeps it in a file. */
export const podmanNetwork = z.object(networkKeys);
export type PodmanNetwork = z.infer<typeof podmanNetwork>;

const attachmentKeys = {
  interface_name: z.string(),
  aliases: z.array(z.string()).optional(),
  static_ips: z.array(z.string()).optional(),
  static_mac: z.string().optional(),
  options: texts.optional(),
};

/** What one container wants of one network. */
const attachment = z.object(attachmentKeys);
export type NetworkAttachment = z.infer<typeof attachment>;

const portMapping = z.object({
  container_port: z.int(),
  host_port: z.int(),
  range: z.int(),
  host_ip: z.string(),
  protocol: z.string(),
});
export type PodmanPortMapping = z.infer<typeof portMapping>;

/** stdin of a plugin's `setup` and `teardown`. */
export const pluginCall = z.object({
  container_id: z.string(),
  container_name: z.string(),
  port_mappings: z.array(portMapping).optional(),
  network: podmanNetwork,
  network_options: attachment,
});
export type PluginCall = z.infer<typeof pluginCall>;

/** stdin of `netavark setup` and `teardown`; `networks` is read by itself, because it has two forms. */
export const containerCall = z.object({
  container_id: z.string(),
  container_name: z.string(),
  container_hostname: z.string().optional(),
  port_mappings: z.array(portMapping).optional(),
  dns_servers: z.array(z.string()).optional(),
  network_info: z.record(z.string(), podmanNetwork),
});
export type ContainerCall = z.infer<typeof containerCall>;

/** One entry of `networks` as podman 6 sends it; podman 4 and 5 send a map from the name to the rest. */
export const namedAttachment = z.object({ name: z.string(), ...attachmentKeys });
export type NamedAttachment = z.infer<typeof namedAttachment>;

/**
 * The configuration of our plugins for podman's networks: one network of a container as podman describes it, and what the
 * command line says. The ledger keeps it.
 */
export const netavarkConf = z.object({
  cniVersion: z.string(),
  name: z.string(),
  type: z.string(),
  /** The configuration of the plugin dhcp. */
  ipam: z.object({ type: z.string() }).optional(),
  network: podmanNetwork,
  network_options: attachment,
  container_name: z.string(),
  port_mappings: z.array(portMapping).optional(),
  dns_servers: z.array(z.string()).optional(),
  /** The directory of --config. */
  configDirectory: z.string(),
  isRootless: z.boolean(),
  firewall: z.enum(["nftables", "firewalld", "none"]),
  dnsPort: z.int(),
  /** Whether a network is isolated that does not say it: podman before 6 expects no isolation. */
  isolatesByDefault: z.boolean(),
  /** Undefined where containers have no names. */
  aardvarkBinary: z.string().optional(),
});
export type NetavarkConf = z.infer<typeof netavarkConf>;

/** stdin of `netavark create`. */
export const creation = z.object({
  network: podmanNetwork,
  used: z.object({
    interfaces: z.array(z.string()),
    names: texts,
    subnets: z.array(z.string()),
  }),
  options: z.object({
    subnet_pools: z.array(z.object({ base: z.string(), size: z.int() })),
    default_interface_name: z.string().optional(),
    check_used_subnets: z.boolean(),
  }),
});
export type Creation = z.infer<typeof creation>;

/** stdout of a plugin's `setup`; every key may be null. */
export const pluginStatus = z.object({
  dns_search_domains: z.array(z.string()).optional(),
  dns_server_ips: z.array(z.string()).optional(),
  interfaces: z.record(
    z.string(),
    z.object({
      mac_address: z.string(),
      subnets: z.array(z.object({ ipnet: z.string(), gateway: z.string().optional() })).optional(),
    }),
  ).optional(),
});
export type PluginStatus = z.infer<typeof pluginStatus>;
