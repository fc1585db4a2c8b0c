/** tun: a link whose other end is a program (linux/if_link.h IFLA_TUN_*). Made by ioctl only: ffi/tun.ts. */
import { attrTable, u32, u8 } from "../../attrs.ts";
import { IFLA_TUN_GROUP, IFLA_TUN_MULTI_QUEUE, IFLA_TUN_OWNER } from "../../uapi/if-link.ts";

const tunData = attrTable("IFLA_INFO_DATA(tun)", {
  owner: u32(IFLA_TUN_OWNER),
  group: u32(IFLA_TUN_GROUP),
  multiQueue: u8(IFLA_TUN_MULTI_QUEUE),
});

export interface TunSettings {
  owner?: number;
  group?: number;
  multiQueue: boolean;
}

export function tunSettings(data: Uint8Array): TunSettings {
  const { owner, group, multiQueue } = tunData.decode(data);
  return { owner, group, multiQueue: multiQueue === 1 };
}
