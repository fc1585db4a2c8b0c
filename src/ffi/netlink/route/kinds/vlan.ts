/** vlan: the frames of a master that carry one 802.1Q tag (linux/if_link.h IFLA_VLAN_*, ip-link(8)). */
import { attrTable, u16 } from "../../attrs.ts";
import { IFLA_VLAN_ID } from "../../uapi/if-link.ts";
import type { LinkFormat } from "../link-kind.ts";

export interface VlanSettings {
  id?: number;
}

const vlanData = attrTable("IFLA_INFO_DATA(vlan)", { id: u16(IFLA_VLAN_ID) });

export const vlan: LinkFormat<VlanSettings> = {
  kind: (settings) => ({ name: "vlan", write: (writer) => vlanData.encode(writer, settings) }),
  settings: (data) => vlanData.decode(data),
};
