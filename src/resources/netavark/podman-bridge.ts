/**
 * The bridge of a network of podman's, with its sysctls and the gateways as its addresses. The first container makes it,
 * and the last one removes it. An existing bridge keeps what it has, is set up, and gets the gateways that it lacks. An
 * unmanaged bridge belongs to the host. That of an internal network is closed (packets/shared/internal-bridges.ts) as long as it is
 * there, also for other networks that share it.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Host } from "../../contract/host.ts";
import { EACCES, EEXIST, isErrno } from "../../ffi/errno.ts";
import { mayWrite } from "../../ffi/access.ts";
import { addAddress, delAddress, listAddresses } from "../../ffi/netlink/route/address.ts";
import { bridgeKind as bridgeLink } from "../../ffi/netlink/route/link-kinds.ts";
import { addLink, delLink, getLink, type Link, setLink } from "../../ffi/netlink/route/link.ts";
import { isNetlinkError } from "../../ffi/netlink/socket.ts";
import { readSysctl, sysctlName, tryWriteSysctl } from "../../ffi/sysctl.ts";
import { formatPrefix, isV6, parsePrefix } from "../../net/address.ts";
import { whyNoV6 } from "../address/shared/disabled-v6.ts";
import { mendWay, wayDifference } from "../address/shared/way-to-container.ts";
import { forwardingKind } from "../kernel/forwarding.ts";
import { keepAddress } from "../link/shared/host-link.ts";
import { accepted, refusals, refuse } from "../link/shared/refusals.ts";
import { ensureSysctl, hostSysctls, isSpare, linkSysctls, type PodmanBridgeSpec } from "./shared/bridge.ts";
import { netlinkText, NO_UNMANAGED_BRIDGE } from "./shared/failure.ts";

interface Made {
  isCreated: boolean;
  /** 127.0.0.1 of the host may be within reach of the bridge's ports (packets/localhost-access.ts). */
  mayBeOpen: boolean;
  given?: GivenToBridge;
}

/** What ADD gave to an existing bridge. */
interface GivenToBridge {
  gateways: string[];
  up: boolean;
  vlanFiltering: boolean;
  /** The network is internal. */
  closed?: true;
  /** The switches that it has set to 0. */
  notForwarding: string[];
}

export const podmanBridgeKind: ResourceKind<PodmanBridgeSpec, Made> = {
  kind: "podman-bridge",
  confines: true,
  unmade: { isCreated: false, mayBeOpen: true },
  closes: ({ name, isInternal }) => isInternal ? name : undefined,
  apply(spec, host) {
    const existing = getLink(host.route, spec.name);
    if (existing !== undefined) return use(existing, spec, host);
    if (!spec.isManaged) throw new Error(NO_UNMANAGED_BRIDGE);
    return create(spec, host);
  },
  undo(spec, { isCreated, given }, host) {
    if (isCreated) podmanBridgeKind.remove(spec, host);
    else if (given !== undefined) takeBack(given, spec, host);
  },
  verify(spec, host) {
    const { name, isManaged } = spec, link = getLink(host.route, name);
    if (link === undefined) return [`bridge ${name} is missing`];
    if (link.kind !== "bridge") return [`link ${name} is a ${link.kind ?? "physical link"}, not a bridge`];
    if (!isManaged) return [];
    return [
      ...link.up ? [] : [`bridge ${name} is down`],
      ...hostSysctls(spec).filter(([key, value]) => readSysctl(key) !== value).map(([key]) =>
        `${sysctlName(key)} is not 1`
      ),
      ...missingGateways(link, spec, host).map((gateway) => whyMissing(gateway, name)),
      ...accepted(refusals(link.name)),
      ...spec.isInternal ? [...internalBridges().openings(link, host), ...forwarding(link, spec)] : [],
    ];
  },
  repair(spec, host) {
    const link = getLink(host.route, spec.name);
    if (link === undefined) throw new Error("only a teardown and another setup of all its containers make it again");
    if (spec.isManaged) letHostForward(spec, host);
    use(link, spec, host);
    for (const address of managedGateways(spec)) mendWay({ ifName: spec.name, address }, host);
  },
  inTheWay: (spec, host) => [
    ...spec.isManaged && !spec.isInternal ? forwardingKind.inTheWay!({ family: 4, ifName: spec.name }, host) : [],
    ...managedGateways(spec).flatMap((address) => wayDifference({ ifName: spec.name, address }, host)),
  ],
  remove({ name, isManaged, isInternal }, host) {
    if (!isManaged) return;
    const isUnused = isSpare(name, host);
    if (getLink(host.route, name)?.kind === "bridge" && isUnused) delLink(host.route, name);
    // A network that is not internal may have been the last on a bridge that an internal one has closed.
    if (isInternal || isUnused) internalBridges().openLeftBridges(name, host);
  },
  ownTable: ({ isManaged, isInternal }) =>
    isManaged === false || isInternal === false ? undefined : internalBridges().internalTable,
  isHarmlessWhenLeft: true,
  describe: ({ name, isManaged, isInternal }) =>
    `bridge ${name}${!isManaged ? ", which stays" : isInternal ? "; nothing is forwarded from it or to it" : ""}`,
};

export const podmanBridge = resource(podmanBridgeKind);

/** Throws where the kernel lacks what the bridge takes. */
export function requireKernel({ isManaged, isInternal }: PodmanBridgeSpec, host: Host): void {
  if (isManaged && isInternal) internalBridges().requireNfTables(host);
}

function use(link: Link, spec: PodmanBridgeSpec, host: Host): Made {
  const { name, isManaged, filtersVlans } = spec;
  if (link.kind !== "bridge") {
    throw new Error(`bridge interface ${name} already exists but is a ${kindOf(link)} interface`);
  }
  const given: GivenToBridge = { gateways: [], up: false, vlanFiltering: false, notForwarding: [] };
  try {
    if (filtersVlans && !link.vlanFiltering) {
      setLink(host.route, link, { kind: bridgeLink({ vlanFiltering: 1 }) });
      given.vlanFiltering = true;
    }
    if (isManaged) giveWhatItLacks(link, spec, given, host);
  } catch (error) {
    undoAfter(error, () => takeBack(given, spec, host));
    throw error;
  }
  return { isCreated: false, mayBeOpen: true, given };
}

/** Few networks are internal. */
function internalBridges() {
  return require("../packets/shared/internal-bridges.ts") as typeof import("../packets/shared/internal-bridges.ts");
}

/** One line for each key by which the kernel would forward. Where it cannot be set, the rules have to do. */
function forwarding({ name }: Link, { hasV6 }: PodmanBridgeSpec): string[] {
  const keys = internalBridges().forwardingOf(name).slice(0, hasV6 ? 2 : 1);
  return keys.filter((key) => readSysctl(key) === "1" && mayWrite(`/proc/sys/${key}`))
    .map((key) => `${sysctlName(key)} is 1, not 0`);
}

function close(link: Link, { hasV6 }: PodmanBridgeSpec, given: GivenToBridge, host: Host): void {
  const { closeBridge, forwardingOf, isClosed } = internalBridges(), wasClosed = isClosed(link, host);
  if (!wasClosed) given.closed = true;
  closeBridge(link, host);
  for (const key of forwardingOf(link.name).slice(0, hasV6 ? 2 : 1)) {
    if (readSysctl(key) !== "1") continue;
    given.notForwarding.push(key);
    tryWriteSysctl(key, "0");
  }
}

function giveWhatItLacks(link: Link, spec: PodmanBridgeSpec, given: GivenToBridge, host: Host): void {
  if (spec.isInternal) close(link, spec, given, host);
  // A bridge of netavark may still accept them.
  refuse(refusals(link.name));
  for (const gateway of missingGateways(link, spec, host)) {
    if (addGateway(link, gateway, host) === "added") given.gateways.push(gateway);
  }
  if (link.up) return;
  setLink(host.route, link, { up: true });
  given.up = true;
}

/** A bridge with ports stays closed: an internal network's containers are there. */
function takeBack(given: GivenToBridge, { name }: PodmanBridgeSpec, host: Host): void {
  const { gateways, up, vlanFiltering, closed, notForwarding } = given, link = getLink(host.route, name);
  if (closed && isSpare(name, host)) {
    if (link !== undefined) internalBridges().openBridge(link, host);
    for (const key of notForwarding) tryWriteSysctl(key, "1");
  }
  if (link === undefined) return;
  for (const gateway of gateways) delAddress(host.route, link.index, parsePrefix(gateway)!);
  if (up) setLink(host.route, link, { up: false });
  if (vlanFiltering) setLink(host.route, link, { kind: bridgeLink({ vlanFiltering: 0 }) });
}

function whyMissing(gateway: string, bridge: string): string {
  const why = isV6(gateway) ? whyNoV6(bridge) : undefined;
  return `address ${gateway} of bridge ${bridge} is missing${why === undefined ? "" : `: ${why}`}`;
}

/** Several networks may share a bridge with VLANs, and it has the gateways of the first: none is in a VLAN. */
function managedGateways({ isManaged, filtersVlans, gateways }: PodmanBridgeSpec): readonly string[] {
  return isManaged && !filtersVlans ? gateways : [];
}

function missingGateways(link: Link, spec: PodmanBridgeSpec, host: Host): string[] {
  const present = listAddresses(host.route, link.index).map(formatPrefix);
  return managedGateways(spec).filter((gateway) => !present.includes(formatPrefix(parsePrefix(gateway)!)));
}

function kindOf({ kind }: Link): string {
  return kind === undefined ? "physical" : kind.charAt(0).toUpperCase() + kind.slice(1);
}

function letHostForward(spec: PodmanBridgeSpec, host: Host): void {
  const changed = hostSysctls(spec).filter(([key, value]) => ensureSysctl(key, value));
  if (changed.length > 0) internalBridges().keepForwardingOff(host);
}

/** Another program may make it at the same time. */
function create(spec: PodmanBridgeSpec, host: Host): Made {
  const { name, mtu, filtersVlans } = spec;
  const master = spec.vrf === undefined ? undefined : vrfIndex(spec.vrf, host);
  letHostForward(spec, host);
  try {
    addLink(host.route, { ifName: name, kind: bridgeLink(filtersVlans ? { vlanFiltering: 1 } : {}), mtu, master });
  } catch (error) {
    const existing = isNetlinkError(error, EEXIST) ? getLink(host.route, name) : undefined;
    if (existing !== undefined) return use(existing, spec, host);
    throw new Error(`create bridge: ${netlinkText(error)}`, { cause: error });
  }
  try {
    for (const [key, value] of linkSysctls(spec)) ensureSysctl(key, value);
    const mayBeOpen = !closesToLocalhost(name);
    refuse(refusals(name));
    const link = getLink(host.route, name)!;
    if (spec.isInternal) internalBridges().closeBridge(link, host);
    for (const gateway of spec.gateways) addGateway(link, gateway, host);
    setLink(host.route, link, { up: true });
    keepAddress(link, host);
    return { isCreated: true, mayBeOpen };
  } catch (error) {
    undoAfter(error, () => {
      delLink(host.route, name);
      if (spec.isInternal) internalBridges().openLeftBridges(name, host);
    });
    throw error;
  }
}

/** New links may be open. A published port opens the bridge, together with its guard. False where /proc/sys is read-only. */
function closesToLocalhost(name: string): boolean {
  const setting = `net/ipv4/conf/${name}/route_localnet`;
  if (readSysctl(setting) === "0") return true;
  tryWriteSysctl(setting, "0");
  return readSysctl(setting) === "0";
}

/** aardvark-dns listens at it at once, so the kernel does not look first whether a container has it. */
function addGateway(link: Link, gateway: string, host: Host): "added" | "present" {
  try {
    return addAddress(host.route, link.index, parsePrefix(gateway)!, { skipDad: true });
  } catch (error) {
    const isRefused = isErrno(error, EACCES) || isNetlinkError(error, EACCES);
    const hint = isRefused && isV6(gateway) ? "failed to add ipv6 address, is ipv6 enabled in the kernel?: " : "";
    throw new Error(`add ip addr to bridge: ${hint}${netlinkText(error)}`, { cause: error });
  }
}

function vrfIndex(name: string, host: Host): number {
  const link = getLink(host.route, name);
  if (link === undefined) {
    throw new Error(`get vrf to set up bridge interface: Netlink error: No such device (os error 19)`);
  }
  if (link.kind !== "vrf") throw new Error(`vrf ${name} already exists but is a ${kindOf(link)} interface`);
  return link.index;
}
