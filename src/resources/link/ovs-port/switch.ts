/** Bridges of Open vSwitch, and whether it is at work on them. */
import { CniError, INTERNAL, LIMITED_CONNECTIVITY, PLUGIN_NOT_AVAILABLE } from "../../../cni/error.ts";
import { beforeWaitingFor, patienceHereMs } from "../../../process/patience.ts";
import { ECONNREFUSED, ENOENT, ETIMEDOUT, isErrno } from "../../../ffi/errno.ts";
import { closeFile } from "../../../ffi/files.ts";
import { libc } from "../../../ffi/libc.ts";
import { poll, POLLIN } from "../../../ffi/poll.ts";
import { connectTo } from "../../../ffi/socket/unix.ts";
import type { OvsdbConnection } from "../../../interop/ovsdb/connection.ts";
import { parseServer } from "../../../interop/ovsdb/server-address.ts";
import { type OvsdbRow, textIn } from "../../../interop/ovsdb/values.ts";
import { withDatabase } from "./database.ts";

export interface Bridge {
  name: string;
  /** Packets go through the process ovs-vswitchd, and not through the kernel. */
  isUserspace: boolean;
  /** ovs-vswitchd has made it. */
  hasDatapath: boolean;
}

export function selectBridge(name: string): OvsdbRow {
  return { op: "select", table: "Bridge", where: [["name", "==", name]], columns: ["datapath_type", "datapath_id"] };
}

/** Throws when the row is missing. */
export function bridgeIn(row: OvsdbRow | undefined, name: string): Bridge {
  if (row === undefined) {
    const kernel = `ovs-vsctl add-br ${name}`, userspace = `-- set bridge ${name} datapath_type=netdev`;
    const details = `make it: ${kernel}; where the kernel has no module openvswitch, with ${userspace}`;
    throw new CniError(INTERNAL, `failed to find bridge ${name}`, details);
  }
  const isUserspace = textIn(row.datapath_type) === "netdev", hasDatapath = textIn(row.datapath_id) !== "";
  return { name, isUserspace, hasDatapath };
}

export function requireBridge(database: OvsdbConnection, name: string): Bridge {
  return bridgeIn(database.transact(selectBridge(name))[0]!.rows[0], name);
}

/** For ADD, before anything is made. */
export function bridgeNow(server: string, name: string): Bridge {
  return withDatabase(server, (database) => requireBridge(database, name), true);
}

export function noDatapath({ name, isUserspace }: Bridge): CniError {
  const details = isUserspace
    ? "look at the log of ovs-vswitchd"
    : `load the kernel module openvswitch and start ovs-vswitchd, or: ovs-vsctl set bridge ${name} datapath_type=netdev`;
  return new CniError(INTERNAL, `bridge ${name} has no datapath: Open vSwitch has not made it`, details);
}

/** For STATUS. Without a name, only the database is asked. */
export function requireSwitch(server: string, name: string | undefined): void {
  try {
    const bridge = withDatabase(server, (database) => {
      if (name !== undefined) return requireBridge(database, name);
      database.transact(selectBridge(""));
      return undefined;
    });
    if (bridge === undefined) return;
    if (!bridge.hasDatapath) throw noDatapath(bridge);
    requireAnswer(server, bridge);
  } catch (error) {
    if (!(error instanceof CniError)) throw error;
    const code = error.code === LIMITED_CONNECTIVITY ? error.code : PLUGIN_NOT_AVAILABLE;
    throw new CniError(code, error.message, error.details, { cause: error });
  }
}

const ANSWER_MS = 1000, HELLO_BYTES = 8;

/**
 * ovs-vswitchd serves OpenFlow for each bridge, usually beside the database's socket, and greets first (ovs-vswitchd(8)).
 * Where it does not, nothing tells whether it is at work but its work.
 */
function requireAnswer(server: string, { name, isUserspace }: Bridge): void {
  const at = parseServer(server);
  if (at === undefined || !("path" in at)) return;
  const path = `${at.path.slice(0, at.path.lastIndexOf("/"))}/${name}.mgmt`;
  if (greets(path)) return;
  const now = isUserspace ? "no packet passes until it runs" : "containers keep the connections that they have";
  throw new CniError(
    LIMITED_CONNECTIVITY,
    `ovs-vswitchd does not answer at ${path}`,
    `${now}; start it, or look at its log`,
  );
}

function greets(path: string): boolean {
  const patienceMs = patienceHereMs(ANSWER_MS);
  try {
    const fd = connectTo(path, patienceMs);
    try {
      if (poll([{ fd, events: POLLIN }], patienceMs).size > 0) return readsHello(fd);
    } finally {
      closeFile(fd);
    }
  } catch (error) {
    if (isErrno(error, ENOENT)) return true;
    if (isErrno(error, ECONNREFUSED)) return false;
    if (!isErrno(error, ETIMEDOUT)) throw error;
  }
  beforeWaitingFor("Open vSwitch", ANSWER_MS);
  return false;
}

function readsHello(fd: number): boolean {
  const bytes = new Uint8Array(HELLO_BYTES);
  return Number(libc.recvfrom(fd, bytes, bytes.length, 0, null, null)) > 0;
}
