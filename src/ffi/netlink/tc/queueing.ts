/** The verbs of tc(8), one request each: `tc qdisc`, `tc class`, `tc filter` (linux/rtnetlink.h). */
import { EINVAL, ENODEV, ENOENT } from "../../errno.ts";
import { insteadOfRefusal, type NetlinkRequest, type NetlinkSocket, tryRequest } from "../socket.ts";
import { NLM_F_ECHO } from "../wire.ts";
import {
  RTM_DELQDISC,
  RTM_DELTFILTER,
  RTM_GETQDISC,
  RTM_GETTCLASS,
  RTM_GETTFILTER,
  RTM_NEWQDISC,
  RTM_NEWTCLASS,
  RTM_NEWTFILTER,
} from "../uapi/rtnetlink.ts";
import {
  additionOf,
  delTcObject,
  listTcObjects,
  readTcObject,
  tcHeader,
  type TcKind,
  type TcObject,
} from "./tc-object.ts";

interface Qdisc {
  link: { index: number; name: string };
  /** TC_H_ROOT, TC_H_INGRESS or a class. */
  parent: number;
  handle: number;
}

/** `tc qdisc add`. Fails with EEXIST when there is one other than the kernel's default. */
export function addQdisc(socket: NetlinkSocket, place: Qdisc, kind: TcKind): void {
  socket.request(additionOf(["RTM_NEWQDISC", RTM_NEWQDISC], place, kind));
}

/** `tc qdisc add`, and `tc filter add` in it. Only the first is answered: list the filters to see the second. */
export function addQdiscAndFilter(
  socket: NetlinkSocket,
  [place, kind]: [Qdisc, TcKind],
  [list, filter]: [FilterList, TcKind],
): void {
  const together = filterAddition(list, filter);
  socket.request({ ...additionOf(["RTM_NEWQDISC", RTM_NEWQDISC], place, kind), together });
}

/** `tc qdisc del`. The kernel compares handle and kind, and deletes nothing else. */
export function delQdisc(socket: NetlinkSocket, place: Qdisc, kind: string): "deleted" | "absent" {
  return delTcObject(socket, ["RTM_DELQDISC", RTM_DELQDISC], place, kind);
}

/** The queueing discipline in this place of the link. */
export function getQdisc(
  socket: NetlinkSocket,
  link: { index: number; name: string },
  parent: number,
): TcObject | undefined {
  let found: TcObject | undefined;
  const request: NetlinkRequest = {
    what: `RTM_GETQDISC ${link.name}`,
    type: RTM_GETQDISC,
    // Without NLM_F_ECHO the kernel sends the answer to listeners only.
    flags: NLM_F_ECHO,
    body: (writer) => tcHeader.write(writer, { linkIndex: link.index, parent }),
  };
  tryRequest(socket, request, [ENOENT, ENODEV], ({ type, payload }) => {
    if (type === RTM_NEWQDISC) found = readTcObject(payload);
  });
  return found;
}

const ALL_LINKS = { index: 0, name: "dump" };

/** The queueing disciplines of all links. */
export function listQdiscs(socket: NetlinkSocket): TcObject[] {
  return listTcObjects(socket, ["RTM_GETQDISC", RTM_GETQDISC], { link: ALL_LINKS }, RTM_NEWQDISC);
}

/** `tc class add`. */
export function addClass(
  socket: NetlinkSocket,
  place: { link: { index: number; name: string }; parent: number; handle: number },
  kind: TcKind,
): void {
  socket.request(additionOf(["RTM_NEWTCLASS", RTM_NEWTCLASS], place, kind));
}

/** `tc class show dev …`. */
export function listClasses(socket: NetlinkSocket, link: { index: number; name: string }): TcObject[] {
  return listTcObjects(socket, ["RTM_GETTCLASS", RTM_GETTCLASS], { link }, RTM_NEWTCLASS);
}

/** A link has a list of filters for each priority; a list has one protocol and one kind. */
interface FilterList {
  link: { index: number; name: string };
  /** The handle of the queueing discipline. */
  parent: number;
  priority: number;
  /** ETH_P_*. */
  protocol: number;
  /** The handle of one filter; the kernel chooses it when none is given. */
  handle?: number;
}

/** `tc filter add`: one of the kind bpf comes first in its list, others last. */
export function addFilter(socket: NetlinkSocket, list: FilterList, kind: TcKind): void {
  socket.request(filterAddition(list, kind));
}

function filterAddition({ link, parent, handle, ...list }: FilterList, kind: TcKind): NetlinkRequest {
  return additionOf(["RTM_NEWTFILTER", RTM_NEWTFILTER], { link, parent, handle, info: infoOf(list) }, kind);
}

/** `tc filter del` of one filter. The kernel compares the kind. */
export function delFilter(
  socket: NetlinkSocket,
  { link, parent, handle, ...list }: FilterList & { handle: number },
  kind: string,
): "deleted" | "absent" {
  const place = { link, parent, handle, info: infoOf(list) };
  return delTcObject(socket, ["RTM_DELTFILTER", RTM_DELTFILTER], place, kind);
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
  const list = () => listTcObjects(socket, ["RTM_GETTFILTER", RTM_GETTFILTER], { link, parent }, RTM_NEWTFILTER);
  return insteadOfRefusal([ENOENT, EINVAL, ENODEV], [], list).map((object) => ({
    ...object,
    priority: object.info >>> 16,
    protocol: swapped(object.info & 0xffff),
  }));
}

/** The protocol is in network order. */
function infoOf({ priority, protocol }: Pick<FilterList, "priority" | "protocol">): number {
  return ((priority << 16) | swapped(protocol)) >>> 0;
}

function swapped(value: number): number {
  return ((value & 0xff) << 8) | (value >> 8);
}
