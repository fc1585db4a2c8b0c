/**
 * Whose a port is stands in its row (`external_ids`), which outlives processes and reboots:
 *
 *     owner=patchbay, patchbay-network=net, patchbay-container=4d2f…, contIface=eth0, contNetns=/var/run/netns/…, patchbay-boot=…
 */
import { bootId, whyNoBootId } from "../../../ffi/boot.ts";
import type { OvsdbConnection } from "../../../interop/ovsdb/connection.ts";
import {
  entriesOf,
  ovsdbMap,
  type OvsdbRow,
  ovsdbSet,
  textIn,
  uuid,
  uuidsOf,
} from "../../../interop/ovsdb/values.ts";
import { isLocal } from "../../../interop/ovsdb/server-address.ts";
import type { Owner } from "../../../contract/owner.ts";
import { withDatabase } from "./database.ts";
import type { OvsPortSpec } from "./spec.ts";

export const OURS = { owner: "patchbay" };
/** The plugin that has this one's configuration. */
export const OVS_CNI = { owner: "ovs-cni.network.kubevirt.io" };

function ownedBy({ network, containerId, ifName }: Owner) {
  return { ...OURS, "patchbay-network": network, "patchbay-container": containerId, contIface: ifName };
}

export function portIds(spec: OvsPortSpec): Record<string, string> {
  const { netnsPath: contNetns, podUid } = spec;
  return {
    ...ownedBy(spec),
    contNetns,
    "patchbay-boot": bootId(),
    ...podUid === undefined ? {} : { contPodUid: podUid },
  };
}

export interface OwnedPort {
  uuid: string;
  name: string;
  owner: Owner;
  /** An earlier boot of this machine made the port: its link is gone. */
  isStale: boolean;
}

const includes = (ids: Readonly<Record<string, string>>) => ["external_ids", "includes", ovsdbMap(ids)];
const columns = ["_uuid", "name", "external_ids"];

function select(where: readonly unknown[]): OvsdbRow {
  return { op: "select", table: "Port", where, columns };
}

/** For a transaction: ports of ours that are of another boot, as `staleIn` judges them. */
export function selectStale(server: string): OvsdbRow[] {
  // Another host may use a database that is not this one's.
  if (whyNoBootId() !== undefined || !isLocal(server)) return [];
  return [select([includes(OURS), ["external_ids", "excludes", ovsdbMap({ "patchbay-boot": bootId() })]])];
}

/** The ports that an earlier boot left: their links are gone. A row without an owner's ID and network is not ours. */
export function staleIn(rows: readonly OvsdbRow[]): OwnedPort[] {
  return rows.map(ownedPort).filter(({ isStale, owner }) =>
    isStale && owner.containerId !== "" && owner.network !== ""
  );
}

/** Ports of the attachment; with its name, only that one. */
export function ownedPorts(database: OvsdbConnection, spec: OvsPortSpec): OwnedPort[] {
  return found(database, [includes(ownedBy(spec)), ...named(spec)]);
}

/** Ports that ovs-cni made for the attachment, as it recognises them; by name where prevResult says it. */
export function portsOfOvsCni(database: OvsdbConnection, spec: OvsPortSpec): OwnedPort[] {
  const { netnsPath: contNetns, ifName: contIface } = spec;
  const ids = { ...OVS_CNI, contIface }, byName = named(spec);
  if (byName.length > 0) return found(database, [includes(ids), ...byName]);
  return contNetns === "" ? [] : found(database, [includes({ ...ids, contNetns })]);
}

/** GC: removes the network's ports whose attachment is not valid, and those of an earlier boot, whose links are gone. */
export function sweepPorts(
  server: string,
  network: string,
  isValid: (owner: { containerId: string; ifName?: string }) => boolean,
): void {
  withDatabase(server, (database) => {
    const ports = found(database, [includes({ ...OURS, "patchbay-network": network })]);
    removePorts(database, ports.filter(({ isStale, owner }) => isStale || !isValid(owner)));
  });
}

function named({ hostName }: OvsPortSpec) {
  return hostName === "" ? [] : [["name", "==", hostName]];
}

function found(database: OvsdbConnection, where: readonly unknown[]): OwnedPort[] {
  return database.transact(select(where))[0]!.rows.map(ownedPort);
}

function ownedPort(row: OvsdbRow): OwnedPort {
  const ids = entriesOf(row.external_ids), text = (key: string) => ids[key] ?? "";
  const owner = {
    network: text("patchbay-network"),
    containerId: text("patchbay-container"),
    ifName: text("contIface"),
  };
  const boot = text("patchbay-boot"), isStale = whyNoBootId() === undefined && boot !== "" && boot !== bootId();
  return { uuid: uuidsOf(row._uuid)[0] ?? "", name: textIn(row.name), owner, isStale };
}

/** For a transaction: takes the rows from every bridge. Open vSwitch's database drops what no bridge has. */
export function detach(ports: readonly string[]): OvsdbRow[] {
  if (ports.length === 0) return [];
  return [{ op: "mutate", table: "Bridge", where: [], mutations: [["ports", "delete", ovsdbSet(ports.map(uuid))]] }];
}

/** Whether the row is this attachment's, or ovs-cni's for an interface of this name: the container has one of it. */
export function isOwner(row: OvsdbRow, { containerId, ifName, network }: Owner): boolean {
  const ids = entriesOf(row.external_ids);
  if (ids.contIface !== ifName) return false;
  return ids.owner === OVS_CNI.owner || ids.owner === OURS.owner && ids["patchbay-container"] === containerId &&
      ids["patchbay-network"] === network;
}

export function removePorts(database: OvsdbConnection, ports: readonly OwnedPort[]): void {
  const operations = detach(ports.map(({ uuid }) => uuid));
  if (operations.length > 0) database.transact(...operations);
}
