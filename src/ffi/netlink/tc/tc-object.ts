/**
 * Messages about queueing disciplines, classes and filters: struct tcmsg of linux/rtnetlink.h (family u8, pads u8 u16,
 * link's index s32, handle u32, parent u32, info u32), then a kind, and options that shapers.ts and u32.ts decode.
 */
import { attrTable, binary, custom, text } from "../attrs.ts";
import { NLM_F_CREATE, NLM_F_EXCL, type Writer } from "../wire.ts";
import { TCA_KIND, TCA_OPTIONS } from "../uapi/rtnetlink.ts";
import { EINVAL, ENODEV, ENOENT } from "../../errno.ts";
import { listOf, type NetlinkRequest, type NetlinkSocket, tryRequest } from "../socket.ts";

interface TcHeader {
  linkIndex: number;
  handle?: number;
  parent?: number;
  /** For filters, priority and protocol. */
  info?: number;
}

export const tcHeader = {
  bytes: 20,
  write(writer: Writer, { linkIndex, handle, parent, info }: TcHeader): void {
    writer.u8(0).u8(0).u16(0).u32(linkIndex).u32(handle ?? 0).u32(parent ?? 0).u32(info ?? 0);
  },
  read(payload: Uint8Array): Required<TcHeader> {
    const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
    return {
      linkIndex: view.getInt32(4, true),
      handle: view.getUint32(8, true),
      parent: view.getUint32(12, true),
      info: view.getUint32(16, true),
    };
  },
};

/** A kind with its options, ready to be written; shapers.ts and u32.ts make these. */
export interface TcKind {
  name: string;
  write?: (writer: Writer) => void;
}

const tcAttrs = attrTable("TCA", {
  kind: text(TCA_KIND),
  options: custom<(writer: Writer) => void>(TCA_OPTIONS, {
    write: (writer, write) => write(writer),
    read: () => () => {},
  }),
});

const reading = attrTable("TCA", { kind: text(TCA_KIND), options: binary(TCA_OPTIONS) });

/** A queueing discipline, class or filter as the kernel lists it. */
export interface TcObject extends Required<TcHeader> {
  kind: string;
  options: Uint8Array;
}

export function readTcObject(payload: Uint8Array): TcObject {
  const { kind = "", options = new Uint8Array() } = reading.decode(payload.subarray(tcHeader.bytes));
  return { ...tcHeader.read(payload), kind, options };
}

/** `1:30` of tc(8) is `tcHandle(1, 0x30)`. */
export function tcHandle(major: number, minor = 0): number {
  return ((major << 16) | minor) >>> 0;
}

interface TcPlace extends Omit<TcHeader, "linkIndex"> {
  link: { index: number; name: string };
}

function writeHeader(writer: Writer, { link, handle, parent, info }: TcPlace): void {
  tcHeader.write(writer, { linkIndex: link.index, handle, parent, info });
}

/** Fails with EEXIST when the place is taken. The type of the message comes with its name, for errors. */
export function additionOf([name, type]: readonly [string, number], place: TcPlace, kind: TcKind): NetlinkRequest {
  return {
    what: `${name} ${kind.name} on ${place.link.name}`,
    type,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    table: tcAttrs,
    fixedBytes: tcHeader.bytes,
    body: (writer) => {
      writeHeader(writer, place);
      tcAttrs.encode(writer, { kind: kind.name, options: kind.write });
    },
  };
}

/** With `kind`, the kernel deletes only an object of that kind. */
export function delTcObject(
  socket: NetlinkSocket,
  [name, type]: readonly [string, number],
  place: TcPlace,
  kind?: string,
): "deleted" | "absent" {
  const request: NetlinkRequest = {
    what: kind === undefined ? `${name} ${place.link.name}` : `${name} ${kind} on ${place.link.name}`,
    type,
    body: (writer) => {
      writeHeader(writer, place);
      if (kind !== undefined) tcAttrs.encode(writer, { kind });
    },
  };
  return tryRequest(socket, request, [ENOENT, EINVAL, ENODEV]) ? "deleted" : "absent";
}

/** `listed` is the type of the messages that answer. */
export function listTcObjects(
  socket: NetlinkSocket,
  [name, type]: readonly [string, number],
  place: TcPlace,
  listed: number,
): TcObject[] {
  return listOf(
    socket,
    { what: `${name} ${place.link.name}`, type, body: (writer) => writeHeader(writer, place) },
    (message, found) => void (message.type === listed && found.push(readTcObject(message.payload))),
  );
}
