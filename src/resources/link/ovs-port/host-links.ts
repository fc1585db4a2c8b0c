/**
 * Links of the host that a container of the bridge reaches: internal ports in its VLANs, the bridge's own among them, and VLAN
 * links upon these. The container sends them any frame that it likes, so the host refuses there what would change its routes.
 * They are the operator's and other containers reach them, too: they stay as they are when the container goes.
 */
import type { Host } from "../../../contract/host.ts";
import { getLink, type Link } from "../../../ffi/netlink/route/link.ts";
import { listRoutes } from "../../../ffi/netlink/route/route.ts";
import { RTPROT_RA } from "../../../ffi/netlink/uapi/rtnetlink.ts";
import { AF_INET6 } from "../../../ffi/socket/socket.ts";
import { vlanLinksUpon } from "../../../ffi/vlan-links.ts";
import { warn } from "../../../process/warn.ts";
import type { OperationResult, OvsdbConnection } from "../../../interop/ovsdb/connection.ts";
import { numbersOf, ovsdbMap, type OvsdbRow, textIn, uuidsOf } from "../../../interop/ovsdb/values.ts";
import { accepted, advertisements, refusals, refuse } from "../shared/refusals.ts";
import { OURS, OVS_CNI } from "./owned-ports.ts";
import type { OvsPortSpec } from "./spec.ts";
import { hasVlan } from "./tunnels.ts";

/** What the kernel calls an internal port, of its own datapath and of the process, and a VLAN link. */
const KINDS: readonly unknown[] = ["openvswitch", "tun", "vlan"];

type Membership = Pick<OvsPortSpec, "bridge" | "vlans">;

/** For a transaction, whose results `hostLinksIn` reads. Ports of containers, of which there may be thousands, are left out. */
export function selectHostPorts({ bridge }: Membership): OvsdbRow[] {
  const others = [OURS, OVS_CNI].map((ids) => ["external_ids", "excludes", ovsdbMap(ids)]);
  return [
    { op: "select", table: "Bridge", where: [["name", "==", bridge]], columns: ["ports"] },
    { op: "select", table: "Interface", where: [["type", "==", "internal"]], columns: ["_uuid", "name"] },
    { op: "select", table: "Port", where: others, columns: ["_uuid", "interfaces", "tag", "vlan_mode"] },
  ];
}

/** Only the links in this namespace: the operator may have given an internal port to a container. */
export function hostLinksIn(results: readonly OperationResult[], { vlans }: Membership, host: Host): Link[] {
  const [bridges, interfaces, ports] = results.map(({ rows }) => rows);
  const ofBridge = new Set(uuidsOf(bridges?.[0]?.ports));
  const names = new Map(interfaces?.map(({ _uuid, name }) => [uuidsOf(_uuid)[0], textIn(name)]));
  const found = (ports ?? []).filter(({ _uuid }) => ofBridge.has(uuidsOf(_uuid)[0] ?? "")).flatMap((port) =>
    uuidsOf(port.interfaces).flatMap((id) => namesInReach(names.get(id), port, vlans))
  );
  return found.flatMap((name) => getLink(host.route, name) ?? []).filter(({ kind }) => KINDS.includes(kind));
}

/** Call this before the container's frames come to the bridge. */
export function closeHostLinks(links: readonly Link[], host: Host): void {
  const open = links.filter(({ up, name }) => up && accepted(advertisements(name)).length > 0);
  const routes = open.length === 0 ? [] : listRoutes(host.route, AF_INET6);
  for (const { name } of links) refuse(refusals(name));
  for (const { name, index } of open) {
    if (!routes.some(({ oif, protocol }) => oif === index && protocol === RTPROT_RA)) continue;
    warn(
      `ovs: the host has routes from router advertisements on ${name}, where containers can send some: it takes none there ` +
        `from now on; remove them, or make those that are yours by hand ("ip -6 route show dev ${name} proto ra")`,
    );
  }
}

/** One line for each that is not refused. A link that is down receives nothing, and the next ADD closes it. */
export function openHostLinks(database: OvsdbConnection, spec: Membership, host: Host): string[] {
  const up = hostLinksNow(database, spec, host).filter(({ up }) => up);
  return [...new Set(up.flatMap(({ name }) => accepted(refusals(name))))];
}

export function hostLinksNow(database: OvsdbConnection, spec: Membership, host: Host): Link[] {
  return hostLinksIn(database.transact(...selectHostPorts(spec)), spec, host);
}

function namesInReach(name: string | undefined, port: OvsdbRow, vlans: OvsPortSpec["vlans"]): string[] {
  if (name === undefined) return [];
  const mode = textIn(port.vlan_mode), [tag] = numbersOf(port.tag);
  // Frames without a tag are of VLAN 0, if the port does not say otherwise (ovs-vswitchd.conf.db(5), "VLAN Configuration").
  const own = hasVlan(vlans, mode === "trunk" ? 0 : tag ?? 0) ? [name] : [];
  const isAccess = mode === "access" || mode === "" && tag !== undefined;
  return isAccess
    ? own
    : [...own, ...vlanLinksUpon(name).flatMap(({ id, name }) => hasVlan(vlans, id) ? [name] : [])];
}
