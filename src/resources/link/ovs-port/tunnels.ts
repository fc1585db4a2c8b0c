/** The tunnel ports of a bridge that carry one virtual network (ovs-vswitchd.conf.db(5), "Interface TABLE", options:key). */
import { CniError, INVALID_CONFIG } from "../../../cni/error.ts";
import type { OvsdbConnection } from "../../../ovsdb/connection.ts";
import { entriesOf, numbersOf, type OvsdbRow, textOf, uuid, uuidsOf } from "../../../ovsdb/values.ts";
import { withDatabase } from "./database.ts";
import { requireBridge } from "./switch.ts";

export interface Tunnel {
  name: string;
  /** The VLAN of the bridge that the network is; undefined when the port carries all of them, with their tags. */
  tag?: number;
  /** Flows say which packets are of which network. */
  isByFlow: boolean;
}

/** One for each peer, usually. */
export function tunnelsOf(database: OvsdbConnection, bridge: string, vxlanId: number): Tunnel[] {
  const [interfaces] = database.transact({
    op: "select",
    table: "Interface",
    where: [["type", "==", "vxlan"]],
    columns: ["_uuid", "options"],
  });
  const found: Tunnel[] = [];
  for (const { _uuid, options } of interfaces!.rows) {
    const given = entriesOf(options), inKey = given.in_key ?? given.key, outKey = given.out_key ?? given.key;
    const isByFlow = inKey === "flow" && outKey === "flow";
    if (!isByFlow && !(Number(inKey) === vxlanId && Number(outKey) === vxlanId)) continue;
    for (const port of portsWith(database, uuidsOf(_uuid)[0] ?? "")) {
      if (!isPortOf(database, bridge, uuidsOf(port._uuid)[0] ?? "")) continue;
      const isAccess = textOf(port.vlan_mode) === "access" || textOf(port.vlan_mode) === "";
      found.push({ name: textOf(port.name), tag: isAccess ? numbersOf(port.tag)[0] : undefined, isByFlow });
    }
  }
  return found;
}

function portsWith(database: OvsdbConnection, interfaceId: string): readonly OvsdbRow[] {
  const where = [["interfaces", "includes", uuid(interfaceId)]], columns = ["_uuid", "name", "tag", "vlan_mode"];
  return database.transact({ op: "select", table: "Port", where, columns })[0]!.rows;
}

export function isPortOf(database: OvsdbConnection, bridge: string, port: string): boolean {
  const where = [["name", "==", bridge], ["ports", "includes", uuid(port)]];
  return database.transact({ op: "select", table: "Bridge", where, columns: ["name"] })[0]!.rows.length > 0;
}

/** The VLAN in which a container is on the virtual network; undefined when it is the one that the configuration says. */
export function vlanOfTunnel(tunnels: readonly Tunnel[], bridge: string, vxlanId: number): number | undefined {
  const ofKey = tunnels.filter(({ isByFlow }) => !isByFlow), counted = ofKey.length > 0 ? ofKey : tunnels;
  const [first] = counted;
  if (first === undefined) {
    const port = `vxlan${vxlanId}`.slice(0, 15);
    throw new CniError(
      INVALID_CONFIG,
      `bridge ${bridge} has no tunnel port for "vxlanID": ${vxlanId}`,
      `make one to each other host: ovs-vsctl add-port ${bridge} ${port} -- ` +
        `set interface ${port} type=vxlan options:remote_ip=ADDRESS options:key=${vxlanId}`,
    );
  }
  const other = counted.find(({ tag }) => tag !== first.tag);
  if (other === undefined) return first.tag;
  throw new CniError(
    INVALID_CONFIG,
    `the tunnel ports ${first.name} and ${other.name} for "vxlanID": ${vxlanId} are in different VLANs`,
    `give all of them the same tag: ovs-vsctl set port ${other.name} tag=${first.tag ?? "[]"}`,
  );
}

/** For ADD: the same of what the bridge has now. */
export function tagOfTunnel(server: string, bridge: string, vxlanId: number): number | undefined {
  return withDatabase(server, (database) => {
    requireBridge(database, bridge);
    return vlanOfTunnel(tunnelsOf(database, bridge, vxlanId), bridge, vxlanId);
  });
}
