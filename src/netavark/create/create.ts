/** `create`: finishes the network that a user asked for. Nothing is made; podman writes the answer into a file. */
import type { Creation, PodmanNetwork as Network } from "../../documents/netavark.schema.ts";
import { refuseBadRoutes, refuseOverlaps } from "../../documents/network.ts";
import { isV6 } from "../../net/address.ts";
import { inOrder } from "../wire/network-document.ts";
import { finishBridge } from "./bridge.ts";
import type { Place } from "./place.ts";
import { refuseBadIdentity, refuseBadInterfaceName, refuseBadIpam } from "./refusals.ts";
import { finishSubnet } from "./subnet.ts";
import { finishVlan } from "./vlan.ts";

export function createNetwork({ network: asked, used, options }: Creation, place: Place): Network {
  // An empty name is none.
  const network = { ...asked, network_interface: asked.network_interface || undefined };
  refuseBadIdentity(network, used.names);
  if (network.network_interface !== undefined) refuseBadInterfaceName(network.network_interface);
  refuseBadIpam(network);
  const { network: finished, mayShareSubnets } = finishByDriver(
    network as Network,
    { network, used, options },
    place,
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
    created: place.now().toISOString(),
  } as Network);
}

function finishByDriver(network: Network, creation: Creation, place: Place) {
  switch (network.driver) {
    case "bridge":
      return finishBridge(network, creation, place);
    case "macvlan":
    case "ipvlan":
      return { network: finishVlan(network, network.driver, place), mayShareSubnets: true };
    default:
      return { network: place.askPlugin(network), mayShareSubnets: true };
  }
}
