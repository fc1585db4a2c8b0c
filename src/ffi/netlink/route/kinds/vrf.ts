/** vrf: a master whose members route by a table of their own (linux/if_link.h IFLA_VRF_*, ip-link(8)). */
import { attrTable, u32 } from "../../attrs.ts";
import { IFLA_VRF_TABLE } from "../../uapi/if-link.ts";
import type { LinkFormat } from "../link-kind.ts";

export interface VrfSettings {
  table?: number;
}

const vrfData = attrTable("IFLA_INFO_DATA(vrf)", { table: u32(IFLA_VRF_TABLE) });

export const vrf: LinkFormat<VrfSettings> = {
  kind: (settings) => ({ name: "vrf", write: (writer) => vrfData.encode(writer, settings) }),
  settings: (data) => vrfData.decode(data),
};
