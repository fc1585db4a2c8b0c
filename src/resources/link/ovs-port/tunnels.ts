/** The tunnel ports of a bridge, by the virtual networks that they carry (ovs-vswitchd.conf.db(5), "Interface TABLE", options:key). */
import { CniError, INVALID_CONFIG } from "../../../cni/error.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { getLink } from "../../../ffi/netlink/route/link.ts";
import { linkTo } from "../../../ffi/netlink/route/route-lookup.ts";
import { parseAddress } from "../../../net/address.ts";
import type { OvsdbConnection } from "../../../interop/ovsdb/connection.ts";
import { entriesOf, numbersOf, type OvsdbRow, textIn, uuid, uuidsOf } from "../../../interop/ovsdb/values.ts";
import { withDatabase } from "./database.ts";
import { describeVlans, type PortVlans, trunkIds } from "./spec.ts";
import { requireBridge } from "./switch.ts";

export interface Tunnel {
  name: string;
  /** The number of the virtual network. "flow": flows say which packets are of which network. */
  key: number | "flow";
  /** The VLAN of the bridge that the network is; undefined when the port carries all of them, with their tags. */
  tag?: number;
  /** The other host's address; undefined when flows say it. */
  remote?: Uint8Array;
}

/** Every tunnel port of type vxlan that the bridge has: for each network one for each peer, usually. */
export function tunnelsOf(database: OvsdbConnection, bridge: string): Tunnel[] {
  const [bridges, interfaces] = database.transact(
    { op: "select", table: "Bridge", where: [["name", "==", bridge]], columns: ["ports"] },
    { op: "select", table: "Interface", where: [["type", "==", "vxlan"]], columns: ["_uuid", "options"] },
  );
  const { rows } = interfaces!;
  if (rows.length === 0) return [];
  const ofBridge = new Set(uuidsOf(bridges!.rows[0]?.ports));
  const ports = database.transact(...rows.map(({ _uuid }) => selectPortWith(uuidsOf(_uuid)[0] ?? "")));
  return ports.flatMap(({ rows: [port] }, index) => {
    const isOfBridge = port !== undefined && ofBridge.has(uuidsOf(port._uuid)[0] ?? "");
    return isOfBridge ? [tunnelIn(port, entriesOf(rows[index]!.options))] : [];
  });
}

function selectPortWith(interfaceId: string): OvsdbRow {
  const where = [["interfaces", "includes", uuid(interfaceId)]];
  return { op: "select", table: "Port", where, columns: ["_uuid", "name", "tag", "vlan_mode"] };
}

function tunnelIn(port: OvsdbRow, options: Readonly<Record<string, string>>): Tunnel {
  const isAccess = ["access", ""].includes(textIn(port.vlan_mode)), { remote_ip: remote = "" } = options;
  return {
    name: textIn(port.name),
    key: keyIn(options),
    tag: isAccess ? numbersOf(port.tag)[0] : undefined,
    remote: parseAddress(remote),
  };
}

/** The key of packets that come in and go out. NaN when the two differ: no virtual network has both. */
function keyIn({ key = "0", in_key: inKey = key, out_key: outKey = key }: Readonly<Record<string, string>>) {
  if (inKey === "flow" || outKey === "flow") return inKey === outKey ? "flow" : NaN;
  return numberIn(inKey) === numberIn(outKey) ? numberIn(inKey) : NaN;
}

/** As Open vSwitch reads it, by strtoull(3) with base 0: the digits that it begins with, octal after 0, hexadecimal after 0x. */
function numberIn(text: string): number {
  const [hex] = /^0x[0-9a-f]+/i.exec(text) ?? [],
    [octal] = /^0[0-7]*/.exec(text) ?? [],
    [decimal] = /^\d+/.exec(text) ?? [];
  if (hex !== undefined) return Number(hex);
  return octal === undefined ? Number(decimal ?? 0) : parseInt(octal, 8);
}

export function isPortOf(database: OvsdbConnection, bridge: string, port: string): boolean {
  const where = [["name", "==", bridge], ["ports", "includes", uuid(port)]];
  return database.transact({ op: "select", table: "Bridge", where, columns: ["name"] })[0]!.rows.length > 0;
}

/** The tunnels to the virtual network's other hosts; those whose flows decide, if it has none of its own. */
export function requireTunnels(tunnels: readonly Tunnel[], bridge: string, vxlanId: number): [Tunnel, ...Tunnel[]] {
  const own = tunnels.filter(({ key }) => key === vxlanId);
  const [first, ...others] = own.length > 0 ? own : tunnels.filter(({ key }) => key === "flow");
  if (first === undefined) {
    throw new CniError(
      INVALID_CONFIG,
      `bridge ${bridge} has no tunnel port for "vxlanID": ${vxlanId}`,
      `make one to each other host, all of them in one VLAN that nothing else has: ovs-vsctl add-port ${bridge} NAME ` +
        `tag=VLAN -- set interface NAME type=vxlan options:remote_ip=ADDRESS options:key=${vxlanId}`,
    );
  }
  const other = others.find(({ tag }) => tag !== first.tag);
  if (other === undefined) return [first, ...others];
  throw new CniError(
    INVALID_CONFIG,
    `the tunnel ports ${first.name} and ${other.name} for "vxlanID": ${vxlanId} are in different VLANs`,
    `give all of them the same tag: ovs-vsctl set port ${other.name} tag=${first.tag ?? "[]"}`,
  );
}

/** A bridge joins everything that is in one VLAN: the container must not be in another virtual network, too. */
export function refuseOtherNetworks(tunnels: readonly Tunnel[], vxlanId: number, vlans: PortVlans): void {
  const other = tunnels.find(({ key, tag }) => key !== "flow" && key !== vxlanId && hasVlan(vlans, tag));
  if (other === undefined) return;
  const { name, key, tag } = other;
  throw new CniError(
    INVALID_CONFIG,
    `the container would be in another virtual network than "vxlanID": ${vxlanId}, too: tunnel port ${name} ` +
      `with key ${key} carries ${tag === undefined ? "all VLANs" : `VLAN ${tag}`}, and the container's are ${
        describeVlans(vlans)
      }`,
    "give the tunnel ports of each network a tag of their own: ovs-vsctl set port NAME tag=NUMBER",
  );
}

/** Without a tag: whether a port that carries all VLANs has one of these. */
export function hasVlan(vlans: PortVlans, tag: number | undefined): boolean {
  if (tag === undefined) return true;
  return vlans.mode === "access" ? vlans.tag === tag : vlans.trunks === undefined || trunkIds(vlans).includes(tag);
}

/** For ADD: every tunnel that the bridge has now. */
export function tunnelsNow(server: string, bridge: string): Tunnel[] {
  return withDatabase(server, (database) => {
    requireBridge(database, bridge);
    return tunnelsOf(database, bridge);
  });
}

/** The outer headers of a frame in a tunnel: IPv4 or IPv6, UDP, VXLAN, and its own Ethernet header. */
const VXLAN_BYTES = { v4: 20 + 8 + 8 + 14, v6: 40 + 8 + 8 + 14 };

/**
 * The size of the packets that fit through each of the tunnels: what is larger is lost, and nobody is told. Undefined when
 * the host has no route to another one.
 */
export function mtuThrough(tunnels: readonly Tunnel[], route: NetlinkSocket): number | undefined {
  const sizes = tunnels.flatMap(({ remote }) => {
    const link = remote && linkTo(route, remote), mtu = link && getLink(route, link)?.mtu;
    return mtu ? [mtu - (remote!.length === 4 ? VXLAN_BYTES.v4 : VXLAN_BYTES.v6)] : [];
  });
  return sizes.length === 0 ? undefined : Math.min(...sizes);
}
