/** struct ifinfomsg of linux/rtnetlink.h: family u8, pad u8, type u16, index s32, flags u32, change mask u32. */
import type { Writer } from "../wire.ts";

export interface LinkHeader {
  family?: number;
  index?: number;
  flags?: number;
  /** Mask of the flags to change. */
  change?: number;
}

export const linkHeader = {
  bytes: 16,
  write(writer: Writer, header: LinkHeader): void {
    writer.u8(header.family ?? 0).u8(0).u16(0).u32(header.index ?? 0).u32(header.flags ?? 0).u32(header.change ?? 0);
  },
  read(payload: Uint8Array): Required<LinkHeader> & { type: number } {
    const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
    return {
      family: view.getUint8(0),
      type: view.getUint16(2, true),
      index: view.getInt32(4, true),
      flags: view.getUint32(8, true),
      change: view.getUint32(12, true),
    };
  },
};
