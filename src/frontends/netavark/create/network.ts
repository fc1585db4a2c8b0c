/** `create`: completes the network that a user asked for. Makes nothing; podman writes the result to a file. */
import { isV6 } from "../../../net/address.ts";
import type { Creation, PodmanNetwork } from "../../../interop/podman-documents/netavark.schema.ts";
import { isVlanDriver } from "../../../interop/podman-documents/drivers.ts";
import { inOrder, refuseBadRoutes, refuseOverlaps } from "../../../interop/podman-documents/network.ts";
import { finishBridge } from "./bridge.ts";
import { refuseBadIdentity, refuseBadInterfaceName, refuseBadIpam } from "./refusals.ts";
import type { CreationHost } from "./creation-host.ts";
import { finishSubnet } from "./subnet.ts";
import { finishVlan } from "./vlan.ts";

export function finishNetwork(
  { network: asked, used, options }: Creation,
  host: CreationHost,
): PodmanNetwork {
  // An empty name is as no name.
  const network = { ...asked, network_interface: asked.network_interface || undefined };
  refuseBadIdentity(network, used.names);
  if (network.network_interface !== undefined) refuseBadInterfaceName(network.network_interface);
  refuseBadIpam(network);
  const { network: finished, mayShareSubnets } = finishByDriver(
    network as PodmanNetwork,
    { network, used, options },
    host,
  );
  const dnsEnabled = finished.dns_enabled && finished.ipam_options?.["driver"] !== "none";
  if (finished.network_dns_servers !== undefined && !dnsEnabled) {
    throw new Error("cannot set NetworkDNSServers if DNS is not enabled for the network");
  }
  refuseOverlaps(finished.subnets ?? []);
  refuseBadRoutes(finished.routes ?? []);
  const wantsGateway = !finished.internal || dnsEnabled, taken = mayShareSubnets ? [] : used.subnets;
  const subnets = finished.subnets?.map((subnet) => finishSubnet(subnet, { wantsGateway, taken }));
  return inOrder({
    ...finished,
    dns_enabled: dnsEnabled,
    ipv6_enabled: finished.ipv6_enabled || subnets?.some(({ subnet }) => isV6(subnet)) === true,
    subnets,
    created: host.now().toISOString(),
  } as PodmanNetwork);
}

function finishByDriver(network: PodmanNetwork, creation: Creation, host: CreationHost) {
  const { driver } = network;
  if (driver === "bridge") return finishBridge(network, creation, host);
  const finished = isVlanDriver(driver) ? finishVlan(network, driver, host) : host.askForeignDriver(network);
  return { network: finished, mayShareSubnets: true };
}
