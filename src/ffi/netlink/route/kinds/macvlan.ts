/** macvlan: a link with its own MAC address on a master (linux/if_link.h IFLA_MACVLAN_*, ip-link(8)). */
import { attrTable, u32 } from "../../attrs.ts";
import {
  IFLA_MACVLAN_BC_QUEUE_LEN,
  IFLA_MACVLAN_MODE,
  MACVLAN_MODE_BRIDGE,
  MACVLAN_MODE_PASSTHRU,
  MACVLAN_MODE_PRIVATE,
  MACVLAN_MODE_VEPA,
} from "../../uapi/if-link.ts";
import type { LinkFormat } from "../link-kind.ts";

export const macvlanModes: Record<string, number> = {
  bridge: MACVLAN_MODE_BRIDGE,
  private: MACVLAN_MODE_PRIVATE,
  vepa: MACVLAN_MODE_VEPA,
  passthru: MACVLAN_MODE_PASSTHRU,
};

export interface MacvlanSettings {
  /** One of `macvlanModes`. */
  mode?: string;
  /** Length of the queue for broadcasts to the other macvlans of the master. */
  bcqueuelen?: number;
}

const macvlanData = attrTable("IFLA_INFO_DATA(macvlan)", {
  mode: u32(IFLA_MACVLAN_MODE),
  bcqueuelen: u32(IFLA_MACVLAN_BC_QUEUE_LEN),
});

export const macvlan: LinkFormat<MacvlanSettings> = {
  kind({ mode, bcqueuelen }) {
    return {
      name: "macvlan",
      write: (writer) => macvlanData.encode(writer, { mode: macvlanModes[mode!], bcqueuelen }),
    };
  },
  settings(data) {
    const { mode, bcqueuelen } = macvlanData.decode(data);
    return { mode: Object.keys(macvlanModes).find((name) => macvlanModes[name] === mode), bcqueuelen };
  },
};
