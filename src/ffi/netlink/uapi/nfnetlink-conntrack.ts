/** Numbers of linux/netfilter/nfnetlink_conntrack.h and linux/netfilter/nfnetlink.h (Linux 6.18). */
export const NFNL_SUBSYS_CTNETLINK = 1;

// enum cntl_msg_types
export const IPCTNL_MSG_CT_GET = 1;
export const IPCTNL_MSG_CT_DELETE = 2;

// enum ctattr_type
export const CTA_TUPLE_ORIG = 1;
export const CTA_TUPLE_REPLY = 2;
export const CTA_STATUS = 3;
export const CTA_ID = 12;
export const CTA_ZONE = 18;
export const CTA_FILTER = 25;
export const CTA_STATUS_MASK = 26;

// enum ip_conntrack_status of linux/netfilter/nf_conntrack_common.h
export const IPS_ASSURED = 1 << 2;

// enum ctattr_tuple, ctattr_ip, ctattr_l4proto
export const CTA_TUPLE_IP = 1;
export const CTA_TUPLE_PROTO = 2;
export const CTA_IP_V4_SRC = 1;
export const CTA_IP_V4_DST = 2;
export const CTA_IP_V6_SRC = 3;
export const CTA_IP_V6_DST = 4;
export const CTA_PROTO_NUM = 1;
export const CTA_PROTO_DST_PORT = 3;

// enum ctattr_filter, ctattr_filter_orig_flags
export const CTA_FILTER_ORIG_FLAGS = 1;
export const CTA_FILTER_REPLY_FLAGS = 2;
export const CTA_FILTER_F_IP_SRC = 1 << 0;
export const CTA_FILTER_F_IP_DST = 1 << 1;
export const CTA_FILTER_F_PROTO_NUM = 1 << 3;
export const CTA_FILTER_F_PROTO_DST_PORT = 1 << 5;
