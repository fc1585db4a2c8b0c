/**
 * Where the gateway address of a tagged network lives: a veth pair within the host, one end named after bridge and
 * VLAN, the other an untagged port of that VLAN. Shared by the network's containers; DEL leaves it.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Host } from "../../contract/host.ts";
import { EEXIST } from "../../ffi/errno.ts";
import { addPortVlans, delPortVlans, listPortVlans } from "../../ffi/netlink/route/bridge-vlan.ts";
import { addLink, delLink, getLink, type Link, listLinks, setLink } from "../../ffi/netlink/route/link.ts";
import { vethKind } from "../../ffi/netlink/route/kinds/veth.ts";
import { isNetlinkError } from "../../ffi/netlink/socket.ts";
import { tryWriteSysctl } from "../../ffi/sysctl.ts";
import { CniError, INTERNAL } from "../../cni/error.ts";
import { freshHostName } from "../link/veth.ts";
import { undoUnlessRefused } from "../../contract/undo-unless-refused.ts";

export interface VlanGatewaySpec {
  bridge: string;
  vlan: number;
  /** Of the port that is about to join the bridge, which takes the smallest of its ports'. */
  mtu?: number;
}

interface MadeVlanGateway {
  name: string;
  mac: string;
  created: boolean;
}

export function vlanGatewayName({ bridge, vlan }: VlanGatewaySpec): string {
  return `${bridge}.${vlan}`;
}

export const vlanGatewayKind: ResourceKind<VlanGatewaySpec, MadeVlanGateway> = {
  kind: "vlan-gateway",
  unmade: { name: "", mac: "", created: false },
  apply(spec, host) {
    const name = vlanGatewayName(spec);
    if (name.length > 15) {
      throw new CniError(INTERNAL, `interface name "${name}" is too long`, "choose a shorter name for the bridge");
    }
    const bridge = getLink(host.route, spec.bridge)!;
    const created = getLink(host.route, name) === undefined &&
      make(spec, bridge, host);
    try {
      const link = getLink(host.route, name)!;
      // Up comes last: down, its maker died or is still at it, and doing the rest twice changes nothing.
      if (!link.up) finish(link, bridge, spec.vlan, host);
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
  verify(spec, host) {
    const link = getLink(host.route, vlanGatewayName(spec));
    if (link === undefined) return [`VLAN gateway ${vlanGatewayName(spec)} is missing`];
    return link.up ? [] : [`VLAN gateway ${link.name} is down`];
  },
  describe: (spec) => `VLAN gateway ${vlanGatewayName(spec)}`,
};

/** False when another ADD was faster. */
function make(spec: VlanGatewaySpec, bridge: Link, host: Host): boolean {
  const name = vlanGatewayName(spec), mtu = Math.min(spec.mtu ?? bridge.mtu, bridge.mtu);
  try {
    addLink(host.route, {
      ifName: freshHostName(host),
      mtu,
      master: bridge.index,
      up: true,
      kind: vethKind({ peer: { ifName: name, mtu } }),
    });
    return true;
  } catch (error) {
    if (isNetlinkError(error, EEXIST)) return false;
    undoUnlessRefused(error, () => removeUnused(spec, host));
    throw error;
  }
}

function finish(link: Link, bridge: Link, vlan: number, host: Host): void {
  const port = otherEnd(link, host);
  if (port !== undefined && port.master === bridge.index) {
    const present = listPortVlans(host.route, port);
    addPortVlans(host.route, port, [{ first: vlan, last: vlan, pvid: true, untagged: true }]);
    delPortVlans(host.route, port, present.filter(({ first }) => first !== vlan));
    for (const { name } of [link, port]) tryWriteSysctl(`net/ipv6/conf/${name}/accept_ra`, "0");
  }
  setLink(host.route, link, { up: true });
}

/** Unless another ADD may be about to use it, or another port is in its VLAN. */
function removeUnused(spec: VlanGatewaySpec, host: Host): void {
  if (!host.isAloneWithShared()) return;
  const link = getLink(host.route, vlanGatewayName(spec));
  if (link === undefined) return;
  const port = otherEnd(link, host);
  const used = listLinks(host.route, { master: port?.master }).some((other) =>
    other.master === port?.master && other.index !== port?.index &&
    listPortVlans(host.route, other).some(({ first }) => first === spec.vlan)
  );
  if (!used) delLink(host.route, link.name);
}

function otherEnd(link: Link, host: Host): Link | undefined {
  if (link.kind !== "veth" || link.link === undefined || link.linkNetnsId !== undefined) return undefined;
  return getLink(host.route, link.link);
}

export const vlanGateway = resource(vlanGatewayKind);
