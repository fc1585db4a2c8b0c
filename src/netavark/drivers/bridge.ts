/** The driver `bridge`: from podman's documents to the configuration of plugins/podman/netavark-bridge. */
import { checkIfName } from "../../cni/invocation.ts";
import type { PortMapping } from "../../documents/netavark.schema.ts";
import { type BridgeOptions, readBridgeOptions } from "../../documents/network-options.ts";
import { type Protocol, protocolNumbers } from "../../iptables/rule.ts";
import { canonicalAddress, isV6, parsePrefix } from "../../net/address.ts";
import netavarkBridge from "../../plugins/podman/netavark-bridge/netavark-bridge.ts";
import type { NetavarkBridgeConf } from "../../plugins/podman/netavark-bridge/netavark-bridge.ts";
import { canHaveNames } from "../../resources/netavark/aardvark-names/names.ts";
import type { NamesSpec } from "../../resources/netavark/aardvark-names/spec.ts";
import type { PublishedPort, PublishedPortsSpec } from "../../resources/netavark/published-ports.ts";
import type { NetworkRulesSpec } from "../../resources/netavark/shared/network-rules-spec.ts";
import { refuseIfStrict } from "../firewall/firewalld.ts";
import {
  addressesOf,
  dhcpOf,
  gatewaysOf,
  type GivenAddress,
  hasDhcp,
  interfaceOf,
  resolversOf,
  routesOf,
} from "./addressing.ts";
import { told } from "./attachment.ts";
import { bridgeOwnAddresses } from "./bridge-addresses.ts";
import type { Driver, DriverContext, Wanted } from "./driver.ts";
import { stateOf } from "./firewall-state.ts";

const DEFAULT_METRIC = 100;
const DNS_PORT = 53;
const DNS_DOMAIN = "dns.podman";

export function bridgeDriver(wanted: Wanted, context: DriverContext): Driver {
  const { network, attachment } = wanted, name = checkedBridge(wanted);
  const options = readBridgeOptions(network.options), isManaged = options.mode === "managed";
  if (isManaged && hasDhcp(network)) {
    throw new Error("cannot use dhcp ipam driver without using the option mode=unmanaged");
  }
  const metric = options.metric ?? DEFAULT_METRIC, given = addressesOf(wanted), { internal: isInternal } = network;
  // netavark writes nothing of internal networks to firewalld.
  const hasRules = isManaged && context.firewall !== "none" && !(context.firewall === "firewalld" && isInternal);
  const ports = hasRules && !isInternal ? portsOf(wanted, given) : undefined;
  if (hasRules && !isInternal && !wanted.isLeaving) checkForwarding(ports, context);
  const dnsServers = network.dns_enabled ? dnsServersOf(wanted, isManaged) : [];
  const names = namesOf(wanted, context, given, dnsServers);
  const rules = hasRules ? rulesOf(wanted, options, context, dnsServers) : undefined;
  const conf: NetavarkBridgeConf = {
    cniVersion: "1.1.0",
    name: network.name,
    type: "netavark-bridge",
    onHost: {
      name,
      isManaged,
      isInternal,
      gateways: bridgeAddresses(wanted),
      hasV6: (network.subnets ?? []).some(({ subnet }) => isV6(subnet)),
      mtu: options.mtu,
      vrf: options.vrf,
      filtersVlans: options.vlan !== undefined,
    },
    usesFirewalld: context.firewall === "firewalld",
    rules,
    state: rules && stateOf(wanted, rules, given, context),
    writesSysctlFile: isManaged && context.hasSystemd,
    ports,
    addresses: given.map(({ address, gateway }) => ({ address, gateway })),
    ...routesOf(wanted, { ...options, metric }),
    ipam: dhcpOf(wanted, options),
    mac: attachment.static_mac,
    mtu: options.mtu,
    vlan: options.vlan,
    hostName: attachment.options?.["host_interface_name"],
    names,
    configDirectory: context.configDirectory,
  };
  const story = told(wanted, {
    plugin: netavarkBridge,
    conf,
    status: (mac, result) => ({
      // Otherwise there is nobody to ask at the gateways, and the container keeps podman's own choice.
      ...names !== undefined
        ? { dns_search_domains: [DNS_DOMAIN], dns_server_ips: dnsServers }
        : resolversOf(wanted, result),
      interfaces: { [attachment.interface_name]: interfaceOf(mac, result) },
    }),
  });
  return { ...story, names: names?.networks[0] };
}

/** Returns the bridge's name. */
function checkedBridge({ network: { network_interface: name, id }, attachment }: Wanted): string {
  if (name === undefined || name === "") throw new Error("no bridge interface name given");
  if (attachment.interface_name === "") throw new Error("no container interface name given");
  checkIfName(name);
  // It is part of the names of files and chains.
  if (!/^[a-zA-Z0-9]+$/.test(id)) throw new Error(`network id ${JSON.stringify(id)} must be hexadecimal`);
  return name;
}

function dnsServersOf({ network, isLeaving }: Wanted, isManaged: boolean): string[] {
  if (isManaged) return gatewaysOf(network);
  return isLeaving ? [] : bridgeOwnAddresses(network.network_interface!);
}

function namesOf(
  { network, attachment, call, isLeaving }: Wanted,
  { daemon }: DriverContext,
  given: readonly GivenAddress[],
  gateways: readonly string[],
): NamesSpec | undefined {
  const container = { ...daemon, containerId: call.container_id, servers: call.dns_servers ?? [] };
  if (!network.dns_enabled || !(isLeaving || canHaveNames(container))) return undefined;
  const addresses = given.map(({ address }) => address.slice(0, address.indexOf("/")));
  const ofNetwork = {
    name: network.name,
    isInternal: network.internal,
    gateways,
    servers: network.network_dns_servers ?? [],
    addresses4: addresses.filter((each) => !isV6(each)),
    addresses6: addresses.filter(isV6),
    names: [call.container_name, ...attachment.aliases ?? []],
  };
  return { ...container, networks: [ofNetwork] };
}

function bridgeAddresses({ network }: Wanted): string[] {
  return (network.subnets ?? []).flatMap(({ subnet, gateway }) =>
    gateway === undefined ? [] : [`${gateway}/${parsePrefix(subnet)!.bits}`]
  );
}

function rulesOf(
  { network }: Wanted,
  { isolate, outbound4, outbound6 }: BridgeOptions,
  { dnsPort, isolatesByDefault }: DriverContext,
  dnsServers: string[],
): NetworkRulesSpec {
  const isSaid = network.options !== undefined && Object.hasOwn(network.options, "isolate");
  const wanted = isSaid || isolatesByDefault ? isolate : "false";
  return {
    network: network.name,
    networkId: network.id,
    bridge: network.network_interface!,
    subnets: (network.subnets ?? []).map(({ subnet }) => ({ subnet })),
    isInternal: network.internal,
    isolation: ({ strict: "strict", true: "normal", false: "never" } as const)[wanted],
    dnsPort,
    dnsServers,
    outbound4,
    outbound6,
  };
}

/** With its own driver, firewalld itself forwards. */
function checkForwarding(ports: NetavarkBridgeConf["ports"], { firewall, dnsPort }: DriverContext): void {
  if (firewall === "nftables" && (ports !== undefined || dnsPort !== DNS_PORT)) refuseIfStrict();
}

/** Undefined when nothing is published. */
function portsOf({ network, call }: Wanted, given: readonly GivenAddress[]): NetavarkBridgeConf["ports"] {
  const ports = (call.port_mappings ?? []).map(publishedPort);
  const targets: PublishedPortsSpec["targets"] = [];
  for (const { address, subnet } of given) {
    const bare = address.slice(0, address.indexOf("/"));
    if (!targets.some((other) => isV6(other.address) === isV6(bare))) targets.push({ address: bare, subnet });
  }
  return ports.length === 0 || targets.length === 0 ? undefined : { networkId: network.id, targets, ports };
}

function publishedPort({ host_ip, host_port, container_port, protocol, range }: PortMapping): PublishedPort {
  const hostIp = host_ip === "" ? undefined : canonicalAddress(host_ip);
  if (host_ip !== "" && hostIp === undefined) {
    throw new Error(`invalid host ip "${host_ip}" provided for port ${host_port}`);
  }
  if (!Object.hasOwn(protocolNumbers, protocol)) {
    const known = Object.keys(protocolNumbers).join(", ");
    throw new Error(`invalid protocol "${protocol}" provided for port ${host_port}: expected ${known}`);
  }
  return {
    protocol: protocol as Protocol,
    hostPort: host_port,
    containerPort: container_port,
    range: Math.max(range, 1),
    hostIp,
  };
}
