/**
 * Where the gateway address of a tagged network lives: a veth pair within the host, one end named after bridge and
 * VLAN, the other an untagged port of that VLAN. Shared by the network's containers; DEL leaves it.
 */
import { resource, type ResourceKind } from "../engine/resource.ts";
import { addPortVlans, delPortVlans, listPortVlans } from "../ffi/netlink/route/bridge-vlan.ts";
import { addLink, delLink, getLink, linkIndex, setLink, vethKind } from "../ffi/netlink/route/link.ts";
import { tryWriteSysctl } from "../ffi/sysctl.ts";
import { CniError, INTERNAL } from "../cni/error.ts";
import { freshHostName } from "./veth.ts";

export interface VlanGatewaySpec {
  bridge: string;
  vlan: number;
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
    const existing = getLink(host.route, name);
    if (existing !== undefined) return { name, mac: existing.mac, created: false };
    const bridge = getLink(host.route, spec.bridge)!;
    const portName = freshHostName(host);
    addLink(host.route, {
      ifName: name,
      mtu: bridge.mtu,
      kind: vethKind({ peer: { ifName: portName, mtu: bridge.mtu } }),
    });
    try {
      const port = { index: linkIndex(host.route, portName)!, name: portName };
      setLink(host.route, port, { master: bridge.index });
      delPortVlans(host.route, port, listPortVlans(host.route, port));
      addPortVlans(host.route, port, [{ first: spec.vlan, last: spec.vlan, pvid: true, untagged: true }]);
      for (const each of [name, portName]) tryWriteSysctl(`net/ipv6/conf/${each}/accept_ra`, "0");
      setLink(host.route, port, { up: true });
      const link = getLink(host.route, name)!;
      setLink(host.route, link, { up: true });
      return { name, mac: link.mac, created: true };
    } catch (error) {
      delLink(host.route, name);
      throw error;
    }
  },
  undo(spec, { created }, host) {
    if (created) delLink(host.route, vlanGatewayName(spec));
  },
  remove: () => {},
  verify(spec, host) {
    const link = getLink(host.route, vlanGatewayName(spec));
    if (link === undefined) return [`VLAN gateway ${vlanGatewayName(spec)} is missing`];
    return link.up ? [] : [`VLAN gateway ${link.name} is down`];
  },
  describe: (spec) => `VLAN gateway ${vlanGatewayName(spec)}`,
};

export const vlanGateway = resource(vlanGatewayKind);
