/**
 * One network with netavark's driver `macvlan` or `ipvlan`: a link of its own on a link of the host. Only `src/frontends/netavark`
 * calls it: the configuration is podman's own document.
 */
import type { Result } from "../../../cni/result.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import type { NetavarkConf } from "../../../interop/podman-documents/netavark.schema.ts";
import { decodeNetavarkConf } from "../../../interop/podman-documents/netavark.validate.gen.ts";
import type { VlanDriver } from "../../../interop/podman-documents/drivers.ts";
import { readVlanOptions } from "../../../interop/podman-documents/network-options.ts";
import type { Host } from "../../../contract/host.ts";
import { getLink } from "../../../ffi/netlink/route/link.ts";
import { bringUpLoopback } from "../../../ffi/netlink/route/loopback.ts";
import { defaultRoute } from "../../../ffi/netlink/route/route.ts";
import { randomMac } from "../../../ffi/random.ts";
import { announcing } from "../../../resources/address/announcement.ts";
import { containerLink, freshBirthName, type LinkType } from "../../../resources/link/container-link.ts";
import { freshIndex } from "../../../resources/link/shared/usable.ts";
import { addressed, givenAddresses, hasDhcp, resolversOf } from "../shared/addresses.ts";

const DEFAULT_METRIC = 99;

export default definePlugin<NetavarkConf>({
  name: "netavark-vlan",
  validate: decodeNetavarkConf,
  judge: (conf) => void readDocument(conf, false),
  add,
});

function add(at: Attachment<NetavarkConf>): Result {
  const { conf, ifName, host } = at, { kind, options, given } = readDocument(conf, at.purpose === "undo");
  const master = conf.network.network_interface || (at.inAdd(() => defaultParent(host)) ?? "");
  const type: LinkType = kind === "macvlan"
    ? { kind, settings: { mode: options.mode, bccutoff: options.broadcastLimit } }
    : { kind, settings: { mode: options.mode } };
  const ipam = at.ipam();
  at.inAdd(() => bringUpLoopback(host.container!.route));
  const { mac } = at.apply(containerLink({
    ifName,
    type,
    mac: macOf(at, type),
    mtu: options.mtu,
    master: { name: master, inContainer: false },
    birthName: at.choose(() => freshBirthName(ifName, host), () => ""),
    index: at.choose(freshIndex, () => undefined),
  }));
  const sysctls = { ...announcing(ifName), [`ipv6/conf/${ifName}/autoconf`]: "0" };
  const lease = ipam?.add(), { metric = DEFAULT_METRIC, noDefaultRoute } = options;
  const { ips, resources } = addressed(at, given, { metric, noDefaultRoute }, sysctls, lease);
  at.applyAll(resources);
  const interfaces = [{ name: ifName, mac, sandbox: at.netnsPath }];
  // podman writes the container's own servers, unless there is a DHCP server.
  const dns = hasDhcp(conf.network) ? resolversOf(conf, lease) : { search: [], nameservers: [] };
  return { cniVersion: conf.cniVersion, interfaces, ips: ips.map((each) => ({ ...each, interface: 0 })), dns };
}

/** Throws for a document that `setup` must refuse. */
function readDocument(conf: NetavarkConf, isLeaving: boolean) {
  const { network, network_options } = conf, kind = network.driver as VlanDriver;
  if (network_options.interface_name === "") throw new Error("no container interface name given");
  return { kind, options: readVlanOptions(kind, network.options), given: givenAddresses(conf, isLeaving) };
}

/** The link by which packets leave the host. */
function defaultParent({ route }: Host): string {
  const way = defaultRoute(route), link = way && getLink(route, way.oif);
  if (link === undefined) throw new Error("failed to get default route interface");
  return link.name;
}

/** Undefined for an ipvlan and for a macvlan in mode passthru, which have their parent's address. */
function macOf(at: Attachment<NetavarkConf>, type: LinkType): string | undefined {
  if (type.kind !== "macvlan" || type.settings.mode === "passthru") return undefined;
  return at.conf.network_options.static_mac ?? at.choose(randomMac, () => "");
}
