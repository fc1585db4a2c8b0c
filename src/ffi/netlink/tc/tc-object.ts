/** Requests that queueing disciplines, classes and filters have in common. */
import { EINVAL, ENODEV, ENOENT } from "../../errno.ts";
import { isNetlinkError, type NetlinkSocket } from "../socket.ts";
import { NLM_F_CREATE, NLM_F_EXCL, type Writer } from "../wire.ts";
import { readTcObject, tcAttrs, type TcHeader, tcHeader, type TcKind, type TcObject } from "./tc-header.ts";

export interface TcPlace extends Omit<TcHeader, "linkIndex"> {
  link: { index: number; name: string };
}

function writeHeader(writer: Writer, { link, handle, parent, info }: TcPlace): void {
  tcHeader.write(writer, { linkIndex: link.index, handle, parent, info });
}

/** Fails with EEXIST when the place is taken. The type of the message comes with its name, for errors. */
export function addTcObject(
  socket: NetlinkSocket,
  [name, type]: readonly [string, number],
  place: TcPlace,
  kind: TcKind,
): void {
  socket.request({
    what: `${name} ${kind.name} on ${place.link.name}`,
    type,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    table: tcAttrs,
    fixedBytes: tcHeader.bytes,
    body: (writer) => {
      writeHeader(writer, place);
      tcAttrs.encode(writer, { kind: kind.name, options: kind.write });
    },
  });
}

/** With `kind`, the kernel deletes only an object of that kind. */
export function delTcObject(
  socket: NetlinkSocket,
  [name, type]: readonly [string, number],
  place: TcPlace,
  kind?: string,
): "deleted" | "absent" {
  try {
    socket.request({
      what: kind === undefined ? `${name} ${place.link.name}` : `${name} ${kind} on ${place.link.name}`,
      type,
      body: (writer) => {
        writeHeader(writer, place);
        if (kind !== undefined) tcAttrs.encode(writer, { kind });
      },
    });
    return "deleted";
  } catch (error) {
    if (isNetlinkError(error, ENOENT, EINVAL, ENODEV)) return "absent";
    throw error;
  }
}

/** `listed` is the type of the messages that answer. */
export function listTcObjects(
  socket: NetlinkSocket,
  [name, type]: readonly [string, number],
  place: TcPlace,
  listed: number,
): TcObject[] {
  let found: TcObject[] = [];
  socket.dump(
    { what: `${name} ${place.link.name}`, type, body: (writer) => writeHeader(writer, place) },
    (message) => void (message.type === listed && found.push(readTcObject(message.payload))),
    () => void (found = []),
  );
  return found;
}
