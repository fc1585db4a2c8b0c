/** Maps podman's document to the specifications of the bridge, its rules and the published ports. */
import type { Owner } from "../../../contract/owner.ts";
import { checkIfName } from "../../../cni/invocation.ts";
import type {
  NetavarkConf,
  PodmanNetwork,
  PodmanPortMapping,
} from "../../../interop/podman-documents/netavark.schema.ts";
import { type BridgeOptions, readBridgeOptions } from "../../../interop/podman-documents/network-options.ts";
import { type Protocol, protocolNumbers } from "../../../interop/iptables/rule.ts";
import { canonicalAddress, isV6, parsePrefix } from "../../../net/address.ts";
import type { PublishedPort, PublishedPortsSpec } from "../../../resources/netavark/published-ports.ts";
import type { PodmanBridgeSpec } from "../../../resources/netavark/shared/bridge.ts";
import type { NetworkRulesSpec } from "../../../resources/netavark/shared/nft-rules.ts";
import { gatewaysOf, type GivenAddress, givenAddresses, hasDhcp } from "../shared/addresses.ts";

export interface Specifications {
  options: BridgeOptions;
  given: GivenAddress[];
  bridge: PodmanBridgeSpec;
  /** Undefined when no rules are written. */
  rules: NetworkRulesSpec | undefined;
  /** Undefined when nothing is published. */
  ports: Omit<PublishedPortsSpec, keyof Owner> | undefined;
}

/** Throws for a document that `setup` must refuse. */
export function specificationsOf(conf: NetavarkConf, isLeaving: boolean): Specifications {
  const { network, network_options, firewall } = conf, { internal: isInternal } = network;
  const name = checkedBridge(network);
  if (network_options.interface_name === "") throw new Error("no container interface name given");
  const options = readBridgeOptions(network.options), isManaged = options.mode === "managed";
  if (isManaged && hasDhcp(network)) {
    throw new Error("cannot use dhcp ipam driver without using the option mode=unmanaged");
  }
  const given = givenAddresses(conf, isLeaving);
  // netavark writes nothing to firewalld for internal networks.
  const hasRules = isManaged && firewall !== "none" && !(firewall === "firewalld" && isInternal);
  return {
    options,
    given,
    bridge: {
      name,
      isManaged,
      isInternal,
      gateways: bridgeAddresses(network),
      hasV6: (network.subnets ?? []).some(({ subnet }) => isV6(subnet)),
      mtu: options.mtu,
      vrf: options.vrf,
      filtersVlans: options.vlan !== undefined,
    },
    rules: hasRules ? rulesOf(conf, options) : undefined,
    ports: hasRules && !isInternal ? portsOf(conf, given) : undefined,
  };
}

/** Returns the bridge's name. */
function checkedBridge({ network_interface: name, id }: PodmanNetwork): string {
  if (name === undefined || name === "") throw new Error("no bridge interface name given");
  checkIfName(name);
  // The names of files and chains contain it.
  if (!/^[a-zA-Z0-9]+$/.test(id)) throw new Error(`network id ${JSON.stringify(id)} must be hexadecimal`);
  return name;
}

function bridgeAddresses({ subnets = [] }: PodmanNetwork): string[] {
  return subnets.flatMap(({ subnet, gateway }) =>
    gateway === undefined ? [] : [`${gateway}/${parsePrefix(subnet)!.bits}`]
  );
}

function rulesOf(
  { network, dnsPort, isolatesByDefault }: NetavarkConf,
  { isolate, outbound4, outbound6 }: BridgeOptions,
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
    dnsServers: network.dns_enabled ? gatewaysOf(network) : [],
    outbound4,
    outbound6,
  };
}

function portsOf(
  { network, port_mappings = [] }: NetavarkConf,
  given: readonly GivenAddress[],
): Specifications["ports"] {
  const ports = port_mappings.map(publishedPort), targets: PublishedPortsSpec["targets"] = [];
  for (const { address, subnet } of given) {
    const bare = address.slice(0, address.indexOf("/"));
    if (!targets.some((other) => isV6(other.address) === isV6(bare))) targets.push({ address: bare, subnet });
  }
  return ports.length === 0 || targets.length === 0 ? undefined : { networkId: network.id, targets, ports };
}

export function publishedPort(
  { host_ip, host_port, container_port, protocol, range }: PodmanPortMapping,
): PublishedPort {
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
