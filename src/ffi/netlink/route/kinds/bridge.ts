/** bridge (linux/if_link.h IFLA_BR_*) and the settings of its ports (IFLA_BRPORT_*). */
import { type AttrsOf, attrTable, u16, u8 } from "../../attrs.ts";
import {
  IFLA_BR_PRIORITY,
  IFLA_BR_VLAN_FILTERING,
  IFLA_BRPORT_ISOLATED,
  IFLA_BRPORT_MODE,
  IFLA_BRPORT_STATE,
} from "../../uapi/if-link.ts";
import type { LinkKind } from "../link-kind.ts";

export const bridgeData = attrTable("IFLA_INFO_DATA(bridge)", {
  priority: u16(IFLA_BR_PRIORITY),
  vlanFiltering: u8(IFLA_BR_VLAN_FILTERING),
});

export function bridgeKind(values: AttrsOf<typeof bridgeData.rows>): LinkKind {
  return { name: "bridge", write: (writer) => bridgeData.encode(writer, values) };
}

export const bridgePortData = attrTable("IFLA_BRPORT", {
  state: u8(IFLA_BRPORT_STATE),
  hairpin: u8(IFLA_BRPORT_MODE),
  isolated: u8(IFLA_BRPORT_ISOLATED),
});
