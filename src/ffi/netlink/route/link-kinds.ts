/** How links stand in messages: their header, and the settings of each kind (rtnetlink(7), ip-link(8)). */
import * as ifLink from "../uapi/if-link.ts";
import type { Writer } from "../wire.ts";
import { type AttrsOf, attrTable, binary, custom, type Row, s32, text, u16, u32, u8 } from "../attrs.ts";

/** struct ifinfomsg of linux/rtnetlink.h: family u8, pad u8, type u16, index s32, flags u32, change mask u32. */
interface LinkHeader {
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
  read(payload: Uint8Array): { index: number; flags: number } {
    const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
    return { index: view.getInt32(4, true), flags: view.getUint32(8, true) };
  },
};

/** A kind of link with its settings, ready to be written into a request. */
export interface LinkKind {
  name: string;
  write?: (writer: Writer) => void;
}

/** How the settings of a kind are sent to the kernel and read from it. */
export interface LinkFormat<Settings> {
  kind(settings: Settings): LinkKind;
  settings(data: Uint8Array): Settings;
}

/** veth: a pair of links, the second end described inside the first (linux/veth.h). */
const peerAttrs = attrTable("IFLA", {
  ifName: text(ifLink.IFLA_IFNAME),
  address: binary(ifLink.IFLA_ADDRESS),
  mtu: u32(ifLink.IFLA_MTU),
  txQueueLength: u32(ifLink.IFLA_TXQLEN),
  netnsFd: u32(ifLink.IFLA_NET_NS_FD),
});

/** A peer is a complete link message: header, then attributes. */
const peer: Row<AttrsOf<typeof peerAttrs.rows>> = custom(ifLink.VETH_INFO_PEER, {
  write(writer, value) {
    linkHeader.write(writer, {});
    peerAttrs.encode(writer, value);
  },
  read: (payload) => peerAttrs.decode(payload.subarray(linkHeader.bytes)),
});

const vethData = attrTable("IFLA_INFO_DATA(veth)", { peer });

export function vethKind(values: AttrsOf<typeof vethData.rows>): LinkKind {
  return { name: "veth", write: (writer) => vethData.encode(writer, values) };
}

/** bridge (linux/if_link.h IFLA_BR_*) and the settings of its ports (IFLA_BRPORT_*). */
export const bridgeData = attrTable("IFLA_INFO_DATA(bridge)", {
  priority: u16(ifLink.IFLA_BR_PRIORITY),
  vlanFiltering: u8(ifLink.IFLA_BR_VLAN_FILTERING),
  vlanOfNewPorts: u16(ifLink.IFLA_BR_VLAN_DEFAULT_PVID),
  callsIptables: u8(ifLink.IFLA_BR_NF_CALL_IPTABLES),
  callsIp6tables: u8(ifLink.IFLA_BR_NF_CALL_IP6TABLES),
});

export function bridgeKind(values: AttrsOf<typeof bridgeData.rows>): LinkKind {
  return { name: "bridge", write: (writer) => bridgeData.encode(writer, values) };
}

export const bridgePortData = attrTable("IFLA_BRPORT", {
  state: u8(ifLink.IFLA_BRPORT_STATE),
  hairpin: u8(ifLink.IFLA_BRPORT_MODE),
  learning: u8(ifLink.IFLA_BRPORT_LEARNING),
  isolated: u8(ifLink.IFLA_BRPORT_ISOLATED),
});

/** macvlan: a link with its own MAC address on a master (linux/if_link.h IFLA_MACVLAN_*). */
export const macvlanModes: Record<string, number> = {
  bridge: ifLink.MACVLAN_MODE_BRIDGE,
  private: ifLink.MACVLAN_MODE_PRIVATE,
  vepa: ifLink.MACVLAN_MODE_VEPA,
  passthru: ifLink.MACVLAN_MODE_PASSTHRU,
};

/** Without a list of senders, a link of this mode receives nothing: the plugin macvlan has no option for one. */
const allModes: Record<string, number> = { ...macvlanModes, source: ifLink.MACVLAN_MODE_SOURCE };

export interface MacvlanSettings {
  /** One of `macvlanModes`, or `source`. */
  mode?: string;
  /** Length of the queue for broadcasts to the other macvlans of the master. */
  bcqueuelen?: number;
  /** Up to how many links get a broadcast at once, before the queue is used. */
  bccutoff?: number;
}

const macvlanData = attrTable("IFLA_INFO_DATA(macvlan)", {
  mode: u32(ifLink.IFLA_MACVLAN_MODE),
  bcqueuelen: u32(ifLink.IFLA_MACVLAN_BC_QUEUE_LEN),
  bccutoff: s32(ifLink.IFLA_MACVLAN_BC_CUTOFF),
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

/** ipvlan: a link that shares another's MAC address (linux/if_link.h IFLA_IPVLAN_*). */
export const ipvlanModes: Record<string, number> = {
  l2: ifLink.IPVLAN_MODE_L2,
  l3: ifLink.IPVLAN_MODE_L3,
  l3s: ifLink.IPVLAN_MODE_L3S,
};

export interface IpvlanSettings {
  /** One of `ipvlanModes`. The newest ipvlan of a master sets the mode of all. */
  mode?: string;
}

const ipvlanData = attrTable("IFLA_INFO_DATA(ipvlan)", {
  mode: u16(ifLink.IFLA_IPVLAN_MODE),
  flags: u16(ifLink.IFLA_IPVLAN_FLAGS),
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

/** vlan: the frames of a master that carry one 802.1Q tag (linux/if_link.h IFLA_VLAN_*). */
export interface VlanSettings {
  id?: number;
}

const vlanData = attrTable("IFLA_INFO_DATA(vlan)", { id: u16(ifLink.IFLA_VLAN_ID) });

export const vlan: LinkFormat<VlanSettings> = {
  kind: (settings) => ({ name: "vlan", write: (writer) => vlanData.encode(writer, settings) }),
  settings: (data) => vlanData.decode(data),
};

/** vrf: a master whose members route by a table of their own (linux/if_link.h IFLA_VRF_*). */
interface VrfSettings {
  table?: number;
}

const vrfData = attrTable("IFLA_INFO_DATA(vrf)", { table: u32(ifLink.IFLA_VRF_TABLE) });

export const vrf: LinkFormat<VrfSettings> = {
  kind: (settings) => ({ name: "vrf", write: (writer) => vrfData.encode(writer, settings) }),
  settings: (data) => vrfData.decode(data),
};

/** tun: a link whose other end is a program (linux/if_link.h IFLA_TUN_*). Made by ioctl only: ffi/tun.ts. */
const tunData = attrTable("IFLA_INFO_DATA(tun)", {
  owner: u32(ifLink.IFLA_TUN_OWNER),
  group: u32(ifLink.IFLA_TUN_GROUP),
  multiQueue: u8(ifLink.IFLA_TUN_MULTI_QUEUE),
});

interface TunSettings {
  owner?: number;
  group?: number;
  multiQueue: boolean;
}

export function tunSettings(data: Uint8Array): TunSettings {
  const { owner, group, multiQueue } = tunData.decode(data);
  return { owner, group, multiQueue: multiQueue === 1 };
}

/** dummy: a link that drops every packet. It has no settings (drivers/net/dummy.c). */
export const dummy: LinkFormat<Record<string, never>> = {
  kind: () => ({ name: "dummy" }),
  settings: () => ({}),
};

/** ifb: a link that incoming packets are redirected to for queueing. It has no settings (drivers/net/ifb.c). */
export const ifbKind: LinkKind = { name: "ifb" };
