/**
 * Numbers of linux/netfilter/nfnetlink.h, linux/netfilter/nf_tables.h, linux/netfilter/nf_tables_compat.h and
 * linux/netfilter.h (Linux 6.18). Verdicts and hooks are written as the attribute carries them: unsigned.
 */

// linux/netfilter/nfnetlink.h
export const NFNL_SUBSYS_NFTABLES = 10;
export const NFNL_MSG_BATCH_BEGIN = 16;
export const NFNL_MSG_BATCH_END = 17;
export const NFNL_BATCH_GENID = 1;
export const NFNLGRP_NFTRACE = 9;

// linux/netfilter/nf_tables_compat.h: enum of what is asked for, and its attributes
export const NFNL_SUBSYS_NFT_COMPAT = 11;
export const NFNL_MSG_COMPAT_GET = 0;
export const NFTA_COMPAT_NAME = 1;
export const NFTA_COMPAT_REV = 2;
export const NFTA_COMPAT_TYPE = 3;

// linux/netfilter.h
export const NFPROTO_INET = 1;
export const NFPROTO_IPV4 = 2;
export const NFPROTO_BRIDGE = 7;
export const NFPROTO_NETDEV = 5;
/** enum nf_dev_hooks. */
export const NF_NETDEV_INGRESS = 0;
export const NFPROTO_IPV6 = 10;
export const NF_BR_PRE_ROUTING = 0;
export const NF_INET_LOCAL_IN = 1;
export const NF_INET_FORWARD = 2;
export const NF_INET_PRE_ROUTING = 0;
export const NF_INET_LOCAL_OUT = 3;
export const NF_INET_POST_ROUTING = 4;
export const NF_DROP = 0;
export const NF_ACCEPT = 1;

export const NF_QUEUE = 3;

// enum nft_verdicts
export const NFT_CONTINUE = 0xffffffff;
export const NFT_GOTO = 0xfffffffc;
export const NFT_JUMP = 0xfffffffd;
export const NFT_RETURN = 0xfffffffb;

// enum nf_tables_msg_types
export const NFT_MSG_NEWTABLE = 0;
export const NFT_MSG_GETTABLE = 1;
export const NFT_MSG_DELTABLE = 2;
export const NFT_MSG_NEWCHAIN = 3;
export const NFT_MSG_GETCHAIN = 4;
export const NFT_MSG_DELCHAIN = 5;
export const NFT_MSG_NEWRULE = 6;
export const NFT_MSG_GETRULE = 7;
export const NFT_MSG_DELRULE = 8;
export const NFT_MSG_NEWSET = 9;
export const NFT_MSG_GETSET = 10;
export const NFT_MSG_DELSET = 11;
export const NFT_MSG_NEWSETELEM = 12;
export const NFT_MSG_GETSETELEM = 13;
export const NFT_MSG_DELSETELEM = 14;
export const NFT_MSG_GETGEN = 16;
export const NFT_MSG_TRACE = 17;
export const NFT_MSG_NEWOBJ = 18;
export const NFT_MSG_GETOBJ = 19;
export const NFT_MSG_DELOBJ = 20;

// enum nft_table_attributes, nft_table_flags
export const NFTA_TABLE_NAME = 1;
export const NFTA_TABLE_FLAGS = 2;
export const NFT_TABLE_F_DORMANT = 1;
export const NFT_TABLE_F_OWNER = 2;
export const NFTA_TABLE_USE = 3;
export const NFTA_TABLE_USERDATA = 6;

// enum nft_chain_attributes, nft_hook_attributes
export const NFTA_CHAIN_TABLE = 1;
export const NFTA_CHAIN_NAME = 3;
export const NFTA_CHAIN_HOOK = 4;
export const NFTA_CHAIN_POLICY = 5;
export const NFTA_CHAIN_USE = 6;
export const NFTA_CHAIN_TYPE = 7;
export const NFTA_HOOK_HOOKNUM = 1;
export const NFTA_HOOK_PRIORITY = 2;
export const NFTA_HOOK_DEV = 3;
export const NFTA_HOOK_DEVS = 4;

// enum nft_rule_attributes, nft_rule_compat_attributes
export const NFTA_RULE_TABLE = 1;
export const NFTA_RULE_CHAIN = 2;
export const NFTA_RULE_HANDLE = 3;
export const NFTA_RULE_EXPRESSIONS = 4;
export const NFTA_RULE_COMPAT = 5;
export const NFTA_RULE_USERDATA = 7;
export const NFTA_RULE_COMPAT_PROTO = 1;
export const NFTA_RULE_COMPAT_FLAGS = 2;

// enum nft_list_attributes, nft_expr_attributes
export const NFTA_LIST_ELEM = 1;
export const NFTA_EXPR_NAME = 1;
export const NFTA_EXPR_DATA = 2;

// enum nft_set_attributes, nft_set_flags, nft_set_desc_attributes, nft_set_field_attributes
export const NFTA_SET_TABLE = 1;
export const NFTA_SET_NAME = 2;
export const NFTA_SET_FLAGS = 3;
export const NFTA_SET_KEY_TYPE = 4;
export const NFTA_SET_KEY_LEN = 5;
export const NFTA_SET_DATA_TYPE = 6;
export const NFTA_SET_DATA_LEN = 7;
export const NFTA_SET_DESC = 9;
export const NFTA_SET_ID = 10;
export const NFTA_SET_USERDATA = 13;
export const NFTA_SET_OBJ_TYPE = 15;
export const NFTA_SET_DESC_CONCAT = 2;
export const NFTA_SET_FIELD_LEN = 1;
export const NFT_SET_ANONYMOUS = 0x1;
export const NFT_SET_CONSTANT = 0x2;
export const NFT_SET_INTERVAL = 0x4;
export const NFT_SET_MAP = 0x8;
export const NFT_SET_TIMEOUT = 0x10;
export const NFT_SET_EVAL = 0x20;
export const NFT_SET_OBJECT = 0x40;
export const NFT_SET_CONCAT = 0x80;
export const NFT_SET_ELEM_INTERVAL_END = 0x1;

// enum nft_set_elem_list_attributes, nft_set_elem_attributes
export const NFTA_SET_ELEM_LIST_TABLE = 1;
export const NFTA_SET_ELEM_LIST_SET = 2;
export const NFTA_SET_ELEM_LIST_ELEMENTS = 3;
export const NFTA_SET_ELEM_LIST_SET_ID = 4;
export const NFTA_SET_ELEM_KEY = 1;
export const NFTA_SET_ELEM_DATA = 2;
export const NFTA_SET_ELEM_FLAGS = 3;
export const NFTA_SET_ELEM_EXPIRATION = 5;
export const NFTA_SET_ELEM_USERDATA = 6;
export const NFTA_SET_ELEM_OBJREF = 9;
export const NFTA_SET_ELEM_KEY_END = 10;

// enum nft_data_attributes, nft_verdict_attributes
export const NFTA_DATA_VALUE = 1;
export const NFTA_DATA_VERDICT = 2;
export const NFTA_VERDICT_CODE = 1;
export const NFTA_VERDICT_CHAIN = 2;

// enum nft_object_attributes
export const NFTA_OBJ_TABLE = 1;
export const NFTA_OBJ_NAME = 2;
export const NFTA_OBJ_TYPE = 3;
export const NFTA_OBJ_DATA = 4;
export const NFTA_OBJ_USE = 5;
export const NFT_OBJECT_COUNTER = 1;

// enum nft_gen_attributes
export const NFTA_GEN_ID = 1;

// enum nft_registers: 0 is the verdict, 1 to 4 hold 16 bytes each; from 8 on, they are counted by parts of 4 bytes
export const NFT_REG_VERDICT = 0;
export const NFT_REG_1 = 1;
export const NFT_REG_2 = 2;
export const NFT_REG32_00 = 8;

// expressions: nft_payload, nft_cmp, nft_bitwise, nft_meta, nft_ct, nft_fib, nft_immediate, nft_lookup, nft_nat,
// nft_objref, nft_counter
export const NFTA_PAYLOAD_DREG = 1;
export const NFTA_PAYLOAD_BASE = 2;
export const NFTA_PAYLOAD_OFFSET = 3;
export const NFTA_PAYLOAD_LEN = 4;
export const NFTA_PAYLOAD_SREG = 5;
export const NFT_PAYLOAD_LL_HEADER = 0;
export const NFT_PAYLOAD_NETWORK_HEADER = 1;
export const NFT_PAYLOAD_TRANSPORT_HEADER = 2;
export const NFTA_CMP_SREG = 1;
export const NFTA_CMP_OP = 2;
export const NFTA_CMP_DATA = 3;
export const NFT_CMP_EQ = 0;
export const NFT_CMP_NEQ = 1;
export const NFT_CMP_LTE = 3;
export const NFT_CMP_GTE = 5;

export const NFTA_RANGE_SREG = 1;
export const NFTA_RANGE_OP = 2;
export const NFTA_RANGE_FROM_DATA = 3;
export const NFTA_RANGE_TO_DATA = 4;
export const NFT_RANGE_NEQ = 1;
export const NFTA_BITWISE_SREG = 1;
export const NFTA_BITWISE_DREG = 2;
export const NFTA_BITWISE_LEN = 3;
export const NFTA_BITWISE_MASK = 4;
export const NFTA_BITWISE_XOR = 5;
export const NFTA_BITWISE_OP = 6;
export const NFTA_META_DREG = 1;
export const NFTA_META_KEY = 2;
export const NFTA_META_SREG = 3;
export const NFT_META_MARK = 3;
export const NFT_META_IIF = 4;
export const NFT_META_OIF = 5;
export const NFT_META_IIFNAME = 6;
export const NFT_META_OIFNAME = 7;
export const NFT_META_NFTRACE = 12;
export const NFT_META_NFPROTO = 15;
export const NFT_META_L4PROTO = 16;
export const NFT_META_SDIF = 33;
export const NFT_META_SDIFNAME = 34;
export const NFTA_CT_DREG = 1;
export const NFTA_CT_KEY = 2;
export const NFTA_CT_SREG = 4;
export const NFT_CT_STATE = 0;
export const NFT_CT_STATUS = 2;
export const NFT_CT_MARK = 3;
export const NFTA_FIB_DREG = 1;
export const NFTA_FIB_RESULT = 2;
export const NFTA_FIB_FLAGS = 3;
export const NFT_FIB_RESULT_OIFNAME = 2;
export const NFT_FIB_RESULT_ADDRTYPE = 3;
export const NFTA_FIB_F_SADDR = 1;
export const NFTA_FIB_F_DADDR = 2;
export const NFTA_FIB_F_MARK = 4;
export const NFTA_FIB_F_IIF = 8;
export const NFTA_FIB_F_PRESENT = 32;
export const NFTA_IMMEDIATE_DREG = 1;
export const NFTA_IMMEDIATE_DATA = 2;
export const NFTA_LOOKUP_SET = 1;
export const NFTA_LOOKUP_SREG = 2;
export const NFTA_LOOKUP_DREG = 3;
export const NFTA_LOOKUP_SET_ID = 4;
export const NFTA_LOOKUP_FLAGS = 5;
export const NFT_LOOKUP_F_INV = 1;
export const NFTA_NAT_TYPE = 1;
export const NFTA_NAT_FAMILY = 2;
export const NFTA_NAT_REG_ADDR_MIN = 3;
export const NFTA_NAT_REG_ADDR_MAX = 4;
export const NFTA_NAT_REG_PROTO_MIN = 5;
export const NFTA_NAT_REG_PROTO_MAX = 6;
export const NFT_NAT_SNAT = 0;
export const NFT_NAT_DNAT = 1;
export const NFTA_OBJREF_IMM_TYPE = 1;
export const NFTA_OBJREF_SET_SREG = 3;
export const NFTA_OBJREF_SET_NAME = 4;
export const NFTA_COUNTER_BYTES = 1;
export const NFTA_COUNTER_PACKETS = 2;

// expressions that are only read: nft_byteorder, nft_redir, nft_numgen, nft_hash, and where others load what they find
export const NFTA_BYTEORDER_SREG = 1;
export const NFTA_BYTEORDER_DREG = 2;
export const NFTA_BYTEORDER_LEN = 4;
export const NFTA_BYTEORDER_SIZE = 5;
export const NFTA_REDIR_REG_PROTO_MIN = 1;
export const NFTA_REDIR_REG_PROTO_MAX = 2;
export const NFTA_HASH_DREG = 2;
/** That of nft_rt, nft_osf, nft_xfrm and nft_exthdr has the same number. */
export const NFTA_NG_DREG = 1;

// linux/netfilter/nf_tables_compat.h: matches and targets of xtables inside a rule
export const NFTA_MATCH_NAME = 1;
export const NFTA_MATCH_REV = 2;
export const NFTA_MATCH_INFO = 3;
export const NFTA_TARGET_NAME = 1;
export const NFTA_TARGET_REV = 2;
export const NFTA_TARGET_INFO = 3;

// enum nft_limit_attributes
export const NFTA_LIMIT_RATE = 1;
export const NFTA_LIMIT_UNIT = 2;
export const NFTA_LIMIT_BURST = 3;

// enum nft_trace_attributes
export const NFTA_TRACE_TABLE = 1;
export const NFTA_TRACE_CHAIN = 2;
export const NFTA_TRACE_RULE_HANDLE = 3;
export const NFTA_TRACE_VERDICT = 5;
export const NFTA_TRACE_ID = 6;
export const NFTA_TRACE_NETWORK_HEADER = 8;
export const NFTA_TRACE_TRANSPORT_HEADER = 9;
export const NFTA_TRACE_IIF = 10;
export const NFTA_TRACE_OIF = 12;
export const NFTA_TRACE_POLICY = 16;
