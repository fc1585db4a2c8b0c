/** What our plugins for podman's networks get from `setup`: a network's document, and what the command line says. */
import type {
  NetavarkConf,
  PodmanNetwork,
  PodmanPortMapping,
} from "../../../src/interop/podman-documents/netavark.schema.ts";
import { creation } from "./creation.ts";
import { published } from "./attached.ts";

export const v4 = { subnet: "10.8.0.0/24", gateway: "10.8.0.1" }, v6 = { subnet: "fd08::/64", gateway: "fd08::1" };

export function driverNetwork(more: Partial<PodmanNetwork> = {}): PodmanNetwork {
  const own = { id: "5ca1ab1e", dns_enabled: false, ipv6_enabled: true, network_interface: "podman1" };
  return creation({ ...own, subnets: [v4, v6], ...more }).network;
}

type Said = Partial<Omit<NetavarkConf, "network" | "network_options">> & {
  network?: Partial<PodmanNetwork>;
  options?: Record<string, string>;
  attachment?: Partial<NetavarkConf["network_options"]>;
};

/** The configuration of a container with the addresses 10.8.0.9 and fd08::9. */
export function driverConf({ network, options, attachment, ...more }: Said = {}) {
  return {
    network: driverNetwork({ ...options && { options }, ...network }),
    network_options: { interface_name: "eth0", static_ips: ["10.8.0.9", "fd08::9"], ...attachment },
    container_name: "web",
    configDirectory: "/run/nd",
    isRootless: true,
    firewall: "nftables" as const,
    dnsPort: 53,
    isolatesByDefault: true,
    ...more,
  };
}

export function mapping(more: Partial<PodmanPortMapping> = {}): PodmanPortMapping {
  return published(8080, 80, more);
}
