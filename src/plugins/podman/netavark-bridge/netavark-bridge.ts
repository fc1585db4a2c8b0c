/**
 * One network with netavark's driver `bridge`: a veth pair between the container and the network's bridge, the rules of the
 * network, and the container's published ports. Only `src/netavark` calls it, with a configuration that it has
 * made from podman's documents.
 */
import type { Interface, Result } from "../../../cni/result.ts";
import type { Owner } from "../../../contract/owner.ts";
import { type Attachment, definePlugin, type PluginConfig } from "../../../contract/plugin.ts";
import type { Resource } from "../../../contract/resource.ts";
import { getLink } from "../../../ffi/netlink/route/link.ts";
import { randomMac } from "../../../ffi/random.ts";
import { isV6 } from "../../../net/address.ts";
import { announcement } from "../../../resources/address/announcement.ts";
import { bridgePort } from "../../../resources/link/bridge-port.ts";
import { carrier } from "../../../resources/link/carrier.ts";
import { veth } from "../../../resources/link/veth.ts";
import { aardvarkNames } from "../../../resources/netavark/aardvark-names/aardvark-names.ts";
import type { NamesSpec } from "../../../resources/netavark/aardvark-names/spec.ts";
import { firewallState, type FirewallStateSpec } from "../../../resources/netavark/firewall-state.ts";
import { netavarkNetworkRules } from "../../../resources/netavark/network-rules.ts";
import { podmanBridge } from "../../../resources/netavark/podman-bridge.ts";
import { publishedPorts, type PublishedPortsSpec } from "../../../resources/netavark/published-ports.ts";
import type { PodmanBridgeSpec } from "../../../resources/netavark/shared/bridge.ts";
import type { NetworkRulesSpec } from "../../../resources/netavark/shared/network-rules-spec.ts";
import { sysctlFile } from "../../../resources/netavark/sysctl-file.ts";
import { trustedSubnets } from "../../../resources/netavark/trusted-subnets.ts";
import { addressed, type AddressedConf } from "../shared/addressed.ts";
import { containerSysctls, raiseLoopback, requireFreeName } from "../shared/container-side.ts";
import { freeVethName, hasFilteredBridges, usualMtu } from "./host-side.ts";

export interface NetavarkBridgeConf extends PluginConfig, AddressedConf {
  onHost: PodmanBridgeSpec;
  /** Where rules and ports go, instead of nf_tables. */
  usesFirewalld: boolean;
  /** Undefined: no rules are written. */
  rules?: NetworkRulesSpec;
  state?: FirewallStateSpec;
  /** Whether systemd is to know the bridge's sysctls. */
  writesSysctlFile: boolean;
  ports?: Omit<PublishedPortsSpec, keyof Owner>;
  mac?: string;
  /** Undefined: the bridge's, or that of the way out of the host. */
  mtu?: number;
  /** The VLAN of the bridge's port. */
  vlan?: number;
  /** Of the host's end of the pair. */
  hostName?: string;
  /** What aardvark-dns is to answer. */
  names?: NamesSpec;
  /** That of --config. Older ledgers have none. */
  configDirectory?: string;
}

export default definePlugin<NetavarkBridgeConf>({
  name: "netavark-bridge",
  validate: (conf) => conf as NetavarkBridgeConf,
  add,
  lockedDirectory: ({ configDirectory }) => configDirectory,
});

function add(at: Attachment<NetavarkBridgeConf>): Result {
  const { conf, ifName, host } = at;
  const ipam = at.ipam();
  const mtu = at.inAdd(() => conf.mtu ?? usualMtu(conf.onHost, host));
  const hostVeth = {
    name: at.choose(() => conf.hostName ?? freeVethName(host), () => conf.hostName ?? ""),
    mac: at.choose(randomMac, () => ""),
  };
  at.inAdd(() => requireFreeName(ifName, conf.hostName, conf.onHost.name, host));
  if (at.mayHave(conf.writesSysctlFile)) at.apply<unknown>(sysctlFile(conf.onHost));
  const { isCreated } = at.apply(podmanBridge(conf.onHost));
  if (conf.rules !== undefined) at.applyAll(rulesOf(conf.rules, conf));
  if (conf.state !== undefined) at.apply(firewallState(conf.state));
  at.inAdd(() => raiseLoopback(host));

  const mac = conf.mac ?? at.choose(randomMac, () => "");
  const packetsPass = [carrier({ ifName: hostVeth.name }), announcement({ ifName, mac })];
  const ports: Resource<unknown>[] = conf.ports === undefined
    ? []
    : [portsOf({ ...conf.ports, ...ownerOf(at) }, conf)];
  const reachesItself = conf.ports !== undefined && at.choose(hasFilteredBridges, () => false);
  at.applyAll([
    veth({
      hostName: hostVeth.name,
      hostMac: hostVeth.mac,
      containerName: ifName,
      containerMac: mac,
      mtu,
      bridge: conf.onHost.name,
    }),
    bridgePort({ ifName: hostVeth.name, hairpin: reachesItself, isolated: false, vlans: vlansOf(conf) }),
  ]);
  const { ips, dns, resources } = addressed(at, containerSysctls(ifName, conf.onHost), ipam?.add());
  const names = conf.names === undefined ? [] : [aardvarkNames(conf.names)];
  at.applyAll([...resources, ...ports, ...accessFromLocalhost(at, isCreated), ...packetsPass, ...names]);
  const interfaces: Interface[] = [
    { name: conf.onHost.name },
    { name: hostVeth.name, mac: hostVeth.mac },
    { name: ifName, mac, sandbox: at.netnsPath },
  ];
  return { cniVersion: conf.cniVersion, interfaces, ips: ips.map((each) => ({ ...each, interface: 2 })), dns };
}

function rulesOf(rules: NetworkRulesSpec, { usesFirewalld }: NetavarkBridgeConf): Resource<unknown>[] {
  if (usesFirewalld) return [byFirewalld().network(rules)];
  return [netavarkNetworkRules(rules), trustedSubnets(rules)];
}

function portsOf(ports: PublishedPortsSpec, { usesFirewalld }: NetavarkBridgeConf): Resource<unknown> {
  return usesFirewalld ? byFirewalld().ports(ports) : publishedPorts(ports);
}

/**
 * For a port that 127.0.0.1 leads to. netavark, and this program once, open every bridge for that, without a guard: such a
 * bridge is guarded for each container that comes, and stays open for those who were there before.
 */
function accessFromLocalhost(at: Attachment<NetavarkBridgeConf>, isNew: boolean): Resource<unknown>[] {
  const { conf: { onHost, ports }, host } = at;
  if (!onHost.isManaged || (isNew && ports === undefined)) return [];
  const { isForLocalhost, isSetByOthers, localhostAccess } = require(
    "../../../resources/packets/localhost-access.ts",
  ) as typeof import("../../../resources/packets/localhost-access.ts");
  // The configuration may have an alternative name, which neither sysctls nor rules know.
  const link = at.choose(() => getLink(host.route, onHost.name)?.name, () => undefined) ?? onHost.name;
  const spec = { ...ownerOf(at), link };
  const isFound = !isNew && at.choose(() => isSetByOthers(spec, host), () => false);
  const isPublished = ports !== undefined && ports.targets.some(({ address }) => !isV6(address)) &&
    ports.ports.some(isForLocalhost);
  if (!at.mayHave(isPublished || isFound)) return [];
  return [localhostAccess({ ...spec, wasSet: isFound || undefined })];
}

/** Seldom asked for, so it is only loaded then. */
function byFirewalld() {
  return require("./by-firewalld.ts") as typeof import("./by-firewalld.ts");
}

function vlansOf({ vlan }: NetavarkBridgeConf) {
  return vlan === undefined || vlan === 0 ? undefined : [{ first: vlan, last: vlan, pvid: true, untagged: true }];
}

function ownerOf({ network, containerId, ifName }: Attachment<NetavarkBridgeConf>): Owner {
  return { network, containerId, ifName };
}
