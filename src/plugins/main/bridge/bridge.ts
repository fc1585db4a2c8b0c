/**
 * bridge: a veth pair between the container and a bridge on the host, with addresses from IPAM.
 *
 * Behaviour follows the reference plugin `plugins/main/bridge` (CNI spec 1.1.0). Owns in the kernel: the link
 * CNI_IFNAME in the container, its other end on the host, the masquerade and spoof-check entries of the attachment. The
 * bridge, its gateway address and forwarding are shared by the network and stay.
 */
import { CniError, INVALID_CONFIG } from "../../../cni/error.ts";
import { field } from "../../../cni/json.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { getLink, linkMac } from "../../../ffi/netlink/route/link.ts";
import { formatAddress, networkOf, offsetAddress, parsePrefix } from "../../../net/address.ts";
import { addressing } from "../../../resources/address/addressing/addressing.ts";
import { announcement, announcing } from "../../../resources/address/announcement.ts";
import { bridge, requireBridgeName } from "../../../resources/link/bridge.ts";
import { bridgeGateway } from "../../../resources/address/bridge-gateway.ts";
import { carrier } from "../../../resources/link/carrier.ts";
import { bridgePort } from "../../../resources/link/bridge-port.ts";
import { forwarding } from "../../../resources/kernel/forwarding.ts";
import { hostEndUp } from "../../../resources/link/host-end-up.ts";
import { requireVlanFiltering } from "../../../resources/link/shared/vlan-filtering.ts";
import { applyIpMasq } from "../../shared/ip-masq.ts";
import { dnsOr } from "../../shared/ipam.ts";
import { macInArgs, macOr, readableMacInArgs } from "../../shared/requested-mac.ts";
import { chosenHostEnd, judgeVethMac, vethPair } from "../../shared/veth-pair.ts";
import { validateBridgeConf } from "./bridge.validate.gen.ts";
import { portVlans } from "./port-vlans.ts";
import type { Resource } from "../../../contract/resource.ts";
import type { VlanRange } from "../../../ffi/netlink/route/bridge.ts";
import type { BridgeConf } from "./bridge.schema.ts";
import type { Interface, IpConfig, Result, Route } from "../../../cni/result.ts";

export default definePlugin<BridgeConf>({
  name: "bridge",
  validate: validateBridgeConf,
  judge(conf, call) {
    portVlans(conf);
    checkCombinations(conf);
    if (call !== undefined) judgeVethMac(configuredMac(conf, macInArgs(call)));
  },
  mayWaitFor: (document) =>
    field(document, "enabledad") === true ? ["duplicate address detection", "legacy iptables"] : ["legacy iptables"],
  add,
  status(conf, host, document) {
    requireBridgeName(conf.bridge, host);
    if (portVlans(conf) !== undefined) requireVlanFiltering(host);
    if (isGateway(conf)) {
      const { requireV6Gateways } = require("../../shared/way-out.ts") as typeof import("../../shared/way-out.ts");
      requireV6Gateways(document, linkOf(conf));
    }
  },
  caveats(conf, placed) {
    const { bridgeCaveats } = require("./caveats.ts") as typeof import("./caveats.ts");
    return bridgeCaveats(conf, placed);
  },
  segment: (conf) => ({ link: linkOf(conf), isRouted: isGateway(conf) }),
  sweeps: ["masquerade", "mac-spoof-check", "port-isolation"],
});

function add(at: Attachment<BridgeConf>): Result {
  const { conf, host } = at;
  const mac = macOr(configuredMac(conf, readableMacInArgs(at)), at);
  const vlans = at.configured(() => portVlans(conf), undefined);
  const ipam = at.ipam(); // announced first, so released last, when nothing uses the addresses any more

  const onHost = at.apply(bridge({
    name: conf.bridge,
    mtu: conf.mtu > 0 ? conf.mtu : undefined,
    vlanFiltering: vlans !== undefined,
    promiscuous: conf.promiscMode,
    network: conf.name,
  }));
  // Applied before the container's port, so undone after it: then only ports of others count as its users.
  const vlanGateway = ipam !== undefined && isGateway(conf) && conf.vlan !== 0 ? applyVlanGateway(at) : undefined;
  const hostVeth = chosenHostEnd(at, (result) => hostSide(at, result));
  // The kernel's own name of the bridge, whatever name it is looked for by.
  const ownName = onHost.name || (at.examine(() => getLink(host.route, conf.bridge)?.name) ?? conf.bridge);
  const gatewayLink = vlanGateway ?? { name: ownName, macToKeep: onHost.macToKeep, keepsMac: onHost.keepsMac };
  at.applyAll([
    ...confinement(at, { hostVeth: hostVeth.name, mac, hostLink: gatewayLink.name }),
    ...portPair(at, hostVeth, mac, vlans),
  ]);

  const interfaces: Interface[] = [
    { name: ownName, mac: onHost.mac },
    { name: hostVeth.name, mac: hostVeth.mac },
    { name: at.ifName, mac, sandbox: at.netnsPath },
    ...(vlanGateway === undefined ? [] : [vlanGateway]),
  ];
  const result: Result = { cniVersion: conf.cniVersion, interfaces };
  if (ipam !== undefined) Object.assign(result, layer3(at, ipam.add(), gatewayLink));
  else if (!conf.disableContainerInterface) at.apply(addressing({ ...plainLink, ifName: at.ifName }));

  if (at.mayHave(conf.ipMasq && ipam !== undefined)) applyIpMasq(at, result.ips ?? at.prevResult?.ips ?? []);

  if (!conf.disableContainerInterface) {
    // Wait for the port: until it is up, it drops the container's packets.
    const packetsPass = carrier({ ifName: hostVeth.name });
    at.applyAll(result.ips === undefined ? [packetsPass] : [packetsPass, announcement({ ifName: at.ifName, mac })]);
  }
  // A bridge that existed before may have changed its MAC when the port joined.
  if (!onHost.created) interfaces[0]!.mac = at.inAdd(() => linkMac(host.route, conf.bridge)) ?? onHost.mac;
  return { ...result, dns: dnsOr(conf, result) };
}

/** What is there before the pair, and goes after it. */
function confinement(
  { conf, network, containerId, ifName, mayHave }: Attachment<BridgeConf>,
  { hostVeth, mac, hostLink }: { hostVeth: string; mac: string; hostLink: string },
): Resource<unknown>[] {
  const list: Resource<unknown>[] = [];
  if (mayHave(conf.macspoofchk)) {
    const { macSpoofCheck } = require(
      "../../../resources/packets/mac-spoof-check.ts",
    ) as typeof import("../../../resources/packets/mac-spoof-check.ts");
    list.push(macSpoofCheck({ containerId, ifName, hostVeth, mac }));
  }
  if (mayHave(conf.portIsolation)) {
    const { portIsolation } = require(
      "../../../resources/packets/port-isolation.ts",
    ) as typeof import("../../../resources/packets/port-isolation.ts");
    list.push(portIsolation({ network, containerId, ifName, link: hostLink }));
  }
  return list;
}

/** The veth pair, and the settings of its host end as a bridge port, which is up last. */
function portPair(
  at: Attachment<BridgeConf>,
  hostVeth: { name: string; mac: string },
  mac: string,
  vlans: VlanRange[] | undefined,
): Resource<unknown>[] {
  const { conf } = at;
  return [
    vethPair(at, hostVeth, mac, { mtu: conf.mtu, bridge: conf.bridge }),
    bridgePort({
      ifName: hostVeth.name,
      hairpin: conf.hairpinMode,
      isolated: conf.portIsolation,
      mac: conf.macspoofchk ? mac : undefined,
      vlans: vlans?.length ? vlans : undefined,
      keepDefaultVlan: conf.preserveDefaultVlan,
    }),
    hostEndUp({ ifName: hostVeth.name }),
  ];
}

const plainLink = { addresses: [], routes: [], sysctls: {}, detectDuplicates: false };

interface GatewayLink {
  name: string;
  /** A VLAN gateway's is its own. */
  macToKeep?: string;
  keepsMac?: boolean;
}

/** Sets addresses and routes in the container and the gateway's address on the bridge. */
function layer3(at: Attachment<BridgeConf>, lease: Result, gatewayLink: GatewayLink): Partial<Result> {
  const { conf } = at;
  const ips: IpConfig[] = [];
  const addresses: { address: string; gateway?: string }[] = [];
  for (const ip of lease.ips!) {
    const { address } = ip;
    const gateway = ip.gateway ?? (isGateway(conf) ? firstOf(address) : undefined);
    ips.push({ address, interface: 2, gateway });
    addresses.push({ address, gateway });
  }
  const routes = conf.isDefaultGateway ? withDefaultRoutes(lease.routes ?? [], ips) : lease.routes;
  const v6 = `ipv6/conf/${at.ifName}`;
  const duplicates = conf.enabledad
    ? { [`${v6}/accept_dad`]: "1", [`${v6}/enhanced_dad`]: "1" }
    : { [`${v6}/accept_dad`]: "0" };
  at.apply(addressing({
    ifName: at.ifName,
    addresses,
    routes: routes ?? [],
    sysctls: { ...announcing(at.ifName), ...duplicates },
    detectDuplicates: conf.enabledad,
  }));
  if (isGateway(conf)) provideGateways(at, ips, gatewayLink);
  return { ips, routes, dns: lease.dns };
}

function applyVlanGateway(at: Attachment<BridgeConf>): Interface {
  const { vlanGateway, vlanGatewayName } = require(
    "../../../resources/address/vlan-gateway.ts",
  ) as typeof import("../../../resources/address/vlan-gateway.ts");
  const { bridge, vlan, mtu } = at.conf;
  const spec = { bridge, vlan, mtu: mtu > 0 ? mtu : undefined, network: at.network };
  return { name: vlanGatewayName(spec), mac: at.apply<{ mac: string }>(vlanGateway(spec)).mac };
}

function provideGateways(
  at: Attachment<BridgeConf>,
  ips: IpConfig[],
  { name: ifName, macToKeep: mac = "", keepsMac }: GatewayLink,
) {
  for (const family of [4, 6] as const) {
    const wanted: Resource<unknown>[] = [];
    for (const { gateway, address } of ips) {
      if (address.includes(":") !== (family === 6)) continue;
      const { bits } = parsePrefix(address)!;
      wanted.push(
        bridgeGateway({
          ifName,
          address: `${gateway}/${bits}`,
          container: address,
          force: at.conf.forceAddress,
          mac,
          keepsMac,
        }),
      );
    }
    if (wanted.length > 0) at.applyAll([...wanted, forwarding({ family, ifName })]);
  }
}

/** Adds one default route for each family, unless IPAM provides one. */
function withDefaultRoutes(routes: Route[], ips: IpConfig[]): Route[] {
  const all = [...routes];
  for (const { address, gateway } of ips) {
    const dst = address.includes(":") ? "::/0" : "0.0.0.0/0";
    const present = all.findIndex((route) => route.dst === dst);
    if (present < 0) all.push({ dst, gw: gateway });
    // IPAM's default route without a gateway gets the family's first gateway: a second route would be a duplicate.
    else if (all[present]!.gw === undefined) all[present] = { ...all[present]!, gw: gateway };
  }
  return all;
}

/** The link that has the gateway's address. */
function linkOf({ bridge, vlan }: BridgeConf): string {
  return vlan === 0 ? bridge : `${bridge}.${vlan}`;
}

function isGateway(conf: Pick<BridgeConf, "isGateway" | "isDefaultGateway">): boolean {
  return conf.isGateway || conf.isDefaultGateway;
}

/** The first address after the network's own. */
function firstOf(address: string): string {
  return formatAddress(offsetAddress(networkOf(parsePrefix(address)!), 1n)!);
}

/** From the capability, then `args`, then CNI_ARGS. */
function configuredMac({ runtimeConfig, args }: BridgeConf, fromArgs: string | undefined): string | undefined {
  return runtimeConfig?.mac || args?.cni?.mac || fromArgs;
}

/**
 * In our results and the reference plugin's it follows the bridge and precedes the container's link. The bridge has its
 * own name there, which may be another one than the configuration's.
 */
function hostSide(at: Attachment<BridgeConf>, result: Result): Interface | undefined {
  return result.interfaces?.find(({ name, sandbox }, index) => index > 0 && !sandbox && name !== at.conf.bridge);
}

function checkCombinations(conf: BridgeConf): void {
  if (conf.hairpinMode && conf.promiscMode) {
    throw new CniError(INVALID_CONFIG, "cannot set hairpin mode and promiscuous mode at the same time");
  }
  if (conf.disableContainerInterface && conf.ipam?.type) {
    throw new CniError(INVALID_CONFIG, "cannot use IPAM when DisableContainerInterface flag is set");
  }
}
