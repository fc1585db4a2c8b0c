/** The drivers `macvlan` and `ipvlan`: from podman's documents to the configuration of plugins/podman/netavark-vlan. */
import { readVlanOptions } from "../../documents/network-options.ts";
import netavarkVlan from "../../plugins/podman/netavark-vlan/netavark-vlan.ts";
import type { NetavarkVlanConf } from "../../plugins/podman/netavark-vlan/netavark-vlan.ts";
import { addressesOf, dhcpOf, hasDhcp, interfaceOf, resolversOf, routesOf } from "./addressing.ts";
import { told } from "./attachment.ts";
import { defaultParent } from "./default-parent.ts";
import type { Driver, Wanted } from "./driver.ts";

const DEFAULT_METRIC = 99;

export function vlanDriver(wanted: Wanted, kind: "macvlan" | "ipvlan"): Driver {
  const { network, attachment, isLeaving } = wanted;
  if (attachment.interface_name === "") throw new Error("no container interface name given");
  const options = readVlanOptions(kind, network.options), given = addressesOf(wanted);
  const metric = options.metric ?? DEFAULT_METRIC;
  const conf: NetavarkVlanConf = {
    cniVersion: "1.1.0",
    name: network.name,
    type: "netavark-vlan",
    link: kind === "macvlan"
      ? { kind, settings: { mode: options.mode, bccutoff: options.broadcastLimit } }
      : { kind, settings: { mode: options.mode } },
    master: network.network_interface || (isLeaving ? "" : defaultParent()),
    addresses: given.map(({ address, gateway }) => ({ address, gateway })),
    ...routesOf(wanted, { ...options, metric }),
    ipam: dhcpOf(wanted, options),
    mac: kind === "macvlan" ? attachment.static_mac : undefined,
    mtu: options.mtu,
  };
  return told(wanted, {
    plugin: netavarkVlan,
    conf,
    // A container's own servers are podman's matter, unless a DHCP server has some.
    status: (mac, result) => ({
      ...hasDhcp(network) ? resolversOf(wanted, result) : { dns_search_domains: [], dns_server_ips: [] },
      interfaces: { [attachment.interface_name]: interfaceOf(mac, result) },
    }),
  });
}
