/** A new network with the driver macvlan or ipvlan. */
import type { PodmanNetwork } from "../../../interop/podman-documents/netavark.schema.ts";
import type { VlanDriver } from "../../../interop/podman-documents/drivers.ts";
import { readVlanOptions, refuseUnknownVlanOptions } from "../../../interop/podman-documents/network-options.ts";
import type { CreationHost } from "./creation-host.ts";

export function finishVlan(network: PodmanNetwork, driver: VlanDriver, host: CreationHost): PodmanNetwork {
  const parent = network.network_interface;
  if (parent !== undefined && !host.linkNames().includes(parent)) {
    throw new Error(`parent interface ${parent} does not exist`);
  }
  const ipam = ipamFor(network, driver);
  refuseUnknownVlanOptions(driver, network.options);
  readVlanOptions(driver, network.options);
  // The container cannot reach the host, where aardvark-dns would listen.
  return { ...network, dns_enabled: false, ipam_options: { ...network.ipam_options, driver: ipam } };
}

/**
 * Without subnets, addresses come from a DHCP server on the parent's network. ipvlan links share a MAC address, so they
 * cannot use one.
 */
function ipamFor({ ipam_options: options, subnets = [] }: PodmanNetwork, driver: VlanDriver): string {
  const asked = options?.["driver"] ?? "";
  const ipam = asked !== "" ? asked : subnets.length > 0 ? "host-local" : "dhcp";
  if (ipam === "dhcp" && driver === "ipvlan") throw new Error("ipam driver dhcp is not supported with ipvlan");
  if (ipam === "dhcp" && subnets.length > 0) throw new Error("ipam driver dhcp set but subnets are set");
  if (ipam === "host-local" && subnets.length === 0) {
    throw new Error(
      `${driver} driver needs at least one subnet specified when the host-local ipam driver is set`,
    );
  }
  return ipam;
}
