/** Numbers of linux/if_link.h, linux/if.h, linux/if_bridge.h and linux/veth.h (Linux 6.18). */

export const IFF_UP = 0x1;
export const IFF_DEBUG = 0x4;
export const IFF_LOOPBACK = 0x8;
export const IFF_NOTRAILERS = 0x20;
export const IFF_NOARP = 0x80;
export const IFF_PROMISC = 0x100;
export const IFF_ALLMULTI = 0x200;
export const IFF_MULTICAST = 0x1000;
export const IFF_PORTSEL = 0x2000;
export const IFF_AUTOMEDIA = 0x4000;
export const IFF_DYNAMIC = 0x8000;
export const IFLA_BR_NF_CALL_IPTABLES = 36;
export const IFLA_BR_NF_CALL_IP6TABLES = 37;
export const IFLA_XDP = 43;
export const IFLA_XDP_ATTACHED = 2;
export const IFF_LOWER_UP = 0x10000;

export const IFLA_ADDRESS = 1;
export const IFLA_BROADCAST = 2;
export const IFLA_IFNAME = 3;
export const IFLA_MTU = 4;
export const IFLA_LINK = 5;
export const IFLA_MASTER = 10;
export const IFLA_PROTINFO = 12;
export const IFLA_TXQLEN = 13;
export const IFLA_OPERSTATE = 16;
export const IFLA_LINKMODE = 17;
export const IFLA_LINKINFO = 18;
export const IFLA_IFALIAS = 20;
export const IFLA_AF_SPEC = 26;
export const IFLA_GROUP = 27;
export const IFLA_NET_NS_FD = 28;
export const IFLA_EXT_MASK = 29;
export const IFLA_PROMISCUITY = 30;
export const IFLA_LINK_NETNSID = 37;
export const IFLA_GSO_MAX_SEGS = 40;
export const IFLA_GSO_MAX_SIZE = 41;
export const IFLA_TARGET_NETNSID = 46;
export const IFLA_NEW_IFINDEX = 49;
export const IFLA_PROP_LIST = 52;
export const IFLA_ALT_IFNAME = 53;
export const IFLA_PERM_ADDRESS = 54;
export const IFLA_PARENT_DEV_NAME = 56;
export const IFLA_PARENT_DEV_BUS_NAME = 57;
export const IFLA_GRO_MAX_SIZE = 58;
export const IFLA_GSO_IPV4_MAX_SIZE = 63;
export const IFLA_GRO_IPV4_MAX_SIZE = 64;
export const IFLA_NETNS_IMMUTABLE = 67;

export const IFLA_INFO_KIND = 1;
export const IFLA_INFO_DATA = 2;
export const IFLA_INFO_SLAVE_KIND = 4;
export const IFLA_INFO_SLAVE_DATA = 5;

export const VETH_INFO_PEER = 1;

export const IFLA_MACVLAN_MODE = 1;
export const IFLA_MACVLAN_BC_QUEUE_LEN = 7;
export const IFLA_MACVLAN_BC_CUTOFF = 9;
export const MACVLAN_MODE_PRIVATE = 1;
export const MACVLAN_MODE_VEPA = 2;
export const MACVLAN_MODE_BRIDGE = 4;
export const MACVLAN_MODE_PASSTHRU = 8;
export const MACVLAN_MODE_SOURCE = 16;

export const IFLA_IPVLAN_MODE = 1;
export const IFLA_IPVLAN_FLAGS = 2;
export const IPVLAN_MODE_L2 = 0;
export const IPVLAN_MODE_L3 = 1;
export const IPVLAN_MODE_L3S = 2;

export const IFLA_VLAN_ID = 1;

export const IFLA_BR_PRIORITY = 6;
export const IFLA_BR_VLAN_FILTERING = 7;
export const IFLA_BR_VLAN_DEFAULT_PVID = 39;

// IFLA_INFO_DATA of a tun or tap
export const IFLA_TUN_OWNER = 1;
export const IFLA_TUN_GROUP = 2;
export const IFLA_TUN_MULTI_QUEUE = 7;

// IFLA_INFO_DATA of a vrf
export const IFLA_VRF_TABLE = 1;

// IFLA_PROTINFO of AF_BRIDGE, and the bridge's IFLA_INFO_SLAVE_DATA
export const IFLA_BRPORT_STATE = 1;
export const IFLA_BRPORT_MODE = 4;
export const IFLA_BRPORT_LEARNING = 8;
export const IFLA_BRPORT_ISOLATED = 33;

// IFLA_AF_SPEC of AF_BRIDGE
export const IFLA_BRIDGE_FLAGS = 0;
export const IFLA_BRIDGE_VLAN_INFO = 2;
export const BRIDGE_FLAGS_MASTER = 1;
export const BRIDGE_VLAN_INFO_PVID = 0x2;
export const BRIDGE_VLAN_INFO_UNTAGGED = 0x4;
export const BRIDGE_VLAN_INFO_RANGE_BEGIN = 0x8;
export const BRIDGE_VLAN_INFO_RANGE_END = 0x10;
export const RTEXT_FILTER_BRVLAN = 0x2;
export const RTEXT_FILTER_SKIP_STATS = 0x8;

// RFC 2863 states in IFLA_OPERSTATE
export const IF_OPER_UNKNOWN = 0;
export const IF_OPER_UP = 6;
export const operstateNames = ["unknown", "not-present", "down", "lower-layer-down", "testing", "dormant", "up"];
