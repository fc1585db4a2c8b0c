/**
 * Numbers of linux/pkt_sched.h, linux/pkt_cls.h and linux/tc_act/tc_mirred.h (Linux 6.18), and protocols of
 * linux/if_ether.h.
 */

export const TC_H_ROOT = 0xffffffff;
/** TC_H_CLSACT, too. */
export const TC_H_INGRESS = 0xfffffff1;
/** TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS) */
export const TC_H_FOR_INGRESS = 0xfffffff2;
/** TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS) */
export const TC_H_FOR_EGRESS = 0xfffffff3;

// enum: attributes of tbf
export const TCA_TBF_PARMS = 1;
export const TCA_TBF_RATE64 = 4;

// enum: attributes of htb and its classes
export const TCA_HTB_PARMS = 1;
export const TCA_HTB_INIT = 2;
export const TCA_HTB_RATE64 = 6;
export const TCA_HTB_CEIL64 = 7;
/** TC_HTB_PROTOVER */
export const HTB_VERSION = 3;

export const ETH_P_ALL = 0x0003;
export const ETH_P_IP = 0x0800;
export const ETH_P_IPV6 = 0x86dd;
export const ETH_P_8021Q = 0x8100;
export const ETH_P_8021AD = 0x88a8;

// attributes of an action
export const TCA_ACT_KIND = 1;
export const TCA_ACT_OPTIONS = 2;
/** The next filter decides. */
export const TC_ACT_UNSPEC = 0xffffffff;
export const TC_ACT_SHOT = 2;
export const TC_ACT_STOLEN = 4;

// enum: attributes of bpf
export const TCA_BPF_OPS_LEN = 4;
export const TCA_BPF_OPS = 5;
export const TCA_BPF_FLAGS = 8;
export const TCA_BPF_FLAG_ACT_DIRECT = 1;

// enum: attributes of u32
export const TCA_U32_CLASSID = 1;
export const TCA_U32_SEL = 5;
export const TCA_U32_ACT = 7;
export const TC_U32_TERMINAL = 1;

// enum: attributes of mirred
export const TCA_MIRRED_PARMS = 2;
export const TCA_EGRESS_REDIR = 1;
