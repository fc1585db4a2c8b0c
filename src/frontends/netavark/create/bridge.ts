/** A new network with the driver bridge. */
import type { Creation, PodmanNetwork } from "../../../interop/podman-documents/netavark.schema.ts";
import { readBridgeOptions, refuseUnknownBridgeOptions } from "../../../interop/podman-documents/network-options.ts";
import type { CreationHost } from "./creation-host.ts";
import { freeSubnet4, freeSubnet6 } from "../../../interop/podman-documents/free-subnet.ts";
import { refuseBadBridgeName, refuseBadInterfaceName } from "./refusals.ts";

const DOCKER_MTU = "com.docker.network.driver.mtu", DOCKER_NAME = "com.docker.network.bridge.name";
const MOST_NAMES = 1_000_000;

export function finishBridge(
  asked: PodmanNetwork,
  { used, options: { subnet_pools: pools, check_used_subnets: checks, default_interface_name: prefix } }: Creation,
  host: CreationHost,
): { network: PodmanNetwork; mayShareSubnets: boolean } {
  const network = withoutDockerNames(asked);
  refuseUnknownBridgeOptions(network.options);
  const { vlan, mode } = readBridgeOptions(network.options);
  // Networks in VLANs share a bridge, and an unmanaged bridge belongs to the host.
  const isShared = vlan !== undefined || mode === "unmanaged", mayShareSubnets = isShared || !checks;
  const bridge = network.network_interface ?? freeName(prefix, used, host);
  if (!isShared && used.interfaces.includes(bridge)) throw new Error(`bridge name ${bridge} already in use`);
  refuseBadBridgeName(bridge);
  refuseBadInterfaceName(bridge);
  const finished = { ...network, network_interface: bridge };
  const ipam = network.ipam_options?.["driver"] || "host-local";
  if (ipam !== "host-local") return { network: finished, mayShareSubnets };
  const subnets = [...network.subnets ?? []],
    has = (text: string) => subnets.some(({ subnet }) => subnet.includes(text));
  if (subnets.length === 0 || (network.ipv6_enabled && !has("."))) {
    subnets.push({ subnet: freeSubnet4(pools, mayShareSubnets ? [] : used.subnets) });
  }
  if (network.ipv6_enabled && !has(":")) subnets.push({ subnet: freeSubnet6(used.subnets, host.random) });
  return {
    network: { ...finished, subnets, ipam_options: { ...network.ipam_options, driver: "host-local" } },
    mayShareSubnets,
  };
}

/** Translates Docker's names of options. */
function withoutDockerNames(network: PodmanNetwork): PodmanNetwork {
  if (network.options === undefined) return network;
  const { [DOCKER_MTU]: mtu, [DOCKER_NAME]: name, ...options } = network.options;
  if (name !== undefined) refuseBadInterfaceName(name);
  return {
    ...network,
    options: mtu === undefined ? options : { ...options, mtu },
    ...name !== undefined && { network_interface: name },
  };
}

/** The first name that no link, no bridge of another network and no network has. */
function freeName(
  prefix: string | undefined,
  { interfaces, names }: Creation["used"],
  host: CreationHost,
): string {
  if (prefix === undefined) throw new Error("default interface name is not set");
  const taken = new Set([...host.linkNames(), ...interfaces, ...Object.keys(names)]);
  for (let number = 1; number < MOST_NAMES; number++) {
    if (!taken.has(`${prefix}${number}`)) return `${prefix}${number}`;
  }
  throw new Error(`Could not find a free device name after ${MOST_NAMES} attempts`);
}
