/** ipvlan: a link that shares another's MAC address (linux/if_link.h IFLA_IPVLAN_*, ip-link(8)). */
import { attrTable, u16 } from "../../attrs.ts";
import {
  IFLA_IPVLAN_FLAGS,
  IFLA_IPVLAN_MODE,
  IPVLAN_MODE_L2,
  IPVLAN_MODE_L3,
  IPVLAN_MODE_L3S,
} from "../../uapi/if-link.ts";
import type { LinkFormat } from "../link-kind.ts";

export const ipvlanModes: Record<string, number> = { l2: IPVLAN_MODE_L2, l3: IPVLAN_MODE_L3, l3s: IPVLAN_MODE_L3S };

export interface IpvlanSettings {
  /** One of `ipvlanModes`. The newest ipvlan of a master sets the mode of all. */
  mode?: string;
}

const ipvlanData = attrTable("IFLA_INFO_DATA(ipvlan)", {
  mode: u16(IFLA_IPVLAN_MODE),
  flags: u16(IFLA_IPVLAN_FLAGS),
});

export const ipvlan: LinkFormat<IpvlanSettings> = {
  kind({ mode }) {
    // Neither private nor vepa: the ipvlans of one master reach one another.
    const values = { mode: ipvlanModes[mode!], flags: 0 };
    return { name: "ipvlan", write: (writer) => ipvlanData.encode(writer, values) };
  },
  settings(data) {
    const { mode } = ipvlanData.decode(data);
    return { mode: Object.keys(ipvlanModes).find((name) => ipvlanModes[name] === mode) };
  },
};
