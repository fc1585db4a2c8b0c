/**
 * portmap: maps ports of the host to a container that earlier plugins connected (capability `portMappings`).
 *
 * Behaviour follows the reference plugin `plugins/meta/portmap`. Owns in the kernel: the mappings of the attachment,
 * and a link's `route_localnet` as long as a mapping uses the link. The shared chains of iptables stay.
 */
import { CniError, INTERNAL, INVALID_CONFIG, PLUGIN_NOT_AVAILABLE, undefinedOnError } from "../../../cni/error.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { type Protocol, protocolNumbers } from "../../../interop/iptables/rule.ts";
import { type Link, linkIndex } from "../../../ffi/netlink/route/link.ts";
import { linkTowards } from "../../../ffi/netlink/route/route-lookup.ts";
import { canonicalAddress, parseAddress, parsePrefix } from "../../../net/address.ts";
import { chooseNatBackend } from "../../../resources/packets/shared/nat-backend.ts";
import { obstacleToPortMappings, portMappings } from "../../../resources/packets/port-mappings/port-mappings.ts";
import type { PortMapping, PortMappingsSpec } from "../../../resources/packets/port-mappings/spec.ts";
import { validatePortmapConf } from "./portmap.validate.gen.ts";
import type { Resource } from "../../../contract/resource.ts";
import { asOwner, type Owner } from "../../../contract/owner.ts";
import type { Result } from "../../../cni/result.ts";
import type { PortmapConf } from "./portmap.schema.ts";
import { isIptablesSyntax, readConditions } from "./conditions.ts";
import { isForLocalhost, isSetByOthers, localhostAccess } from "../../../resources/packets/localhost-access.ts";

const MARK_BIT = 13;
const MOST_PORT = 65535;

export default definePlugin<PortmapConf>({
  name: "portmap",
  validate: validatePortmapConf,
  judge(conf) {
    checkOptions(conf);
    conditionsOf(conf);
    const { refusal } = readMappings(conf);
    if (refusal !== undefined) throw refusal;
  },
  missingCapability: ({ runtimeConfig }) => runtimeConfig?.portMappings === undefined ? "portMappings" : undefined,
  mayWaitFor: () => ["legacy iptables"],
  missingPrevResult: "must be called as chained plugin",
  add,
  status(conf, host) {
    const { backend, why } = backendOf(conf);
    const obstacle = obstacleToPortMappings({ backend, ...optionsOf(conf), conditions: conditionsOf(conf) }, host);
    if (obstacle !== undefined) throw new CniError(PLUGIN_NOT_AVAILABLE, `portmap by ${backend}: ${obstacle}`, why);
  },
  caveats(_conf, { before }) {
    const { whyNoWayOut } = require("../../shared/way-out.ts") as typeof import("../../shared/way-out.ts");
    return before.flatMap((plugin) => whyNoWayOut(plugin) ?? [])
      .map((reason) => ({ key: "", text: `callers beyond the container's subnet get no answer: ${reason}` }));
  },
  sweeps: ["port-mappings", "localhost-access"],
});

function add(at: Attachment<PortmapConf>): Result {
  const { conf, prevResult } = at;
  const { mappings } = readMappings(conf), addresses = addressesOf(at);
  const conditions = at.configured(() => conditionsOf(conf), undefined);
  const owner = asOwner(at);
  const resources: Resource<unknown>[] = [];
  if (at.mayHave(mappings.length > 0)) {
    const options = optionsOf(conf);
    resources.push(portMappings({
      backend: backendOf(conf).backend,
      ...owner,
      addresses,
      mappings,
      ...options,
      conditions,
      sparesLoopback: at.inAdd(() => true as const),
    }));
    if (at.mayHave(options.masquerade !== undefined)) {
      resources.push(...accessFromLocalhost(at, owner, addresses, mappings));
    }
  }
  at.applyAll(resources);
  return prevResult ?? { cniVersion: conf.cniVersion };
}

function optionsOf(conf: PortmapConf) {
  const masquerade = conf.snat === false ? undefined : conf.masqAll ? "all" as const : "own" as const;
  return { masquerade, markBit: conf.markMasqBit ?? MARK_BIT, setMarkChain: conf.externalSetMarkChain || undefined };
}

function checkOptions({ backend, externalSetMarkChain, markMasqBit, ...conf }: PortmapConf): void {
  if (backend !== "" && backend !== "iptables" && backend !== "nftables") {
    throw invalid(`unrecognized backend ${JSON.stringify(backend)}`);
  }
  if (externalSetMarkChain !== undefined && markMasqBit !== undefined) {
    throw invalid("Cannot specify externalSetMarkChain and markMasqBit");
  }
  if (markMasqBit !== undefined && (markMasqBit < 0 || markMasqBit > 31)) {
    throw invalid("MasqMarkBit must be between 0 and 31", `"markMasqBit" is ${markMasqBit}`);
  }
  if (externalSetMarkChain && !/^[^\s"'\\!-][^\s"'\\]{0,27}$/.test(externalSetMarkChain)) {
    throw invalid(`"externalSetMarkChain": ${JSON.stringify(externalSetMarkChain)} is no name of a chain`);
  }
  const { iptables, nftables } = optionsBySyntax({ externalSetMarkChain, ...conf });
  if (backend === "iptables" && nftables.length > 0) throw mismatch("iptables", "nftables", nftables);
  if (backend !== "iptables" && iptables.length > 0 && nftables.length > 0) {
    throw mismatch("nftables", "iptables", iptables);
  }
  if (backend === "nftables" && iptables.length > 0) throw mismatch("nftables", "iptables", iptables);
}

function mismatch(backend: string, other: string, keys: string[]): CniError {
  return invalid(
    `${backend} backend was requested but configuration contains ${other}-specific options [${keys.join(" ")}]`,
  );
}

function invalid(reason: string, details = ""): CniError {
  return new CniError(INVALID_CONFIG, `failed to parse config: ${reason}`, details);
}

/** The configured keys that only one backend understands. */
function optionsBySyntax(conf: Pick<PortmapConf, "externalSetMarkChain" | "conditionsV4" | "conditionsV6">) {
  const found: { iptables: string[]; nftables: string[] } = { iptables: [], nftables: [] };
  if (conf.externalSetMarkChain) found.iptables.push("externalSetMarkChain");
  for (const key of ["conditionsV4", "conditionsV6"] as const) {
    const conditions = conf[key];
    if (conditions === undefined || conditions.length === 0) continue;
    found[isIptablesSyntax(conditions) ? "iptables" : "nftables"].push(key);
  }
  return found;
}

/** The configured backend, else the one that the other options require, else the default for masquerading. */
function backendOf(conf: PortmapConf) {
  const { iptables, nftables } = optionsBySyntax(conf);
  const configured = conf.backend === "iptables" || conf.backend === "nftables" ? conf.backend : "";
  return chooseNatBackend(
    configured || (nftables.length > 0 ? "nftables" : iptables.length > 0 ? "iptables" : ""),
    "portmap",
  );
}

/** The valid mappings, and why ADD rejects the configuration: the first invalid mapping, or two for the same port. */
function readMappings(conf: PortmapConf): { mappings: PortMapping[]; refusal: CniError | undefined } {
  const mappings: PortMapping[] = [], taken = new Map<string, number>();
  let refusal: CniError | undefined;
  for (const { hostPort, containerPort, protocol: written, hostIP } of conf.runtimeConfig?.portMappings ?? []) {
    const protocol = written.toLowerCase() as Protocol;
    const wrong = refusalOf(hostPort, containerPort, protocol, hostIP);
    if (wrong !== undefined) {
      refusal ??= invalid(wrong);
      continue;
    }
    const hostIp = hostIP === "" ? undefined : canonicalAddress(hostIP);
    let isNew = false;
    // It occupies its own address, or those of both families.
    for (const occupied of hostIp === undefined ? ["0.0.0.0", "::"] : [hostIp]) {
      const key = `${protocol} ${hostPort} ${occupied}`, before = taken.get(key);
      if (before !== undefined && before !== containerPort) {
        refusal ??= invalid(
          `host port ${hostPort}/${protocol} is mapped twice`,
          `to ${before} and to ${containerPort}; leave out one of the two`,
        );
      }
      isNew ||= before === undefined;
      taken.set(key, containerPort);
    }
    if (!isNew) continue;
    mappings.push({ protocol, hostPort, containerPort, hostIp });
  }
  return { mappings, refusal };
}

function refusalOf(hostPort: number, containerPort: number, protocol: string, hostIp: string): string | undefined {
  if (hostPort < 1 || hostPort > MOST_PORT) return `Invalid host port number: ${hostPort}`;
  if (containerPort < 1 || containerPort > MOST_PORT) return `Invalid container port number: ${containerPort}`;
  if (!Object.hasOwn(protocolNumbers, protocol)) {
    return `"protocol": ${JSON.stringify(protocol)} is not tcp, udp or sctp (host port ${hostPort})`;
  }
  if (hostIp !== "" && parseAddress(hostIp) === undefined) {
    return `"hostIP": ${JSON.stringify(hostIp)} is not an IP address (host port ${hostPort})`;
  }
  return undefined;
}

/** The container's first address of each family. Addresses without an interface in prevResult count as its own. */
function addressesOf({ prevResult, ifName }: Attachment<PortmapConf>): string[] {
  const found: { 4?: string; 16?: string } = {};
  for (const { address, interface: index } of prevResult?.ips ?? []) {
    const link = index === undefined ? undefined : prevResult!.interfaces?.[index];
    if (link !== undefined && (link.name !== ifName || !link.sandbox)) continue;
    const { length } = parsePrefix(address)!.bytes;
    found[length as 4 | 16] ??= address;
  }
  return [found[4], found[16]].filter((address) => address !== undefined);
}

function conditionsOf({ conditionsV4 = [], conditionsV6 = [] }: PortmapConf): PortMappingsSpec["conditions"] {
  if (conditionsV4.length === 0 && conditionsV6.length === 0) return undefined;
  return {
    4: conditionsV4.length === 0 ? undefined : readConditions("conditionsV4", conditionsV4),
    6: conditionsV6.length === 0 ? undefined : readConditions("conditionsV6", conditionsV6),
  };
}

/**
 * Makes mappings usable from the host's 127.0.0.1. The setting opens a link, so only one that is there for containers gets
 * it: the result of the plugins before names it, or it is a port of Open vSwitch that the host made for itself. A host does
 * not reach its own macvlan, ipvlan and vlan containers, and their master has the LAN behind it.
 */
function accessFromLocalhost(
  at: Attachment<PortmapConf>,
  owner: Owner,
  addresses: readonly string[],
  mappings: readonly PortMapping[],
): Resource<unknown>[] {
  const inside = addresses.find((address) => parsePrefix(address)!.bytes.length === 4);
  if (!at.mayHave(inside !== undefined && mappings.some(isForLocalhost))) return [];
  const made = at.inAdd(() => {
    const link = linkTowardsContainer(at, inside!);
    // Without a route to the container no setting would help.
    if (link === undefined || !isForContainers(link, at)) return [];
    const spec = { ...owner, link: link.name };
    return [localhostAccess({ ...spec, wasSet: isSetByOthers(spec, at.host) || undefined })];
  });
  if (made !== undefined) return made;
  const link = inside === undefined ? undefined : undefinedOnError(() => linkTowardsContainer(at, inside));
  if (!at.mayHave(link === undefined || isForContainers(link, at))) return [];
  return [localhostAccess({ ...owner, link: link?.name ?? "" })];
}

const OF_OPEN_VSWITCH = ["openvswitch", "tun"];

function isForContainers({ name, index, kind = "" }: Link, { prevResult, host }: Attachment<PortmapConf>): boolean {
  if (OF_OPEN_VSWITCH.includes(kind)) return true;
  const named = (prevResult?.interfaces ?? []).filter(({ sandbox }) => !sandbox);
  // The result may have an alternative name.
  return named.some((each) => each.name === name) || named.some((each) => linkIndex(host.route, each.name) === index);
}

/** The host's link towards the container; undefined when the host has no route to it. */
function linkTowardsContainer({ host }: Attachment<PortmapConf>, address: string): Link | undefined {
  try {
    return linkTowards(host.route, parsePrefix(address)!.bytes);
  } catch (error) {
    throw new CniError(INTERNAL, `unable to enable route_localnet: ${(error as Error).message}`, "", {
      cause: error,
    });
  }
}
