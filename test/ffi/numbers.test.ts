/** Numbers that the sources name as C does, and sizes and places of structures, are those of the kernel's headers. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { needs } from "../support/needs.ts";

needs("gcc");

const root = resolve(import.meta.dir, "../..");

const headers = `
  dirent.h errno.h fcntl.h limits.h netinet/in.h poll.h sched.h signal.h spawn.h stddef.h sys/epoll.h sys/file.h sys/inotify.h sys/ioctl.h
  sys/mman.h sys/prctl.h sys/signalfd.h sys/socket.h sys/stat.h sys/syscall.h sys/timerfd.h sys/wait.h termios.h time.h unistd.h
  linux/capability.h linux/fib_rules.h linux/filter.h linux/if.h linux/if_addr.h linux/if_bridge.h linux/if_ether.h
  linux/if_link.h linux/if_packet.h linux/if_tun.h linux/magic.h linux/netfilter.h linux/netfilter/nf_conntrack_common.h
  linux/netfilter/nf_nat.h linux/netfilter/nf_tables.h linux/netfilter/nf_tables_compat.h linux/netfilter/nfnetlink.h
  linux/netfilter/nfnetlink_conntrack.h linux/netfilter/xt_addrtype.h linux/netfilter/xt_conntrack.h
  linux/netfilter/xt_multiport.h linux/netfilter/xt_sctp.h linux/netfilter_ipv4/ip_tables.h linux/netfilter_ipv6/ip6_tables.h linux/netlink.h linux/nsfs.h linux/pkt_cls.h
  linux/pkt_sched.h linux/ethtool.h linux/sockios.h linux/inet_diag.h linux/sock_diag.h linux/net_namespace.h linux/rtnetlink.h linux/sockios.h linux/tc_act/tc_mirred.h linux/un.h linux/veth.h
`;

/** What C calls it otherwise. A name that several files have comes with its file's. */
const inC: Record<string, string> = {
  TC_H_FOR_INGRESS: "TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)",
  ADDRESS_BYTES: "sizeof(struct sockaddr_ll)",
  BEHIND_HEADER: "BPF_IND - BPF_ABS",
  CAP_NET_ADMIN: "1 << CAP_NET_ADMIN",
  CAP_SYS_ADMIN: "1 << CAP_SYS_ADMIN",
  CHECKED_AT: "offsetof(struct xt_sctp_info, flags)",
  CHUNK_FLAGS_AT: "offsetof(struct xt_sctp_info, flag_info)",
  CONTROL_HEADER_BYTES: "sizeof(struct cmsghdr)",
  DESTINATION_AT: "offsetof(struct xt_addrtype_info_v1, dest)",
  FLAGS_AT: "offsetof(struct xt_conntrack_mtinfo3, match_flags)",
  "netlink/nftables/message.ts HEADER_BYTES": "sizeof(struct nfgenmsg)",
  "netlink/conntrack/connection.ts HEADER_BYTES": "sizeof(struct nfgenmsg)",
  "netlink/route/address.ts HEADER_BYTES": "sizeof(struct ifaddrmsg)",
  "netlink/route/rule.ts HEADER_BYTES": "sizeof(struct fib_rule_hdr)",
  "netlink/wire.ts HEADER_BYTES": "sizeof(struct nlmsghdr)",
  HOP_HEADER_BYTES: "sizeof(struct rtnexthop)",
  HTB_VERSION: "TC_HTB_PROTOVER",
  IF_ANY_BIT: "BPF_JMP | BPF_JSET | BPF_K",
  IF_EQUAL: "BPF_JMP | BPF_JEQ | BPF_K",
  IP_HEADER: "SKF_NET_OFF",
  KEY_BYTES: "sizeof(struct tc_u32_key)",
  "netlink/route/link.ts LONGEST_NAME": "IFNAMSIZ - 1",
  "netlink/nftables/table.ts LONGEST_NAME": "NFT_CHAIN_MAXNAMELEN - 1",
  LONGEST_PATH: "sizeof(((struct sockaddr_un *)0)->sun_path) - 1",
  LINK_HEADER: "SKF_LL_OFF",
  LOAD_HEADER_LENGTH: "BPF_LDX | BPF_B | BPF_MSH",
  MAC_AT: "offsetof(struct sockaddr_ll, sll_addr)",
  MAC_BYTES: "ETH_ALEN",
  MAX_U32: "UINT_MAX",
  MIRRED_BYTES: "sizeof(struct tc_mirred)",
  MULTIPORT_LIMIT: "XT_MULTI_PORTS",
  NLA_TYPE_MASK: "(unsigned short) NLA_TYPE_MASK",
  OUTGOING: "PACKET_OUTGOING",
  PACKET_TYPE: "SKF_AD_OFF + SKF_AD_PKTTYPE",
  RATE_BYTES: "sizeof(struct tc_ratespec)",
  RETURN: "BPF_RET | BPF_K",
  ROUTE_HEADER_BYTES: "sizeof(struct rtmsg)",
  SELECTOR_BYTES: "sizeof(struct tc_u32_sel)",
  SIGINFO_BYTES: "sizeof(struct signalfd_siginfo)",
  SOURCE_AT: "offsetof(struct sockaddr_in6, sin6_addr)",
  SOURCE_AT_V4: "offsetof(struct sockaddr_in, sin_addr)",
  STATES_AT: "offsetof(struct xt_conntrack_mtinfo3, state_mask)",
};

/** Numbers in uapi/ that the headers of Debian 12 do not have: the kernel is newer, or keeps them to itself. */
const NOT_IN_HEADERS = [
  "CTA_FILTER_F_IP_DST",
  "CTA_FILTER_F_IP_SRC",
  "CTA_FILTER_F_PROTO_DST_PORT",
  "CTA_FILTER_F_PROTO_NUM",
  "IFLA_GRO_IPV4_MAX_SIZE",
  "IFLA_GSO_IPV4_MAX_SIZE",
  "IFLA_MACVLAN_BC_CUTOFF",
  "IFLA_NETNS_IMMUTABLE",
  "IP6_RT_PRIO_ADDRCONF",
  "NF_BR_PRE_ROUTING",
  "TCP_CLOSE",
  "TCP_LISTEN",
  "TC_H_FOR_EGRESS",
];

interface Named {
  file: string;
  name: string;
  /** As C writes it. */
  number: string;
}

/** In declarations such as `const A = 1, B = 1 << 2;` and members such as `A: 3`. */
function namedIn(file: string): Named[] {
  const code = readFileSync(join(root, file), "utf8").replace(/\/\*[^]*?\*\/|\/\/.*/g, "");
  const declared =
    /\b([A-Z][A-Z0-9]+_?[A-Z0-9_]*(?:_[a-z_]+)?)(?: =|:) (-?(?:0[xo][0-9a-f]+|[0-9_]+)(?: (?:<<|\+) [0-9]+)?)(?=n?[,;\s])/g;
  return [...code.matchAll(declared)].map(([, name, number]) => {
    return { file, name: name!, number: number!.replace("0o", "0").replaceAll("_", "") };
  });
}

/** What gcc says of the numbers, all at once. A name that C does not have is the sources' own. */
function judge(all: readonly Named[]): { wrong: string[]; undeclared: string[] } {
  const asserted = all.map(({ file, name, number }) => {
    const theirs = inC[`${file.replace("src/ffi/", "")} ${name}`] ?? inC[name] ?? name;
    return `_Static_assert((unsigned) (${theirs}) == (unsigned) (${number}), "${file}: ${name} = ${number}");`;
  });
  const lines = [
    "#define _GNU_SOURCE",
    ...headers.match(/\S+/g)!.map((header) => `#include <${header}>`),
    ...asserted,
  ];
  const { stderr } = Bun.spawnSync(["x86_64-linux-gnu-gcc", "-fsyntax-only", "-x", "c", "-"], {
    stdin: new TextEncoder().encode(lines.join("\n")),
    env: { ...process.env, LC_ALL: "C" },
  });
  const said = (form: RegExp) => [...stderr.toString().matchAll(form)].map(([, what]) => what!);
  return { wrong: said(/static assertion failed: "(.*)"/g), undeclared: said(/error: '(\w+)' undeclared/g) };
}

test("each number is the one that C gives the name", () => {
  const all = [...new Bun.Glob("src/ffi/**/*.ts").scanSync(root)].sort().flatMap(namedIn);
  const { wrong, undeclared } = judge(all);
  expect(wrong).toEqual([]);
  const ofKernel = new Set(all.filter(({ file }) => file.includes("/uapi/")).map(({ name }) => name));
  expect(undeclared.filter((name) => ofKernel.has(name)).sort()).toEqual(NOT_IN_HEADERS);
});
