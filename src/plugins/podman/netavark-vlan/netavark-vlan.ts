/**
 * One network with netavark's driver `macvlan` or `ipvlan`: a link of its own on a link of the host. Only
 * `src/netavark` calls it, with a configuration that it has made from podman's documents.
 */
import type { Result } from "../../../cni/result.ts";
import { type Attachment, definePlugin, type PluginConfig } from "../../../contract/plugin.ts";
import { randomMac } from "../../../ffi/random.ts";
import { announcing } from "../../../resources/address/announcement.ts";
import { containerLink, freshBirthName, type LinkType } from "../../../resources/link/container-link.ts";
import { addressed, type AddressedConf } from "../shared/addressed.ts";
import { raiseLoopback } from "../shared/container-side.ts";

export interface NetavarkVlanConf extends PluginConfig, AddressedConf {
  link: LinkType;
  /** The host's. */
  master: string;
  mac?: string;
  mtu?: number;
}

export default definePlugin<NetavarkVlanConf>({
  name: "netavark-vlan",
  validate: (conf) => conf as NetavarkVlanConf,
  add,
});

function add(at: Attachment<NetavarkVlanConf>): Result {
  const { conf, ifName, host } = at;
  const ipam = at.ipam();
  at.inAdd(() => raiseLoopback(host));
  const { mac } = at.apply(containerLink({
    ifName,
    type: conf.link,
    mac: macOf(at),
    mtu: conf.mtu,
    master: { name: conf.master, inContainer: false },
    birthName: at.choose(() => freshBirthName(ifName, host), () => ""),
  }));
  const sysctls = { ...announcing(ifName), [`ipv6/conf/${ifName}/autoconf`]: "0" };
  const { ips, dns, resources } = addressed(at, sysctls, ipam?.add());
  at.applyAll(resources);
  const interfaces = [{ name: ifName, mac, sandbox: at.netnsPath }];
  return { cniVersion: conf.cniVersion, interfaces, ips: ips.map((each) => ({ ...each, interface: 0 })), dns };
}

/** An ipvlan has its parent's address, and so has a macvlan in mode passthru. */
function macOf(at: Attachment<NetavarkVlanConf>): string | undefined {
  const { link, mac } = at.conf;
  if (link.kind !== "macvlan" || link.settings.mode === "passthru") return undefined;
  return mac ?? at.choose(randomMac, () => "");
}
