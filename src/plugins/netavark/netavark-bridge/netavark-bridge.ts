/**
 * One network with netavark's driver `bridge`: a veth pair between the container and the network's bridge, the rules of the
 * network, and the container's published ports. Only `src/frontends/netavark` calls it: the configuration is podman's own document.
 */
import { field, isObject } from "../../../cni/json.ts";
import type { Interface, Result } from "../../../cni/result.ts";
import { asOwner } from "../../../contract/owner.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import type { Resource } from "../../../contract/resource.ts";
import type { NetavarkConf } from "../../../interop/podman-documents/netavark.schema.ts";
import { decodeNetavarkConf } from "../../../interop/podman-documents/netavark.validate.gen.ts";
import { getLink } from "../../../ffi/netlink/route/link.ts";
import { bringUpLoopback } from "../../../ffi/netlink/route/loopback.ts";
import { randomMac } from "../../../ffi/random.ts";
import { isSystemdRunning } from "../../../ffi/systemd.ts";
import { announcement } from "../../../resources/address/announcement.ts";
import { bridgePort } from "../../../resources/link/bridge-port.ts";
import { carrier } from "../../../resources/link/carrier.ts";
import { hostEndUp } from "../../../resources/link/host-end-up.ts";
import { veth } from "../../../resources/link/veth.ts";
import { aardvarkNames } from "../../../resources/netavark/aardvark-names/aardvark-names.ts";
import { firewallState } from "../../../resources/netavark/firewall-state.ts";
import { netavarkNetworkRules } from "../../../resources/netavark/network-rules.ts";
import { podmanBridge, requireKernel } from "../../../resources/netavark/podman-bridge.ts";
import { publishedPorts } from "../../../resources/netavark/published-ports.ts";
import { DNS_PORT } from "../../../resources/netavark/shared/dns-port.ts";
import { refuseIfStrict } from "../../../resources/netavark/shared/strict-forwarding.ts";
import type { NetworkRulesSpec } from "../../../resources/netavark/shared/nft-rules.ts";
import { sysctlFile } from "../../../resources/netavark/sysctl-file.ts";
import { trustedSubnets } from "../../../resources/netavark/trusted-subnets.ts";
import { isV6 } from "../../../net/address.ts";
import { addressed, resolversOf } from "../shared/addresses.ts";
import { containerSysctls, requireFreeName } from "./container-side.ts";
import { firewallStateOf } from "./firewall-state.ts";
import { freeVethName, hasFilteredBridges, usualMtu } from "./host-side.ts";
import { dnsServersOf, namesOf } from "./names.ts";
import { type Specifications, specificationsOf } from "./specifications.ts";

const DEFAULT_METRIC = 100;
const DNS_DOMAIN = "dns.podman";

export default definePlugin<NetavarkConf>({
  name: "netavark-bridge",
  validate: decodeNetavarkConf,
  judge: (conf) => void specificationsOf(conf, false),
  mayWaitFor: (document) => [
    ...field(document, "firewall") === "none" ? [] : ["firewalld" as const],
    ...hasNames(document) ? ["aardvark-dns" as const] : [],
  ],
  add,
  lockedDirectory: ({ configDirectory }) => configDirectory,
});

/** The document is not decoded yet, so nothing is sure of its form. */
function hasNames(document: Record<string, unknown>): boolean {
  const network = field(document, "network");
  return field(document, "aardvarkBinary") !== undefined && isObject(network) &&
    field(network, "dns_enabled") === true;
}

function add(at: Attachment<NetavarkConf>): Result {
  const { conf, ifName, host } = at, specifications = specificationsOf(conf, at.purpose === "undo");
  const { options, given, bridge, rules } = specifications, { name, isManaged } = bridge;
  at.inAdd(() => {
    requireForwarding(conf, specifications);
    requireKernel(bridge, host);
  });
  const dnsServers =
    (isManaged ? dnsServersOf(conf.network, true) : at.inAdd(() => dnsServersOf(conf.network, false))) ??
      [];
  const ipam = at.ipam();
  const mtu = at.inAdd(() => options.mtu ?? usualMtu(bridge, host));
  const hostName = conf.network_options.options?.["host_interface_name"];
  const hostVeth = {
    name: at.choose(() => hostName ?? freeVethName(host), () => hostName ?? ""),
    mac: at.choose(randomMac, () => ""),
  };
  at.inAdd(() => requireFreeName(ifName, hostName, name, host));
  const hasSystemd = !conf.isRootless && isSystemdRunning();
  if (at.mayHave(isManaged && hasSystemd)) at.apply<unknown>(sysctlFile(bridge));
  const { mayBeOpen } = at.apply(podmanBridge(bridge));
  if (rules !== undefined) {
    at.applyAll(rulesBy(conf, rules));
    if (!conf.isRootless) at.apply(firewallState(firewallStateOf(conf, at.containerId, rules, given)));
  }
  at.inAdd(() => bringUpLoopback(host.container!.route));

  const mac = conf.network_options.static_mac ?? at.choose(randomMac, () => "");
  const packetsPass = [carrier({ ifName: hostVeth.name }), announcement({ ifName, mac })];
  const ports = portsBy(at, specifications);
  const needsHairpin = ports.length > 0 && at.choose(hasFilteredBridges, () => false);
  const pair = { hostName: hostVeth.name, hostMac: hostVeth.mac, containerName: ifName, containerMac: mac };
  at.applyAll([
    veth({ ...pair, mtu, bridge: name }),
    bridgePort({ ifName: hostVeth.name, hairpin: needsHairpin, isolated: false, vlans: vlansOf(options.vlan) }),
    hostEndUp({ ifName: hostVeth.name }),
  ]);
  const lease = ipam?.add(), { metric = DEFAULT_METRIC, noDefaultRoute } = options;
  const { ips, resources } = addressed(
    at,
    given,
    { metric, noDefaultRoute },
    containerSysctls(ifName, bridge),
    lease,
  );
  const names = namesOf(conf, at.containerId, given, dnsServers);
  const forNames = names === undefined ? [] : [aardvarkNames(names)];
  const access = accessFromLocalhost(at, specifications, mayBeOpen);
  at.applyAll([...resources, ...ports, ...access, ...packetsPass, ...forNames]);
  const interfaces: Interface[] = [
    { name },
    { name: hostVeth.name, mac: hostVeth.mac },
    { name: ifName, mac, sandbox: at.netnsPath },
  ];
  // Without aardvark-dns nobody listens at the gateways.
  const dns = names === undefined ? resolversOf(conf, lease) : { search: [DNS_DOMAIN], nameservers: dnsServers };
  return { cniVersion: conf.cniVersion, interfaces, ips: ips.map((each) => ({ ...each, interface: 2 })), dns };
}

/** The driver `firewalld` needs no check: there firewalld itself forwards. */
function requireForwarding({ firewall, dnsPort }: NetavarkConf, { bridge, rules, ports }: Specifications): void {
  const forwards = ports !== undefined || dnsPort !== DNS_PORT;
  if (firewall === "nftables" && rules !== undefined && !bridge.isInternal && forwards) refuseIfStrict();
}

function rulesBy({ firewall }: NetavarkConf, rules: NetworkRulesSpec): Resource<unknown>[] {
  const { bridge, subnets, dnsPort, dnsServers } = rules;
  if (firewall === "firewalld") {
    // Few hosts use firewalld, so its kinds are loaded on demand.
    const { firewalldNetwork } = require(
      "../../../resources/netavark/firewalld-network.ts",
    ) as typeof import("../../../resources/netavark/firewalld-network.ts");
    return [firewalldNetwork({ bridge, subnets, dnsPort, dnsServers })];
  }
  return [netavarkNetworkRules(rules), trustedSubnets({ bridge, subnets })];
}

function portsBy(at: Attachment<NetavarkConf>, { ports }: Specifications): Resource<unknown>[] {
  if (ports === undefined) return [];
  const spec = { ...ports, ...asOwner(at) };
  if (at.conf.firewall !== "firewalld") return [publishedPorts(spec)];
  const { firewalldPorts } = require(
    "../../../resources/netavark/firewalld-ports.ts",
  ) as typeof import("../../../resources/netavark/firewalld-ports.ts");
  return [firewalldPorts(spec)];
}

/**
 * For ports that are reached by 127.0.0.1. netavark opens every bridge for that, without a guard. Such a bridge is guarded
 * for each new container, and stays open for the older ones.
 */
function accessFromLocalhost(
  at: Attachment<NetavarkConf>,
  { bridge: { name, isManaged }, ports }: Specifications,
  mayBeOpen: boolean,
): Resource<unknown>[] {
  const { host } = at;
  if (!isManaged || (!mayBeOpen && ports === undefined)) return [];
  const { isForLocalhost, isSetByOthers, localhostAccess } = require(
    "../../../resources/packets/localhost-access.ts",
  ) as typeof import("../../../resources/packets/localhost-access.ts");
  // The document may have an alternative name, which neither sysctls nor rules know.
  const link = at.choose(() => getLink(host.route, name)?.name, () => undefined) ?? name;
  const spec = { ...asOwner(at), link };
  const isFound = mayBeOpen && at.choose(() => isSetByOthers(spec, host), () => false);
  const isPublished = ports !== undefined && ports.targets.some(({ address }) => !isV6(address)) &&
    ports.ports.some(isForLocalhost);
  if (!at.mayHave(isPublished || isFound)) return [];
  return [localhostAccess({ ...spec, wasSet: isFound || undefined })];
}

function vlansOf(vlan: number | undefined) {
  return vlan === undefined || vlan === 0 ? undefined : [{ first: vlan, last: vlan, pvid: true, untagged: true }];
}
