/** A network with a driver of our own: an attachment with a ledger, as by a CNI plugin. */
import type { Verb } from "../../../cni/invocation.ts";
import { asWritten } from "../../../cni/json.ts";
import type { Result } from "../../../cni/result.ts";
import { CURRENT_VERSION } from "../../../cni/versions.ts";
import type { PluginConfig, PluginDefinition } from "../../../contract/plugin.ts";
import type { NetavarkConf, PodmanNetwork } from "../../../interop/podman-documents/netavark.schema.ts";
import type { StatusBlock } from "../../../interop/podman-documents/status-block.ts";
import { giveUp } from "../../../engine/ledger/claims.ts";
import { readLedger } from "../../../engine/ledger/ledger.ts";
import type { LedgerRecord } from "../../../engine/ledger/record.ts";
import type { Session } from "../../../engine/session.ts";
import { linkIndex } from "../../../ffi/netlink/route/link.ts";
import { dnsServersOf, namesOf } from "../../../plugins/netavark/netavark-bridge/names.ts";
import netavarkBridge from "../../../plugins/netavark/netavark-bridge/netavark-bridge.ts";
import { specificationsOf } from "../../../plugins/netavark/netavark-bridge/specifications.ts";
import netavarkVlan from "../../../plugins/netavark/netavark-vlan/netavark-vlan.ts";
import { containerLinkKind } from "../../../resources/link/container-link.ts";
import { vethKind } from "../../../resources/link/veth.ts";
import { canHaveNames } from "../../../resources/netavark/aardvark-names/names.ts";
import type { NamesInNetwork } from "../../../resources/netavark/aardvark-names/spec.ts";
import { publishedPortsKind } from "../../../resources/netavark/published-ports.ts";
import type { ContainerNetwork, Driver, NetavarkSettings } from "./driver.ts";

/** For `setup`. Throws for what it must refuse, before anything is made. */
export function driverToSetUp(containerNetwork: ContainerNetwork, settings: NetavarkSettings): Driver {
  const { network, call } = containerNetwork, isNamed = network.driver === "bridge" && network.dns_enabled;
  const binary = settings.aardvarkBinary;
  const hasNames = isNamed && canHaveNames({ binary, containerId: call.container_id });
  const conf = confOf(containerNetwork, settings, hasNames ? binary : undefined);
  pluginOf(network).judge!(conf, undefined);
  return { ...driverWith(containerNetwork, conf), names: hasNames ? namesIn(conf, call.container_id) : undefined };
}

/** For `teardown`: names may be left although aardvark-dns is gone. */
export function driverToTearDown(containerNetwork: ContainerNetwork, settings: NetavarkSettings): Driver {
  return driverWith(containerNetwork, confOf(containerNetwork, settings, settings.aardvarkBinary));
}

function pluginOf({ driver }: PodmanNetwork): PluginDefinition<NetavarkConf> {
  return driver === "bridge" ? netavarkBridge : netavarkVlan;
}

function confOf(
  { network, attachment, call }: ContainerNetwork,
  settings: NetavarkSettings,
  aardvarkBinary?: string,
): NetavarkConf {
  const { name: _, ...network_options } = attachment, { pluginDirectories: __, ...said } = settings;
  return {
    cniVersion: CURRENT_VERSION,
    name: network.name,
    type: pluginOf(network).name,
    ipam: dhcpOf({ network, call }),
    network,
    network_options,
    container_name: call.container_name,
    port_mappings: call.port_mappings,
    dns_servers: call.dns_servers,
    ...said,
    aardvarkBinary,
  };
}

/** The metric of a DHCP server's default route, with every driver. */
const LEASED_METRIC = 100;

/** The configuration of the plugin dhcp: the client's name, and which of the server's options are ignored. */
function dhcpOf({ network, call }: Pick<ContainerNetwork, "network" | "call">): NetavarkConf["ipam"] {
  const { ipam_options, options = {}, internal } = network;
  if (ipam_options?.["driver"] !== "dhcp") return undefined;
  const isWithoutRoute = options["no_default_route"] === "true" || internal;
  const ignored = [...isWithoutRoute ? ["routers"] : [], ...call.dns_servers ? ["dns"] : []];
  return {
    type: "dhcp",
    priority: Number(options["metric"] ?? LEASED_METRIC),
    ...call.container_hostname !== undefined && { hostname: call.container_hostname },
    ...ignored.length > 0 && { ignore: ignored },
  } as { type: string };
}

function namesIn(conf: NetavarkConf, containerId: string): NamesInNetwork | undefined {
  const { given, bridge } = specificationsOf(conf, false);
  return namesOf(conf, containerId, given, dnsServersOf(conf.network, bridge.isManaged))?.networks[0];
}

function driverWith(containerNetwork: ContainerNetwork, conf: NetavarkConf): Driver {
  const { network, call, attachment: { interface_name: ifName } } = containerNetwork,
    document = asWritten({ ...conf });
  // As podman 4 says it to plugins. By hand a name may be anything, and CNI_ARGS cannot quote.
  const cniArgs = /[;=]/.test(call.container_name) ? "" : `IgnoreUnknown=1;K8S_POD_NAME=${call.container_name}`;
  const invocation = (command: Verb, netnsPath: string) => ({
    command,
    containerId: call.container_id,
    netnsPath,
    ifName,
    cniArgs,
    path: "",
    ...document,
  });
  const plugin = pluginOf(network) as unknown as PluginDefinition<PluginConfig>;
  const owner = { network: network.name, containerId: call.container_id, ifName };
  return {
    plugin: { type: plugin.name, config: document.document },
    setUp: (session, netnsPath) => statusBlock(ifName, session.runVerb(plugin, invocation("ADD", netnsPath))!),
    yieldPorts() {
      const record = readLedger(owner, plugin.name);
      if (record !== undefined) giveUp(record, publishedPortsKind.kind);
    },
    tearDown(session, netnsPath) {
      const ofDel = invocation("DEL", netnsPath);
      const record = readLedger(owner, plugin.name), kind = linkKindOf(network);
      const isMissing = record !== undefined && hasLostLink(session, ofDel, record, kind);
      // When this call is killed, the next one finds that an earlier teardown has removed the link.
      if (record !== undefined) giveUp(record, kind);
      session.runVerb(plugin, ofDel);
      if (isMissing) throw missingLink(containerNetwork);
    },
  };
}

function statusBlock(ifName: string, { interfaces = [], ips = [], dns = {} }: Result): StatusBlock {
  const mac = interfaces.find(({ name, sandbox }) => name === ifName && sandbox)?.mac ?? "";
  const subnets = ips.map(({ address, gateway }) => ({ gateway: gateway ?? null, ipnet: address }));
  return {
    dns_search_domains: dns.search ?? [],
    dns_server_ips: dns.nameservers ?? null,
    interfaces: { [ifName]: { mac_address: mac, subnets } },
  };
}

function linkKindOf({ driver }: PodmanNetwork): string {
  return driver === "bridge" ? vethKind.kind : containerLinkKind.kind;
}

/** Whether ADD made a link that another program has removed from the container. */
function hasLostLink(
  session: Session,
  invocation: Parameters<Session["withHost"]>[0],
  { adds }: LedgerRecord,
  kind: string,
): boolean {
  const { answer, entries } = adds.at(-1)!, isGivenUp = entries.some((entry) => entry.kind === kind && entry.givenUp);
  if (answer === undefined || isGivenUp) return false;
  return session.withHost(
    invocation,
    true,
    ({ container }) => container !== undefined && linkIndex(container.route, invocation.ifName) === undefined,
  );
}

/** The error of a teardown that has removed everything else. */
function missingLink({ attachment, network }: ContainerNetwork): Error {
  const kind = network.driver === "bridge" ? "container veth" : `container ${network.driver}`;
  return new Error(
    `failed to delete ${kind} ${attachment.interface_name}: Netlink error: No such device (os error 19)`,
  );
}
