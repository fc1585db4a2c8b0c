/** Queueing disciplines: `tc qdisc`, one request each (tc(8), linux/rtnetlink.h). */
import { ENODEV, ENOENT } from "../../errno.ts";
import { isNetlinkError, type NetlinkSocket } from "../socket.ts";
import { NLM_F_ECHO } from "../wire.ts";
import { RTM_DELQDISC, RTM_GETQDISC, RTM_NEWQDISC } from "../uapi/rtnetlink.ts";
import { readTcObject, tcHeader, type TcKind, type TcObject } from "./tc-header.ts";
import { addTcObject, delTcObject, listTcObjects } from "./tc-object.ts";

export interface Qdisc {
  link: { index: number; name: string };
  /** TC_H_ROOT, TC_H_INGRESS or a class. */
  parent: number;
  handle: number;
}

/** `tc qdisc add`. Fails with EEXIST when there is one other than the kernel's default. */
export function addQdisc(socket: NetlinkSocket, place: Qdisc, kind: TcKind): void {
  addTcObject(socket, ["RTM_NEWQDISC", RTM_NEWQDISC], place, kind);
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
  try {
    socket.request({
      what: `RTM_GETQDISC ${link.name}`,
      type: RTM_GETQDISC,
      // Without NLM_F_ECHO the kernel sends the answer to listeners only.
      flags: NLM_F_ECHO,
      body: (writer) => tcHeader.write(writer, { linkIndex: link.index, parent }),
    }, (message) => {
      if (message.type === RTM_NEWQDISC) found = readTcObject(message.payload);
    });
  } catch (error) {
    if (!isNetlinkError(error, ENOENT, ENODEV)) throw error;
  }
  return found;
}

const ALL_LINKS = { index: 0, name: "dump" };

/** The queueing disciplines of all links. */
export function listQdiscs(socket: NetlinkSocket): TcObject[] {
  return listTcObjects(socket, ["RTM_GETQDISC", RTM_GETQDISC], { link: ALL_LINKS }, RTM_NEWQDISC);
}
