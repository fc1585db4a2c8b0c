/** What the configuration and CNI_ARGS say about a lease, checked. */
import { CniError, INVALID_CONFIG } from "../../../cni/error.ts";
import {
  clientIdOf,
  type Provided,
  providedOptions,
  wantedOptions,
} from "../../../services/dhcp/v4/lease/identity.ts";
import { LONGEST_OPTION, option } from "../../../services/dhcp/v4/message/message.ts";
import { clientIdOfDuid, duidOf, iaidOf } from "../../../services/dhcp/v6/lease/identity.ts";
import {
  EXPIRIES,
  FAMILIES,
  type FamilyName,
  IGNORED,
  type Ignored,
  type LeaseOptions,
  PROBES,
  type V6Options,
} from "../../../services/dhcp/lease-options.ts";
import { readTextFile } from "../../../ffi/files.ts";
import { formatAddress, formatPrefix, hasHostBits, parseAddress, parsePrefix } from "../../../net/address.ts";
import { parseMac } from "../../../net/mac.ts";
import { meansPlugin } from "../../../cni/plugin-name.ts";
import type { Route } from "../../../cni/result.ts";
import type { Owner } from "../../../contract/owner.ts";
import type { DhcpConf } from "./dhcp.schema.ts";

type DhcpIpam = NonNullable<DhcpConf["ipam"]>;

export interface Caller {
  owner: Owner;
  cniArgs: string;
  /** The MAC address of the container's link; undefined when it has none. */
  mac: string | undefined;
}

/** Their frames come to a hardware address that others have, too; before it has an address, only broadcasts reach it. */
const SHARES_MAC = "ipvlan";
const DEFAULT_BRIDGE = "cni0";

/** Throws a CniError that names the key and its value. */
export function leaseOptionsOf(conf: DhcpConf, caller: Caller): LeaseOptions {
  const ipam = conf.ipam!, provided = providedOptions(ipam.provide as Provided[] ?? [], argsOf(caller.cniArgs));
  const { acd = "fast", onExpiry = "remove", hostname } = ipam;
  if (hostname) provided.set(option.hostName, hostNameOf(hostname));
  // Go's plugin sends a provided client id in place of its own.
  const ownId = provided.get(option.clientId);
  provided.delete(option.clientId);
  const clientId = ownId ?? clientIdFor(ipam, caller);
  if (ipam.timeout !== undefined && ipam.timeout < 1) throw invalid("timeout", ipam.timeout, "a number of seconds");
  return {
    clientId: clientId?.toHex(),
    wanted: wantedOptions(ipam.request ?? []),
    provided: [...provided].map(([number, bytes]) => [number, bytes.toHex()]),
    broadcast: ipam.broadcast === true || meansPlugin(conf.type, SHARES_MAC),
    probe: oneOf("acd", acd, PROBES),
    servers: (ipam.servers ?? []).map((text) => v4Address("servers", text)),
    denied: (ipam.denyServers ?? []).map((text) => v4Address("denyServers", text)),
    onExpiry: oneOf("onExpiry", onExpiry, EXPIRIES),
    ignored: ignoredOf(conf),
    priority: ipam.priority,
    routes: routesIn(ipam),
    v4: ipam.ipv4,
    v6: ipam.ipv6 ? v6OptionsOf(caller.owner) : undefined,
    required: requiredOf(ipam),
    timeout: ipam.timeout,
    hostLink: conf.master ?? conf.bridge ?? (meansPlugin(conf.type, "bridge") ? DEFAULT_BRIDGE : undefined),
  };
}

/** The same for both families, so that servers can tell that it is one container (RFC 4361). */
function v6OptionsOf({ containerId, network, ifName }: Owner): V6Options {
  const machineId = (readTextFile("/etc/machine-id") ?? "").trim();
  return { duid: duidOf(machineId, containerId, network).toHex(), iaid: iaidOf(ifName).toHex() };
}

function requiredOf({ ipv4, ipv6, required }: DhcpIpam): FamilyName[] {
  const wanted = FAMILIES.filter((family) => family === "ipv4" ? ipv4 : ipv6);
  if (wanted.length === 0) throw invalid("ipv4", ipv4, "true, unless ipv6 is");
  if (required === undefined) return wanted;
  const named = required.map((text) => oneOf("required", text, FAMILIES));
  const absent = named.find((family) => !wanted.includes(family));
  if (absent !== undefined) throw invalid("required", absent, `only what is wanted: set ipam.${absent} to true`);
  return named;
}

export function ignoredOf({ ipam }: DhcpConf): Ignored[] {
  return (ipam?.ignore ?? []).map((text) => oneOf("ignore", text, IGNORED));
}

/** What the kernel has room for. */
const MOST = { priority: 0xffffffff, table: 0xffffffff, mtu: 0xffffffff, advmss: 0xffffffff, scope: 255 };

/** The service adds them long after ADD, too, so the kernel has to take them. */
export function routesIn({ routes, ipv4, ipv6 }: DhcpIpam): Route[] | undefined {
  return routes?.map(({ dst = "", gw, ...rest }, index) => {
    const key = `routes[${index}]`, prefix = parsePrefix(dst);
    if (prefix === undefined || hasHostBits(prefix)) throw invalid(`${key}.dst`, dst, "a network in CIDR notation");
    const [family, isWanted] = prefix.bytes.length === 4 ? ["ipv4", ipv4] : ["ipv6", ipv6];
    if (!isWanted) throw invalid(`${key}.dst`, dst, `another destination, unless ipam.${family} is true`);
    for (const [name, most] of Object.entries(MOST)) {
      const value = rest[name as keyof typeof MOST];
      if (value !== undefined && !(value >= 0 && value <= most)) {
        throw invalid(`${key}.${name}`, value, `0 to ${most}`);
      }
    }
    const route = { dst: formatPrefix(prefix), ...rest };
    if (!gw) return route;
    const gateway = parseAddress(gw);
    if (gateway?.length !== prefix.bytes.length) {
      throw invalid(`${key}.gw`, gw, "an address of the destination's family");
    }
    return { ...route, gw: formatAddress(gateway) };
  });
}

/** Like the reference plugin's: pairs without "=" are passed over. */
function argsOf(text: string): Record<string, string> {
  const args: Record<string, string> = {};
  for (const pair of text.split(";")) {
    const equals = pair.indexOf("=");
    if (equals > 0) args[pair.slice(0, equals)] = pair.slice(equals + 1);
  }
  return args;
}

function clientIdFor({ clientId = "container" }: DhcpIpam, { owner, cniArgs, mac }: Caller): Uint8Array | undefined {
  const { containerId, network, ifName } = owner;
  switch (clientId) {
    case "container":
      return clientIdOf(containerId, network, ifName);
    case "none":
      return undefined;
    case "duid": {
      const { duid, iaid } = v6OptionsOf(owner);
      return clientIdOfDuid(Uint8Array.fromHex(duid), Uint8Array.fromHex(iaid));
    }
    case "mac":
      return mac === undefined ? undefined : Uint8Array.of(1, ...parseMac(mac)!);
    case "name": {
      const { K8S_POD_NAMESPACE = "", K8S_POD_NAME = "" } = argsOf(cniArgs);
      if (K8S_POD_NAME === "") {
        throw invalid("clientId", clientId, "it takes K8S_POD_NAME from CNI_ARGS, which is not there");
      }
      return clientIdOf(K8S_POD_NAMESPACE, K8S_POD_NAME, ifName);
    }
  }
  const bytes = verbatim(clientId);
  if (bytes !== undefined && bytes.length > 0 && bytes.length <= LONGEST_OPTION) return bytes;
  throw invalid("clientId", clientId, "container, mac, name, duid, none, text:… or hex:… of 1 to 255 bytes");
}

function verbatim(text: string): Uint8Array | undefined {
  if (text.startsWith("text:")) return new TextEncoder().encode(text.slice(5));
  if (!/^hex:([0-9A-Fa-f]{2})+$/.test(text)) return undefined;
  return Uint8Array.fromHex(text.slice(4));
}

function hostNameOf(name: string): Uint8Array {
  const isName = name.length <= LONGEST_OPTION &&
    name.split(".").every((label) => /^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/.test(label));
  if (!isName) throw invalid("hostname", name, "letters, digits and hyphens, at most 63 between two dots");
  return new TextEncoder().encode(name);
}

function v4Address(key: string, text: string): string {
  if (parseAddress(text)?.length !== 4) throw invalid(key, text, "an IPv4 address");
  return text;
}

function oneOf<Word extends string>(key: string, text: string, words: readonly Word[]): Word {
  if ((words as readonly string[]).includes(text)) return text as Word;
  throw invalid(key, text, words.join(", "));
}

function invalid(key: string, value: unknown, wanted: string): CniError {
  return new CniError(INVALID_CONFIG, `ipam.${key}: ${JSON.stringify(value)} is not valid`, `expected: ${wanted}`);
}
