/**
 * Messages about queueing disciplines, classes and filters: struct tcmsg of linux/rtnetlink.h (family u8, pads u8 u16,
 * link's index s32, handle u32, parent u32, info u32), then a kind, and options that the file of the kind decodes.
 */
import { attrTable, binary, custom, text } from "../attrs.ts";
import type { Writer } from "../wire.ts";
import { TCA_KIND, TCA_OPTIONS } from "../uapi/rtnetlink.ts";

export interface TcHeader {
  linkIndex: number;
  handle?: number;
  parent?: number;
  /** Of filters: priority and protocol. */
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

/** A kind with its options, ready to be written; the files in kinds/ make these. */
export interface TcKind {
  name: string;
  write?: (writer: Writer) => void;
}

export const tcAttrs = attrTable("TCA", {
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
  /** For the kind's file to decode. */
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
