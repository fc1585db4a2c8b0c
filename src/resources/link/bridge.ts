/**
 * The bridge of a network, shared by its containers. ADD creates it when it is absent. DEL leaves it, present or not; only
 * a failed ADD removes the bridge it has just created, and only if no other link has become its port.
 *
 * The bridge keeps the MAC address it was created with. Otherwise it would take the lowest MAC among its ports, change it
 * as containers come and go, and lose every neighbour that has cached the old one. We set the address after the bridge is
 * up: a bridge created with an address has no carrier until a port forwards, and without carrier the kernel gives it no
 * link-local address.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import { EEXIST, EOPNOTSUPP } from "../../ffi/errno.ts";
import { isNetlinkError } from "../../ffi/netlink/socket.ts";
import { addLink, delLink, getLink, type Link, linkIndex, listLinks, setLink } from "../../ffi/netlink/route/link.ts";
import { hasPorts, knowsVlanFiltering } from "../../ffi/netlink/route/bridge.ts";
import { bridgeKind as bridgeLink } from "../../ffi/netlink/route/link-kinds.ts";
import { randomMac } from "../../ffi/random.ts";
import { warn } from "../../process/warn.ts";
import { CniError, errorText, INTERNAL, INVALID_CONFIG } from "../../cni/error.ts";
import { checkIfName } from "../../cni/invocation.ts";
import { NO_MAC } from "../../net/mac.ts";
import type { Host } from "../../contract/host.ts";
import { aliasFor, isVlanGateway, keepAddress, MADE, whyOthers } from "./shared/host-link.ts";
import { requireUsableMtu } from "./shared/usable.ts";
import { accepted, advertisements, redirects, refuse, refuseRedirects } from "./shared/refusals.ts";
import { undoUnlessRefused } from "../../contract/undo-unless-refused.ts";
import { NO_VLAN_FILTERING } from "./shared/vlan-filtering.ts";

interface BridgeSpec {
  name: string;
  mtu?: number;
  vlanFiltering: boolean;
  promiscuous: boolean;
  /** The network that the bridge is made for. */
  network: string;
}

interface MadeBridge {
  index: number;
  /** Its own, where the configuration has an alternative one. */
  name: string;
  mac: string;
  /** What it is to have as its ports come and go (bridge-gateway.ts). */
  macToKeep: string;
  /** The bridge keeps its MAC address without being told to. */
  keepsMac: boolean;
  created: boolean;
  /** Restores the host's setting. There is none for a bridge that was found. */
  restoreHost?: () => void;
}

/** Returns false when a concurrent ADD created it first. */
function create(spec: BridgeSpec, host: Host): boolean {
  try {
    addLink(host.route, {
      ifName: spec.name,
      kind: bridgeLink(spec.vlanFiltering ? { vlanFiltering: 1 } : {}),
      mtu: spec.mtu,
    });
    return true;
  } catch (error) {
    if (isNetlinkError(error, EEXIST)) return false;
    undoUnlessRefused(error, () => removeUnused(spec, host));
    const reason = `could not add "${spec.name}": ${(error as Error).message}`;
    const details = spec.vlanFiltering && isNetlinkError(error, EOPNOTSUPP) ? NO_VLAN_FILTERING : "";
    throw new CniError(INTERNAL, `failed to create bridge "${spec.name}": ${reason}`, details, { cause: error });
  }
}

function requireBridge({ kind }: Link, { name }: BridgeSpec): void {
  if (kind === "bridge") return;
  throw new CniError(
    INTERNAL,
    `failed to create bridge "${name}": "${name}" already exists but is not a bridge`,
    `it is a ${kind ?? "physical"} link; name another bridge in the configuration, or remove it`,
  );
}

/** Writes into `made` as soon as there is something to undo. */
function prepare(link: Link | undefined, made: MadeBridge, spec: BridgeSpec, host: Host): void {
  if (link === undefined) throw new CniError(INTERNAL, `bridge "${spec.name}" vanished while it was being created`);
  requireBridge(link, spec);
  // Without such bridges, the port's VLANs will be refused.
  if (spec.vlanFiltering && !link.vlanFiltering && knowsVlanFiltering(host.route)) {
    warn(
      `bridge ${spec.name} existed before and does not filter VLANs: "vlan" and "vlanTrunk" have no effect ` +
        `until "ip link set ${spec.name} type bridge vlan_filtering 1"`,
    );
  }
  // The bridge may be found by an alternative name, which the sysctls do not have.
  refuse(advertisements(link.name));
  const restoreHost = refuseRedirects(link.name);
  if (made.created) made.restoreHost = restoreHost;
  const promiscuous = spec.promiscuous && link.promiscuity === 0 ? true : undefined;
  if (!link.up || promiscuous) setLink(host.route, link, { up: true, promiscuous });
  if (made.created) keepAddress(link, host, aliasFor(spec.network));
  const { index, name, mac, alias } = link;
  const keepsMac = made.created || alias?.startsWith(MADE) === true;
  Object.assign(made, { index, name, mac, macToKeep: mac === NO_MAC ? randomMac() : mac, keepsMac });
}

/**
 * Leaves the bridge while another link is its port, or while another ADD may be about to use it. Returns whether the host
 * is without any bridge now.
 */
function removeUnused({ name }: BridgeSpec, host: Host): boolean {
  if (!host.isAloneWithShared()) return false;
  const link = getLink(host.route, name);
  if (link === undefined) return false;
  if (!hasPorts(host.route, link)) delLink(host.route, name);
  return listLinks(host.route).every(({ kind }) => kind !== "bridge");
}

/** An existing bridge may be named by an alternative name, which may be longer. */
export function requireBridgeName(name: string, host: Host): void {
  try {
    checkIfName(name);
  } catch (error) {
    if (linkIndex(host.route, name) !== undefined) return;
    const text = `failed to create bridge "${name}": could not add "${name}": ${errorText(error)}`;
    throw new CniError(INVALID_CONFIG, text, "", { cause: error });
  }
}

/** The network's VLAN gateways are no users: they go after it (address/vlan-gateway.ts). */
function whyItStays(link: Link, network: string, host: Host): string | undefined {
  if (link.kind !== "bridge") return `it is a ${link.kind ?? "physical"} link`;
  const reason = whyOthers(link, network);
  if (reason !== undefined) return reason;
  if (!host.isAloneWithShared()) return "something is being attached";
  const links = listLinks(host.route), gateways = links.filter((one) => isVlanGateway(one, link.name, network));
  const ports = links.filter((port) =>
    port.master === link.index && gateways.every((gateway) => gateway.link !== port.index)
  );
  // A link upon the bridge, such as a VLAN, uses it. The other end of a veth pair does not.
  const above = links.filter((other) => other.link === link.index && other.linkNetnsId === undefined);
  const users = [...ports, ...above].map(({ name }) => name);
  return users.length === 0 ? undefined : `${users.join(", ")} ${users.length === 1 ? "uses" : "use"} it`;
}

export const bridgeKind: ResourceKind<BridgeSpec, MadeBridge> = {
  kind: "bridge",
  isSharedOnHost: true,
  confines: true,
  unmade: { index: 0, name: "", mac: "", macToKeep: "", keepsMac: true, created: false },
  requireRoom: ({ name }, host) => requireBridgeName(name, host),
  judge(spec, host) {
    const link = getLink(host.route, spec.name);
    if (link !== undefined) requireBridge(link, spec);
    else requireUsableMtu(spec.mtu);
  },
  apply(spec, host) {
    host.useShared();
    const existing = getLink(host.route, spec.name);
    const made: MadeBridge = { ...bridgeKind.unmade, created: existing === undefined && create(spec, host) };
    try {
      prepare(existing ?? getLink(host.route, spec.name), made, spec, host);
      return made;
    } catch (error) {
      undoAfter(error, () => bridgeKind.undo!(spec, made, host));
      throw error;
    }
  },
  undo(spec, { created, restoreHost }, host) {
    // Other bridges may need it as it is.
    if (created && removeUnused(spec, host)) restoreHost?.();
  },
  repair: (spec, host) => void bridgeKind.apply(spec, host),
  remove: () => {},
  verify({ name, promiscuous, vlanFiltering }, host, isRestated) {
    const link = getLink(host.route, name);
    if (link === undefined) return [`bridge ${name} is missing`];
    if (link.kind !== "bridge") return [`link ${name} is a ${link.kind}, not a bridge`];
    // The reference plugin leaves redirects open (docs/quirks/bridge.md, "host-refuses-redirects").
    const differences = accepted([...advertisements(link.name), ...isRestated ? [] : redirects(link.name)]);
    if (!link.up) differences.push(`bridge ${name} is down`);
    if (promiscuous && link.promiscuity === 0) differences.push(`bridge ${name} is not promiscuous`);
    if (vlanFiltering && !link.vlanFiltering) differences.push(`bridge ${name} does not filter VLANs`);
    return differences;
  },
  describe: ({ name }) => `bridge ${name}`,
  retire({ network, isDryRun, networkUpon }, specs, host) {
    const made = listLinks(host.route).filter((link) => link.kind === "bridge" && link.alias === aliasFor(network));
    const named = specs.map(({ name }) => getLink(host.route, name)).filter((link) => link !== undefined)
      .filter(({ index }) => made.every((link) => link.index !== index));
    return [...made, ...named].map((link) => {
      const upon = networkUpon(link.name), user = upon && `a container of network ${upon} has a link upon it`;
      const staysBecause = whyItStays(link, network, host) ?? user;
      if (staysBecause === undefined && !isDryRun) delLink(host.route, link.name);
      return { what: `bridge ${link.name}`, staysBecause, link: link.name };
    });
  },
};

export const bridge = resource(bridgeKind);
