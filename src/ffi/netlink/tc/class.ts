/** Classes of a queueing discipline: `tc class`. */
import type { NetlinkSocket } from "../socket.ts";
import { RTM_GETTCLASS, RTM_NEWTCLASS } from "../uapi/rtnetlink.ts";
import type { TcKind, TcObject } from "./tc-header.ts";
import { addTcObject, listTcObjects } from "./tc-object.ts";

/** `tc class add`. */
export function addClass(
  socket: NetlinkSocket,
  place: { link: { index: number; name: string }; parent: number; handle: number },
  kind: TcKind,
): void {
  addTcObject(socket, ["RTM_NEWTCLASS", RTM_NEWTCLASS], place, kind);
}

/** `tc class show dev …`. */
export function listClasses(socket: NetlinkSocket, link: { index: number; name: string }): TcObject[] {
  return listTcObjects(socket, ["RTM_GETTCLASS", RTM_GETTCLASS], { link }, RTM_NEWTCLASS);
}
