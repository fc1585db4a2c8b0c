/** macvlan: a link with its own MAC address on a master (linux/if_link.h IFLA_MACVLAN_*, ip-link(8)). */
import { attrTable, s32, u32 } from "../../attrs.ts";
import {
  IFLA_MACVLAN_BC_CUTOFF,
  IFLA_MACVLAN_BC_QUEUE_LEN,
  IFLA_MACVLAN_MODE,
  MACVLAN_MODE_BRIDGE,
  MACVLAN_MODE_PASSTHRU,
  MACVLAN_MODE_PRIVATE,
  MACVLAN_MODE_SOURCE,
  MACVLAN_MODE_VEPA,
} from "../../uapi/if-link.ts";
import type { LinkFormat } from "../link-kind.ts";

export const macvlanModes: Record<string, number> = {
  bridge: MACVLAN_MODE_BRIDGE,
  private: MACVLAN_MODE_PRIVATE,
  vepa: MACVLAN_MODE_VEPA,
  passthru: MACVLAN_MODE_PASSTHRU,
};

/** Without a list of senders, a link of this mode receives nothing: the plugin macvlan has no option for one. */
const allModes: Record<string, number> = { ...macvlanModes, source: MACVLAN_MODE_SOURCE };

export interface MacvlanSettings {
  /** One of `macvlanModes`, or `source`. */
  mode?: string;
  /** Length of the queue for broadcasts to the other macvlans of the master. */
  bcqueuelen?: number;
  /** Up to how many links get a broadcast at once, before the queue is used. */
  bccutoff?: number;
}

const macvlanData = attrTable("IFLA_INFO_DATA(macvlan)", {
  mode: u32(IFLA_MACVLAN_MODE),
  bcqueuelen: u32(IFLA_MACVLAN_BC_QUEUE_LEN),
  bccutoff: s32(IFLA_MACVLAN_BC_CUTOFF),
});

export const macvlan: LinkFormat<MacvlanSettings> = {
  kind({ mode, bcqueuelen, bccutoff }) {
    return {
      name: "macvlan",
      write: (writer) => macvlanData.encode(writer, { mode: allModes[mode!], bcqueuelen, bccutoff }),
    };
  },
  settings(data) {
    const { mode, bcqueuelen, bccutoff } = macvlanData.decode(data);
    return { mode: Object.keys(allModes).find((name) => allModes[name] === mode), bcqueuelen, bccutoff };
  },
};
