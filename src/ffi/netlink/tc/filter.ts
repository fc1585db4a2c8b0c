/** Filters: `tc filter`. A link has a list of filters for each priority; a list has one protocol and one kind. */
import { EINVAL, ENODEV, ENOENT } from "../../errno.ts";
import { isNetlinkError, type NetlinkSocket } from "../socket.ts";
import { RTM_DELTFILTER, RTM_GETTFILTER, RTM_NEWTFILTER } from "../uapi/rtnetlink.ts";
import type { TcKind, TcObject } from "./tc-header.ts";
import { addTcObject, delTcObject, listTcObjects } from "./tc-object.ts";

export interface FilterList {
  link: { index: number; name: string };
  /** The handle of the queueing discipline. */
  parent: number;
  priority: number;
  /** ETH_P_*. */
  protocol: number;
}

/** `tc filter add`, at the end of its list. */
export function addFilter(socket: NetlinkSocket, { link, parent, ...list }: FilterList, kind: TcKind): void {
  addTcObject(socket, ["RTM_NEWTFILTER", RTM_NEWTFILTER], { link, parent, info: infoOf(list) }, kind);
}

/** `tc filter del` of a list. */
export function delFilters(socket: NetlinkSocket, { link, parent, ...list }: FilterList): "deleted" | "absent" {
  return delTcObject(socket, ["RTM_DELTFILTER", RTM_DELTFILTER], { link, parent, info: infoOf(list) });
}

/** A filter as the kernel lists it. Each list begins with an entry without a handle, which stands for the list. */
export interface Filter extends TcObject {
  priority: number;
  protocol: number;
}

/** `tc filter show dev … parent …`. */
export function listFilters(
  socket: NetlinkSocket,
  link: { index: number; name: string },
  parent: number,
): Filter[] {
  let objects: TcObject[];
  try {
    objects = listTcObjects(socket, ["RTM_GETTFILTER", RTM_GETTFILTER], { link, parent }, RTM_NEWTFILTER);
  } catch (error) {
    if (isNetlinkError(error, ENOENT, EINVAL, ENODEV)) return [];
    throw error;
  }
  const found: Filter[] = [];
  for (const object of objects) {
    found.push({ ...object, priority: object.info >>> 16, protocol: swapped(object.info & 0xffff) });
  }
  return found;
}

/** The protocol is in network order. */
function infoOf({ priority, protocol }: Pick<FilterList, "priority" | "protocol">): number {
  return ((priority << 16) | swapped(protocol)) >>> 0;
}

function swapped(value: number): number {
  return ((value & 0xff) << 8) | (value >> 8);
}
