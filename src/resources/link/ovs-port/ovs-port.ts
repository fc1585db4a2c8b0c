/**
 * The host's end of a container's link as a port of a bridge of Open vSwitch. One transaction on its database makes the rows,
 * and ovs-vswitchd says there when it has the port. DEL takes away the rows that name their owner as this attachment; rows of
 * anybody else stay. A port that no bridge has any more counts as removed.
 */
import { CniError, errorText, INTERNAL, TRY_AGAIN_LATER } from "../../../cni/error.ts";
import { resource, type ResourceKind } from "../../../contract/resource.ts";
import { undoAfter } from "../../../contract/undo.ts";
import { SyscallError } from "../../../ffi/errno.ts";
import type { OvsdbConnection } from "../../../interop/ovsdb/connection.ts";
import {
  entriesOf,
  newRow,
  numbersOf,
  ovsdbMap,
  type OvsdbRow,
  ovsdbSet,
  textIn,
  uuidsOf,
} from "../../../interop/ovsdb/values.ts";
import { askAgain, withDatabase } from "./database.ts";
import {
  detach,
  isOwner,
  ownedPorts,
  portIds,
  portsOfOvsCni,
  removePorts,
  selectStale,
  staleIn,
} from "./owned-ports.ts";
import { describeVlans, type OvsPortSpec, type PortVlans, trunkIds } from "./spec.ts";
import { closeHostLinks, hostLinksIn, hostLinksNow, openHostLinks, selectHostPorts } from "./host-links.ts";
import { type NoShaping, noShapingIn, selectNoShaping } from "./no-shaping.ts";
import { type Bridge, bridgeIn, noDatapath, requireBridge, selectBridge } from "./switch.ts";
import { isPortOf, refuseOtherNetworks, requireTunnels, tunnelsOf } from "./tunnels.ts";

export const ovsPortKind: ResourceKind<OvsPortSpec> = {
  kind: "ovs-port",
  confines: true,
  // ovs-cni's DEL does nothing without its own record.
  leftByOthers: "its port in Open vSwitch",
  judge: ({ server, bridge }) =>
    withDatabase(server, (database) => {
      const found = requireBridge(database, bridge);
      if (!found.hasDatapath) throw noDatapath(found);
    }),
  apply(spec, host) {
    let mayBeMade = false;
    try {
      withDatabase(spec.server, (database) => {
        const questions = [selectBridge(spec.bridge), selectNoShaping(), ...selectStale(spec.server)];
        const answers = database.transact(...questions, ...selectHostPorts(spec));
        const ports = answers.splice(questions.length), [bridges, shaping, stale] = answers;
        const bridge = bridgeIn(bridges!.rows[0], spec.bridge);
        closeHostLinks(hostLinksIn(ports, spec, host), host);
        watchPorts(database);
        mayBeMade = true;
        attach(
          database,
          spec,
          { bridge, shaping: noShapingIn(shaping!.rows) },
          detach(staleIn(stale?.rows ?? []).map(({ uuid }) => uuid)),
        );
      }, true);
    } catch (error) {
      if (mayBeMade) {
        askAgain(spec.server);
        undoAfter(error, () => ovsPortKind.remove(spec, host));
      }
      throw error;
    }
  },
  remove(spec, _host, isRestated) {
    try {
      withDatabase(spec.server, (database) => {
        removePorts(database, ownedPorts(database, spec));
        if (isRestated) removePorts(database, portsOfOvsCni(database, spec));
      });
    } catch (error) {
      // Neither a ledger nor a result: ADD failed, most likely for the same reason. GC finds a port that is there after all.
      const isUnmade = isRestated && spec.hostName === "" && (error as Error).cause instanceof SyscallError;
      if (!isUnmade) throw error;
    }
  },
  verify(spec, host, isRestated = false) {
    // Not known, when others made the attachment and there is no prevResult.
    if (spec.hostName === "") return [];
    try {
      return withDatabase(spec.server, (database) => [
        ...differences(database, spec, isRestated),
        // ovs-cni leaves them open.
        ...isRestated ? [] : openHostLinks(database, spec, host),
      ]);
    } catch (error) {
      return [errorText(error)];
    }
  },
  repair(spec, host) {
    withDatabase(spec.server, (database) => {
      closeHostLinks(hostLinksNow(database, spec, host), host);
      const bridge = requireBridge(database, spec.bridge), row = portRow(database, spec.hostName);
      const shaping = noShapingIn(database.transact(selectNoShaping())[0]!.rows);
      if (row !== undefined && !isOwner(row, spec)) throw new Error(anothers(spec.hostName, row));
      const elsewhere = spec.vxlanId === undefined
        ? []
        : tunnelDifferences(database, vlanColumns(spec.vlans), spec.bridge, spec.vxlanId);
      if (elsewhere.length > 0) throw new Error(elsewhere.join("; "));
      const id = row && uuidsOf(row._uuid)[0]!;
      const isApplied = id !== undefined && isPortOf(database, spec.bridge, id) &&
        obstacle(database, spec) === undefined;
      if (isApplied) {
        database.transact({ op: "update", table: "Port", where: byName(spec), row: vlanColumns(spec.vlans) });
        return;
      }
      watchPorts(database);
      attach(database, spec, { bridge, shaping }, detach(id === undefined ? [] : [id]));
    });
  },
  describe: ({ hostName, bridge, vlans }) =>
    `${hostName} as a port of ${bridge} in Open vSwitch, ${describeVlans(vlans)}`,
};

export const ovsPort = resource(ovsPortKind);

const byName = ({ hostName }: OvsPortSpec) => [["name", "==", hostName]];

function watchPorts(database: OvsdbConnection): void {
  database.watch({ Open_vSwitch: ["cur_cfg"], Interface: ["ofport", "error"] });
}

/**
 * Makes the port, after what is `former` is detached in the same transaction, and waits until Open vSwitch has it. The ports
 * are watched.
 */
function attach(
  database: OvsdbConnection,
  spec: OvsPortSpec,
  { bridge, shaping }: { bridge: Bridge; shaping: NoShaping },
  former: readonly OvsdbRow[],
): void {
  const before = [...former, ...shaping.inserts];
  const operations = [
    ...before,
    { op: "insert", table: "Interface", "uuid-name": "interface", row: interfaceColumns(spec) },
    { op: "insert", table: "Port", "uuid-name": "port", row: { ...portColumns(spec), qos: shaping.row } },
    {
      op: "mutate",
      table: "Bridge",
      where: [["name", "==", spec.bridge]],
      mutations: [["ports", "insert", ovsdbSet([newRow("port")])]],
    },
    // ovs-vswitchd writes this number to cur_cfg when it has taken notice (ovs-vswitchd.conf.db(5), "Client Request Progress").
    { op: "mutate", table: "Open_vSwitch", where: [], mutations: [["next_cfg", "+=", 1]] },
    { op: "select", table: "Open_vSwitch", where: [], columns: ["next_cfg"] },
  ];
  const [made, , attached, , progress] = database.transact(...operations).slice(before.length);
  // Somebody has removed the bridge. Without one, the database has dropped the rows already.
  if (attached!.count !== 1) bridgeIn(undefined, spec.bridge);
  awaitPort(database, spec, bridge, uuidsOf(made!.uuid)[0]!, Number(progress!.rows[0]?.next_cfg));
}

function awaitPort(database: OvsdbConnection, spec: OvsPortSpec, bridge: Bridge, id: string, wanted: number): void {
  const { hostName, patienceMs } = spec, until = performance.now() + patienceMs;
  let hasNoticed = false, hasPort = false;
  while (!hasNoticed || !hasPort) {
    const update = database.nextUpdate(until);
    if (update === undefined) throw notAdded(spec);
    const row = update.Interface?.[id]?.new, [progress] = Object.values(update.Open_vSwitch ?? {});
    if (row !== undefined) {
      const error = refusalIn(row);
      if (error !== undefined) throw new CniError(INTERNAL, `Open vSwitch cannot use port ${hostName}: ${error}`);
      hasPort = isAdded(row);
    }
    if (hasNoticed || !(Number(progress?.new?.cur_cfg) >= wanted)) continue;
    hasNoticed = true;
    // Asked once: a server that sends updates for ever would be asked for ever.
    if (!hasPort && !requireBridge(database, bridge.name).hasDatapath) throw noDatapath(bridge);
  }
}

function notAdded({ hostName, bridge, patienceMs }: OvsPortSpec): CniError {
  return new CniError(
    TRY_AGAIN_LATER,
    `Open vSwitch has not added port ${hostName} to bridge ${bridge} within ${patienceMs / 1000} s`,
    'is ovs-vswitchd running? "link_state_check_retries" times "link_state_check_interval" ms is how long ADD waits',
  );
}

/** Its number, or none yet; a negative one says that it cannot be used. */
function isAdded({ ofport }: OvsdbRow): boolean {
  return numbersOf(ofport).some((number) => number > 0);
}

function refusalIn({ ofport, error }: OvsdbRow): string | undefined {
  return textIn(error) || (numbersOf(ofport).some((number) => number < 0) ? "it does not say why" : undefined);
}

function interfaceColumns({ hostName: name, interfaceType, ofportRequest, ovnPort, vxlanId }: OvsPortSpec): OvsdbRow {
  const ids: Record<string, string> = {};
  if (ovnPort !== undefined) ids["iface-id"] = ovnPort;
  if (vxlanId !== undefined) ids["vxlan-id"] = `${vxlanId}`;
  return {
    name,
    external_ids: ovsdbMap(ids),
    ...interfaceType === undefined ? {} : { type: interfaceType },
    ...ofportRequest === undefined ? {} : { ofport_request: ofportRequest },
  };
}

function portColumns(spec: OvsPortSpec): OvsdbRow {
  const interfaces = newRow("interface");
  return { name: spec.hostName, interfaces, external_ids: ovsdbMap(portIds(spec)), ...vlanColumns(spec.vlans) };
}

function vlanColumns(vlans: PortVlans): OvsdbRow {
  return vlans.mode === "access"
    ? { vlan_mode: "access", tag: vlans.tag, trunks: ovsdbSet([]) }
    : { vlan_mode: "trunk", tag: ovsdbSet([]), trunks: ovsdbSet(trunkIds(vlans)) };
}

function portRow(database: OvsdbConnection, name: string): OvsdbRow | undefined {
  const columns = ["_uuid", "tag", "trunks", "vlan_mode", "external_ids"];
  return database.transact({ op: "select", table: "Port", where: [["name", "==", name]], columns })[0]!.rows[0];
}

/** Why Open vSwitch does not use the port; undefined when it does. */
function obstacle(database: OvsdbConnection, spec: OvsPortSpec): string | undefined {
  const where = byName(spec), columns = ["ofport", "error"];
  const [row] = database.transact({ op: "select", table: "Interface", where, columns })[0]!.rows;
  if (row === undefined) return `Open vSwitch has no interface ${spec.hostName}`;
  const error = refusalIn(row);
  if (error !== undefined) return `Error: interface ${spec.hostName} is in error state: ${error}`;
  return isAdded(row) ? undefined : `Open vSwitch has not added port ${spec.hostName}`;
}

function anothers(name: string, { external_ids: ids }: OvsdbRow): string {
  return `port ${name} of Open vSwitch is another's: its external_ids are ${JSON.stringify(entriesOf(ids))}`;
}

function differences(database: OvsdbConnection, spec: OvsPortSpec, isRestated: boolean): string[] {
  const { hostName, bridge, vxlanId } = spec;
  const found = requireBridge(database, bridge), row = portRow(database, hostName);
  if (row === undefined) return [`Open vSwitch has no port ${hostName}`];
  if (!isOwner(row, spec)) return [anothers(hostName, row)];
  // Without the ledger, only the tunnel port says the VLAN.
  const lines = isRestated && vxlanId !== undefined ? [] : vlanDifferences(row, spec.vlans);
  const refusal = obstacle(database, spec);
  if (!isPortOf(database, bridge, uuidsOf(row._uuid)[0]!)) {
    lines.push(`${hostName} is not a port of bridge ${bridge}`);
  }
  if (!found.hasDatapath) lines.push(noDatapath(found).message);
  if (!isRestated && found.isUserspace !== (spec.isUserspace ?? false)) {
    lines.push(
      `bridge ${bridge} has ${found.isUserspace ? "a userspace" : "the kernel's"} datapath now: DEL and ADD anew`,
    );
  }
  if (refusal !== undefined) lines.push(refusal);
  return vxlanId === undefined ? lines : [...lines, ...tunnelDifferences(database, row, bridge, vxlanId)];
}

/** In the words of ovs-cni. */
function vlanDifferences(row: OvsdbRow, vlans: PortVlans): string[] {
  const lines: string[] = [],
    mode = textIn(row.vlan_mode),
    [tag] = numbersOf(row.tag),
    trunks = numbersOf(row.trunks);
  const wantedTag = vlans.mode === "access" ? vlans.tag : undefined;
  const wantedTrunks = vlans.mode === "trunk" ? trunkIds(vlans) : [];
  if (tag !== wantedTag) lines.push(`vlan tag mismatch. ovs=${tag ?? "nil"},netconf=${wantedTag ?? "nil"}`);
  if (mode !== vlans.mode) lines.push(`vlan mode mismatch. expected=${vlans.mode},real=${mode}`);
  if (String(trunks.toSorted((a, b) => a - b)) !== String(wantedTrunks)) {
    lines.push(`trunk mismatch. ovs=[${trunks.join(" ")}],netconf=[${wantedTrunks.join(" ")}]`);
  }
  return lines;
}

function tunnelDifferences(database: OvsdbConnection, row: OvsdbRow, bridge: string, vxlanId: number): string[] {
  try {
    const tunnels = tunnelsOf(database, bridge), [{ tag }] = requireTunnels(tunnels, bridge, vxlanId);
    if (tag !== undefined && numbersOf(row.tag)[0] !== tag) {
      return [`the tunnel port for "vxlanID": ${vxlanId} is in VLAN ${tag}, and the container is not`];
    }
    refuseOtherNetworks(tunnels, vxlanId, vlansIn(row));
    return [];
  } catch (error) {
    return [errorText(error)];
  }
}

function vlansIn(row: OvsdbRow): PortVlans {
  const [tag] = numbersOf(row.tag), trunks = numbersOf(row.trunks).map((id) => ({ first: id, last: id }));
  if (textIn(row.vlan_mode) === "access" && tag !== undefined) return { mode: "access", tag };
  return trunks.length === 0 ? { mode: "trunk" } : { mode: "trunk", trunks };
}
