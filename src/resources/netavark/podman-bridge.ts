/**
 * The bridge of a network of podman's, with its sysctls and the gateways as its addresses. The first container makes it,
 * and the last one removes it. An existing bridge keeps what it has, is set up, and gets the gateways that it lacks. An
 * unmanaged bridge belongs to the host.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Host } from "../../contract/host.ts";
import { EACCES, EEXIST, isErrno } from "../../ffi/errno.ts";
import { addAddress, delAddress, listAddresses } from "../../ffi/netlink/route/address.ts";
import { bridgeKind as bridgeLink } from "../../ffi/netlink/route/link-kinds.ts";
import { addLink, delLink, getLink, type Link, setLink } from "../../ffi/netlink/route/link.ts";
import { isNetlinkError } from "../../ffi/netlink/socket.ts";
import { formatPrefix, isV6, parsePrefix } from "../../net/address.ts";
import { keepAddress } from "../link/shared/host-link.ts";
import { accepted, refuse } from "../link/shared/refusals.ts";
import { ensureSysctl, hostSysctls, isSpare, linkSysctls, type PodmanBridgeSpec, refusals } from "./shared/bridge.ts";
import { netlinkText, NO_UNMANAGED_BRIDGE } from "./shared/failure.ts";

interface Made {
  isCreated: boolean;
  given?: Given;
}

/** What ADD gave to an existing bridge. */
interface Given {
  gateways: string[];
  up: boolean;
  vlanFiltering: boolean;
}

export const podmanBridgeKind: ResourceKind<PodmanBridgeSpec, Made> = {
  kind: "podman-bridge",
  unmade: { isCreated: false },
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
      ...missingGateways(link, spec, host).map((gateway) => `address ${gateway} of bridge ${name} is missing`),
      ...accepted(refusals(link.name)),
    ];
  },
  repair(spec, host) {
    const link = getLink(host.route, spec.name);
    if (link === undefined) throw new Error("only a teardown and another setup of all its containers make it again");
    use(link, spec, host);
  },
  remove({ name, isManaged }, host) {
    if (isManaged && getLink(host.route, name)?.kind === "bridge" && isSpare(name, host)) delLink(host.route, name);
  },
  describe: ({ name, isManaged }) => `bridge ${name}${isManaged ? "" : ", which stays"}`,
};

export const podmanBridge = resource(podmanBridgeKind);

function use(link: Link, spec: PodmanBridgeSpec, host: Host): Made {
  const { name, isManaged, filtersVlans } = spec;
  if (link.kind !== "bridge") {
    throw new Error(`bridge interface ${name} already exists but is a ${kindOf(link)} interface`);
  }
  const given: Given = { gateways: [], up: false, vlanFiltering: false };
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
  return { isCreated: false, given };
}

function giveWhatItLacks(link: Link, spec: PodmanBridgeSpec, given: Given, host: Host): void {
  // A bridge of netavark, or of an older build of this program, may still accept them.
  refuse(refusals(link.name));
  for (const gateway of missingGateways(link, spec, host)) {
    if (addGateway(link, gateway, host) === "added") given.gateways.push(gateway);
  }
  if (link.up) return;
  setLink(host.route, link, { up: true });
  given.up = true;
}

function takeBack({ gateways, up, vlanFiltering }: Given, { name }: PodmanBridgeSpec, host: Host): void {
  const link = getLink(host.route, name);
  if (link === undefined) return;
  for (const gateway of gateways) delAddress(host.route, link.index, parsePrefix(gateway)!);
  if (up) setLink(host.route, link, { up: false });
  if (vlanFiltering) setLink(host.route, link, { kind: bridgeLink({ vlanFiltering: 0 }) });
}

/** Several networks may share a bridge with VLANs, and it has the gateways of the first: none is in a VLAN. */
function missingGateways(link: Link, { gateways, filtersVlans }: PodmanBridgeSpec, host: Host): string[] {
  if (filtersVlans) return [];
  const present = listAddresses(host.route, link.index).map(formatPrefix);
  return gateways.filter((gateway) => !present.includes(formatPrefix(parsePrefix(gateway)!)));
}

function kindOf({ kind }: Link): string {
  return kind === undefined ? "physical" : kind.charAt(0).toUpperCase() + kind.slice(1);
}

/** Another program may make it at the same time. */
function create(spec: PodmanBridgeSpec, host: Host): Made {
  const { name, mtu, filtersVlans } = spec;
  const master = spec.vrf === undefined ? undefined : vrfIndex(spec.vrf, host);
  for (const [key, value] of hostSysctls(spec)) ensureSysctl(key, value);
  try {
    addLink(host.route, { ifName: name, kind: bridgeLink(filtersVlans ? { vlanFiltering: 1 } : {}), mtu, master });
  } catch (error) {
    const existing = isNetlinkError(error, EEXIST) ? getLink(host.route, name) : undefined;
    if (existing !== undefined) return use(existing, spec, host);
    throw new Error(`create bridge: ${netlinkText(error)}`, { cause: error });
  }
  try {
    for (const [key, value] of linkSysctls(spec)) ensureSysctl(key, value);
    // New links may be open for 127.0.0.1. A published port opens the bridge, together with its guard.
    ensureSysctl(`net/ipv4/conf/${name}/route_localnet`, "0");
    refuse(refusals(name));
    const link = getLink(host.route, name)!;
    for (const gateway of spec.gateways) addGateway(link, gateway, host);
    setLink(host.route, link, { up: true });
    keepAddress(link, host);
    return { isCreated: true };
  } catch (error) {
    undoAfter(error, () => delLink(host.route, name));
    throw error;
  }
}

function addGateway(link: Link, gateway: string, host: Host): "added" | "present" {
  try {
    return addAddress(host.route, link.index, parsePrefix(gateway)!, { skipDad: false });
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
