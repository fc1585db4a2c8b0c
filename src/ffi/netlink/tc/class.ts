/** Classes of a queueing discipline: `tc class`. */
import type { NetlinkSocket } from "../socket.ts";
import { NLM_F_CREATE, NLM_F_EXCL } from "../wire.ts";
import { RTM_GETTCLASS, RTM_NEWTCLASS } from "../uapi/rtnetlink.ts";
import { readTcObject, tcAttrs, tcHeader, type TcKind, type TcObject } from "./tc-header.ts";

/** `tc class add`. */
export function addClass(
  socket: NetlinkSocket,
  { link, parent, handle }: { link: { index: number; name: string }; parent: number; handle: number },
  kind: TcKind,
): void {
  socket.request({
    what: `RTM_NEWTCLASS ${kind.name} on ${link.name}`,
    type: RTM_NEWTCLASS,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    table: tcAttrs,
    fixedBytes: tcHeader.bytes,
    body: (writer) => {
      tcHeader.write(writer, { linkIndex: link.index, handle, parent });
      tcAttrs.encode(writer, { kind: kind.name, options: kind.write });
    },
  });
}

/** `tc class show dev …`. */
export function listClasses(socket: NetlinkSocket, link: { index: number; name: string }): TcObject[] {
  let found: TcObject[] = [];
  socket.dump(
    {
      what: `RTM_GETTCLASS ${link.name}`,
      type: RTM_GETTCLASS,
      body: (writer) => tcHeader.write(writer, { linkIndex: link.index }),
    },
    (message) => void (message.type === RTM_NEWTCLASS && found.push(readTcObject(message.payload))),
    () => void (found = []),
  );
  return found;
}
