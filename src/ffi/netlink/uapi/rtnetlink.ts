/** Numbers of linux/rtnetlink.h, linux/if_addr.h and linux/fib_rules.h (Linux 6.18). */

export const RTM_NEWLINK = 16;
export const RTM_DELLINK = 17;
export const RTM_GETLINK = 18;
export const RTM_SETLINK = 19;
export const RTM_NEWADDR = 20;
export const RTM_DELADDR = 21;
export const RTM_GETADDR = 22;
export const RTM_NEWROUTE = 24;
export const RTM_DELROUTE = 25;
export const RTM_GETROUTE = 26;
export const RTM_NEWNEIGH = 28;
export const RTM_GETNEIGH = 30;
export const RTM_NEWRULE = 32;
export const RTM_DELRULE = 33;
export const RTM_GETRULE = 34;
export const RTM_NEWQDISC = 36;
export const RTM_DELQDISC = 37;
export const RTM_GETQDISC = 38;
export const RTM_NEWTCLASS = 40;
export const RTM_GETTCLASS = 42;
export const RTM_NEWTFILTER = 44;
export const RTM_DELTFILTER = 45;
export const RTM_GETTFILTER = 46;
export const RTM_NEWACTION = 48;
export const RTM_NEWNSID = 88;
export const RTM_GETNSID = 90;
export const RTM_NEWLINKPROP = 108;
export const RTM_DELLINKPROP = 109;

export const RTNLGRP_LINK = 1;
export const RTNLGRP_IPV4_IFADDR = 5;
export const RTNLGRP_IPV6_IFADDR = 9;
export const RTNLGRP_IPV6_ROUTE = 11;

// linux/net_namespace.h
export const NETNSA_NSID = 1;
export const NETNSA_FD = 3;
export const NETNSA_TARGET_NSID = 4;

// enum ifa: attributes of an address
export const IFA_ADDRESS = 1;
export const IFA_LOCAL = 2;
export const IFA_BROADCAST = 4;
export const IFA_CACHEINFO = 6;
export const IFA_FLAGS = 8;
export const IFA_F_NODAD = 0x02;
export const IFA_F_DADFAILED = 0x08;
export const IFA_F_TENTATIVE = 0x40;

// enum rtattr_type_t: attributes of a route
export const RTA_DST = 1;
export const RTA_SRC = 2;
export const RTA_IIF = 3;
export const RTA_OIF = 4;
export const RTA_GATEWAY = 5;
export const RTA_PRIORITY = 6;
export const RTA_PREFSRC = 7;
export const RTA_METRICS = 8;
export const RTA_NH_ID = 30;
export const RTA_MULTIPATH = 9;
export const RTA_TABLE = 15;
export const RTAX_MTU = 2;
export const RTAX_ADVMSS = 8;
export const RTA_CACHEINFO = 12;
export const RTA_MARK = 16;
export const RTA_IP_PROTO = 27;
export const RTA_SPORT = 28;
export const RTA_DPORT = 29;
export const RT_TABLE_UNSPEC = 0;
export const RT_TABLE_DEFAULT = 253;
export const RT_TABLE_MAIN = 254;
export const RT_TABLE_LOCAL = 255;
/** net/ip6_route.h of the kernel: the priority of the routes that come with addresses. */
export const IP6_RT_PRIO_ADDRCONF = 256;
export const RTPROT_KERNEL = 2;
export const RTPROT_BOOT = 3;
export const RTPROT_STATIC = 4;
export const RTPROT_RA = 9;
export const RTN_UNICAST = 1;
export const RTN_LOCAL = 2;
export const RTN_BLACKHOLE = 6;
export const RTN_UNREACHABLE = 7;
export const RTN_PROHIBIT = 8;
export const RT_SCOPE_UNIVERSE = 0;
export const RT_SCOPE_LINK = 253;
export const RT_SCOPE_HOST = 254;
export const RT_SCOPE_NOWHERE = 255;
export const RTM_F_CLONED = 0x200;
export const RTM_F_FIB_MATCH = 0x2000;
export const RTNH_F_DEAD = 1;
export const RTNH_F_ONLINK = 4;
export const RTNH_F_LINKDOWN = 16;

// attributes of queueing disciplines, classes and filters
export const TCA_KIND = 1;
export const TCA_OPTIONS = 2;
export const TCA_STAB = 8;
// attributes of a list of actions
export const TCA_ACT_TAB = 1;

// linux/fib_rules.h
export const FRA_DST = 1;
export const FRA_SRC = 2;
export const FRA_IIFNAME = 3;
export const FRA_PRIORITY = 6;
export const FRA_FWMARK = 10;
export const FRA_SUPPRESS_PREFIXLEN = 14;
export const FRA_TABLE = 15;
export const FRA_FWMASK = 16;
export const FRA_PROTOCOL = 21;
export const FRA_SPORT_RANGE = 23;
export const FR_ACT_TO_TBL = 1;
