/** The container's names in aardvark-dns, and where aardvark-dns listens. */
import type { NetavarkConf, PodmanNetwork } from "../../../interop/podman-documents/netavark.schema.ts";
import { listAddresses } from "../../../ffi/netlink/route/address.ts";
import { linkIndex } from "../../../ffi/netlink/route/link.ts";
import { NETLINK_ROUTE, openNetlink } from "../../../ffi/netlink/socket.ts";
import { formatAddress, isLinkLocal, isV6 } from "../../../net/address.ts";
import type { NamesSpec } from "../../../resources/netavark/aardvark-names/spec.ts";
import { namesDirectory } from "../../../resources/netavark/shared/config-directory.ts";
import { NO_UNMANAGED_BRIDGE } from "../../../resources/netavark/shared/failure.ts";
import { gatewaysOf, type GivenAddress } from "../shared/addresses.ts";

/** Returns undefined for a network without names. */
export function namesOf(
  conf: NetavarkConf,
  containerId: string,
  given: readonly GivenAddress[],
  gateways: readonly string[],
): NamesSpec | undefined {
  const { network, network_options, aardvarkBinary, configDirectory, isRootless } = conf;
  if (!network.dns_enabled || aardvarkBinary === undefined) return undefined;
  const addresses = given.map(({ address }) => address.slice(0, address.indexOf("/")));
  return {
    directory: namesDirectory(configDirectory),
    binary: aardvarkBinary,
    port: conf.dnsPort,
    isRootless,
    containerId,
    servers: conf.dns_servers ?? [],
    networks: [{
      name: network.name,
      isInternal: network.internal,
      gateways,
      servers: network.network_dns_servers ?? [],
      addresses4: addresses.filter((each) => !isV6(each)),
      addresses6: addresses.filter(isV6),
      names: [conf.container_name, ...network_options.aliases ?? []],
    }],
  };
}

/** Empty for a network without names. For an unmanaged bridge, the addresses that it has. */
export function dnsServersOf(network: PodmanNetwork, isManaged: boolean): string[] {
  if (!network.dns_enabled) return [];
  return isManaged ? gatewaysOf(network) : addressesOf(network.network_interface!);
}

function addressesOf(bridge: string): string[] {
  const socket = openNetlink(NETLINK_ROUTE);
  try {
    const index = linkIndex(socket, bridge);
    if (index === undefined) throw new Error(NO_UNMANAGED_BRIDGE);
    const addresses = listAddresses(socket, index);
    const usable = addresses.filter(({ bytes }) => bytes.length === 4 || !isLinkLocal(bytes));
    if (usable.length > 0) return usable.map(({ bytes }) => formatAddress(bytes));
  } finally {
    socket.close();
  }
  throw new Error(
    `bridge '${bridge}' in unmanaged mode has no usable IP addresses. Aardvark-dns requires at least one ` +
      "address (should not be an IPv6 link-local address) to bind to. Please add an IP address or disable DNS for " +
      "this network (--disable-dns).",
  );
}
