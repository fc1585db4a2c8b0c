/**
 * Open vSwitch takes queueing disciplines that it has not made from its ports, at the latest when it starts again, and with
 * them the limits of `bandwidth`. A port with a QoS of type linux-noop keeps them (ovs-vswitchd.conf.db(5), "QoS TABLE").
 * One row is for all ports, and stays.
 */
import { newRow, ovsdbMap, type OvsdbRow, uuid, uuidsOf } from "../../../interop/ovsdb/values.ts";
import { OURS } from "./owned-ports.ts";

const TYPE = "linux-noop";

/** The row for a port's column `qos`, and what a transaction has to insert before. */
export interface NoShaping {
  row: readonly unknown[];
  inserts: readonly OvsdbRow[];
}

export function selectNoShaping(): OvsdbRow {
  const where = [["type", "==", TYPE], ["external_ids", "includes", ovsdbMap(OURS)]];
  return { op: "select", table: "QoS", where, columns: ["_uuid"] };
}

export function noShapingIn([row]: readonly OvsdbRow[]): NoShaping {
  const [id] = uuidsOf(row?._uuid);
  if (id !== undefined) return { row: uuid(id), inserts: [] };
  const insert = {
    op: "insert",
    table: "QoS",
    "uuid-name": "shaping",
    row: { type: TYPE, external_ids: ovsdbMap(OURS) },
  };
  return { row: newRow("shaping"), inserts: [insert] };
}
