/** Filters: `tc filter`. A link has a list for each priority, and each list is of one protocol and one kind. */
import { EINVAL, ENODEV, ENOENT } from "../../errno.ts";
import { isNetlinkError, type NetlinkSocket } from "../socket.ts";
import { NLM_F_CREATE, NLM_F_EXCL } from "../wire.ts";
import { RTM_DELTFILTER, RTM_GETTFILTER, RTM_NEWTFILTER } from "../uapi/rtnetlink.ts";
import { readTcObject, tcAttrs, tcHeader, type TcKind, type TcObject } from "./tc-header.ts";

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
  socket.request({
    what: `RTM_NEWTFILTER ${kind.name} on ${link.name}`,
    type: RTM_NEWTFILTER,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    table: tcAttrs,
    fixedBytes: tcHeader.bytes,
    body: (writer) => {
      tcHeader.write(writer, { linkIndex: link.index, parent, info: infoOf(list) });
      tcAttrs.encode(writer, { kind: kind.name, options: kind.write });
    },
  });
}

/** `tc filter del` of a whole list. */
export function delFilters(socket: NetlinkSocket, { link, parent, ...list }: FilterList): "deleted" | "absent" {
  try {
    socket.request({
      what: `RTM_DELTFILTER ${link.name}`,
      type: RTM_DELTFILTER,
      body: (writer) => tcHeader.write(writer, { linkIndex: link.index, parent, info: infoOf(list) }),
    });
    return "deleted";
  } catch (error) {
    if (isNetlinkError(error, ENOENT, EINVAL, ENODEV)) return "absent";
    throw error;
  }
}

/** A filter as the kernel tells of it. Each list begins with one that has no handle: the list itself. */
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
  let found: Filter[] = [];
  try {
    socket.dump(
      {
        what: `RTM_GETTFILTER ${link.name}`,
        type: RTM_GETTFILTER,
        body: (writer) => tcHeader.write(writer, { linkIndex: link.index, parent }),
      },
      (message) => {
        if (message.type !== RTM_NEWTFILTER) return;
        const object = readTcObject(message.payload);
        found.push({ ...object, priority: object.info >>> 16, protocol: swapped(object.info & 0xffff) });
      },
      () => void (found = []),
    );
  } catch (error) {
    if (!isNetlinkError(error, ENOENT, EINVAL, ENODEV)) throw error;
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
