/**
 * The link that carries the gateway address of a tagged network: a veth pair on the host, one end named `BRIDGE.VLAN`, the
 * other an untagged bridge port of that VLAN. The network's containers share it, so DEL leaves it, present or not. Only a
 * failed ADD removes the pair it has just created, and only if no other port is in the VLAN.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Host } from "../../contract/host.ts";
import { EEXIST } from "../../ffi/errno.ts";
import { addPortVlans, delPortVlans, listPortVlans } from "../../ffi/netlink/route/bridge.ts";
import { addLink, delLink, getLink, type Link, listLinks, setLink } from "../../ffi/netlink/route/link.ts";
import { vethKind } from "../../ffi/netlink/route/link-kinds.ts";
import { isNetlinkError } from "../../ffi/netlink/socket.ts";
import { randomMac } from "../../ffi/random.ts";
import { parseMac } from "../../net/mac.ts";
import { CniError, INTERNAL } from "../../cni/error.ts";
import { sayingWhatIsLacking } from "../link/shared/vlan-filtering.ts";
import { freshHostName } from "../link/shared/usable.ts";
import { aliasFor, isVlanGateway } from "../link/shared/host-link.ts";
import { accepted, advertisements, refusals, refuse } from "../link/shared/refusals.ts";
import { undoUnlessRefused } from "../../contract/undo-unless-refused.ts";

// linux/if.h: IFNAMSIZ without the terminating zero.
const LONGEST_NAME = 15;

interface VlanGatewaySpec {
  bridge: string;
  vlan: number;
  /** The MTU of the port that is about to join. The bridge takes the smallest MTU of its ports. */
  mtu?: number;
  /** The network that the gateway is made for. */
  network: string;
}

export function vlanGatewayName({ bridge, vlan }: VlanGatewaySpec): string {
  return `${bridge}.${vlan}`;
}

function requireShort(name: string): void {
  if (name.length <= LONGEST_NAME) return;
  throw new CniError(INTERNAL, `interface name "${name}" is too long`, "choose a shorter name for the bridge");
}

export const vlanGatewayKind: ResourceKind<VlanGatewaySpec, { name: string; mac: string; created: boolean }> = {
  kind: "vlan-gateway",
  isSharedOnHost: true,
  confines: true,
  unmade: { name: "", mac: "", created: false },
  judge: (spec) => requireShort(vlanGatewayName(spec)),
  apply(spec, host) {
    const name = vlanGatewayName(spec);
    requireShort(name);
    const bridge = getLink(host.route, spec.bridge)!;
    const created = getLink(host.route, name) === undefined && create(spec, bridge, host);
    try {
      const link = getLink(host.route, name)!;
      refuse(refusals(link.name));
      // `finish` sets the link up last. If it is down, the ADD that created it died or is still running, and finishing
      // twice does no harm.
      if (!link.up) finish(link, bridge, spec, host);
      return { name, mac: link.mac, created };
    } catch (error) {
      if (created) undoAfter(error, () => removeUnused(spec, host));
      throw error;
    }
  },
  undo(spec, { created }, host) {
    if (created) removeUnused(spec, host);
  },
  repair: (spec, host) => void vlanGatewayKind.apply(spec, host),
  remove: () => {},
  verify(spec, host, isRestated) {
    const link = getLink(host.route, vlanGatewayName(spec));
    if (link === undefined) return [`VLAN gateway ${vlanGatewayName(spec)} is missing`];
    const state = link.up ? [] : [`VLAN gateway ${link.name} is down`];
    // The reference plugin leaves it open (docs/quirks/bridge.md, "vlan-gateway-ignores-advertisements").
    return isRestated ? state : [...state, ...accepted(refusals(link.name))];
  },
  describe: (spec) => `VLAN gateway ${vlanGatewayName(spec)}`,
  /** After the bridge. Where that stays, another network may use the VLAN. */
  retire({ network, isDryRun }, _specs, host) {
    return listLinks(host.route).filter((link) => isVlanGateway(link, undefined, network)).map((link) => {
      const what = `VLAN gateway ${link.name}`, vlan = Number(link.name.slice(link.name.lastIndexOf(".") + 1));
      const [user] = othersInVlan(link, vlan, host);
      if (user !== undefined) return { what, staysBecause: `${user.name} is in its VLAN`, link: link.name };
      if (!isDryRun) delLink(host.route, link.name);
      return { what, link: link.name };
    });
  },
};

/** Returns false when a concurrent ADD created it first. */
function create(spec: VlanGatewaySpec, bridge: Link, host: Host): boolean {
  const name = vlanGatewayName(spec), mtu = Math.min(spec.mtu ?? bridge.mtu, bridge.mtu);
  try {
    addLink(host.route, {
      ifName: freshHostName(host),
      mtu,
      master: bridge.index,
      // A given one: udev's MACAddressPolicy changes those that the kernel picked.
      kind: vethKind({ peer: { ifName: name, mtu, address: parseMac(randomMac()) } }),
    });
    return true;
  } catch (error) {
    if (isNetlinkError(error, EEXIST)) return false;
    undoUnlessRefused(error, () => removeUnused(spec, host));
    throw error;
  }
}

function finish(link: Link, bridge: Link, { vlan, network }: VlanGatewaySpec, host: Host): void {
  const port = otherEnd(link, host);
  if (port !== undefined && port.master === bridge.index) {
    const present = listPortVlans(host.route, port);
    sayingWhatIsLacking(() =>
      addPortVlans(host.route, port, [{ first: vlan, last: vlan, pvid: true, untagged: true }])
    );
    delPortVlans(host.route, port, present.filter(({ first }) => first !== vlan));
    refuse(advertisements(port.name));
    setLink(host.route, port, { up: true });
  }
  setLink(host.route, link, { up: true, alias: aliasFor(network) });
}

/** Leaves the pair while another port is in its VLAN, or while another ADD may be about to use it. */
function removeUnused(spec: VlanGatewaySpec, host: Host): void {
  if (!host.isAloneWithShared()) return;
  const link = getLink(host.route, vlanGatewayName(spec));
  if (link === undefined) return;
  if (othersInVlan(link, spec.vlan, host).length === 0) delLink(host.route, link.name);
}

/** The other ports of its bridge that are in the VLAN. */
function othersInVlan(link: Link, vlan: number, host: Host): Link[] {
  const port = otherEnd(link, host), master = port?.master;
  if (master === undefined) return [];
  return listLinks(host.route, { master }).filter((other) =>
    other.master === master && other.index !== port!.index &&
    listPortVlans(host.route, other).some(({ first }) => first === vlan)
  );
}

function otherEnd(link: Link, host: Host): Link | undefined {
  if (link.kind !== "veth" || link.link === undefined || link.linkNetnsId !== undefined) return undefined;
  return getLink(host.route, link.link);
}

export const vlanGateway = resource(vlanGatewayKind);
