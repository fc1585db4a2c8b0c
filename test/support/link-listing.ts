/** Links of the host and of container c1 as ip(8) and tc(8) list them, with what no two runs have in common left out. */
import type { Ruleset } from "./ruleset.ts";

/** Sysctls of a link that resources set; listed where they are not the namespace's default. */
const SYSCTLS = [
  "ipv4/conf/*/accept_redirects",
  "ipv4/conf/*/arp_notify",
  "ipv6/conf/*/accept_ra",
  "ipv6/conf/*/keep_addr_on_down",
  "ipv4/ip_forward",
  "ipv6/conf/all/forwarding",
];

/** With few processes: it runs after every step. */
const look = (name: string) => `
  printf "link\\naddress\\n" | ip -j -d -b - | sed "1i== ${name} link
    2i== ${name} address"
  for F in -4 -6; do printf "route show table all\\nrule\\n" | ip $F -b - | sed "1i== ${name} routes$F"; done
  echo "== ${name} sysctls"; cd /proc/sys/net; grep -H "" ${SYSCTLS.join(" ")}
`;

/** Scripts; what they print is for `linksOf`. */
export const listLinks = `(${look("host")}); ip netns exec c1 sh -ec '${look("c1")}'`;
export const listTraffic = `${listLinks}
  echo "== host tc"
  for I in $(ls /sys/class/net); do
    printf "%s show dev $I\\n" qdisc class filter | tc -b - | sed "s/^/$I /"
    tc filter show dev $I ingress | sed "s/^/$I /"
  done`;

interface Listed {
  ifname: string;
  flags: string[];
  mtu: number;
  master?: string;
  link?: string | null;
  link_netnsid?: number;
  txqlen?: number;
  address?: string;
  ifalias?: string;
  linkinfo?: Record<string, unknown> & { info_kind?: string };
}

export function linksOf(listing: string): Ruleset {
  const found = new Map<string, string[]>();
  for (const [, name, text] of listing.replace(/\bdev\d+\b/g, "dev…").matchAll(/^== (.*)\n((?:(?!==).*\n?)*)/gm)) {
    const [namespace, what] = name!.split(" ") as [string, string];
    const lines = text!.trim().split("\n");
    if (what === "link") {
      for (const link of JSON.parse(text!) as Listed[]) found.set(`${namespace} ${link.ifname}`, describe(link));
    } else if (what === "address") {
      for (const { ifname, addr_info } of JSON.parse(text!)) {
        found.get(`${namespace} ${ifname}`)!.push(...addressesOf(addr_info));
      }
    } else if (what === "sysctls") addSysctls(found, namespace, lines);
    else if (what === "tc") addTraffic(found, lines);
    else found.set(`${namespace} ${what}`, lines.map(withoutLuck).filter((line) => line !== ""));
  }
  return found;
}

/** MAC addresses that no test has chosen are left out; the tests' begin with zeros. */
function describe({ flags, mtu, master, link, link_netnsid, txqlen, address, ifalias, linkinfo }: Listed): string[] {
  const { info_kind = "", info_data = {}, info_slave_data = {} } = linkinfo as Record<string, never> ?? {};
  const { hairpin, isolated } = info_slave_data as Record<string, unknown>;
  const values = { ...info_data as object, hairpin, isolated } as Record<string, unknown>;
  const settings = [
    "mode",
    "id",
    "vlan_filtering",
    "table",
    "type",
    "multi_queue",
    "persist",
    "user",
    "group",
    "hairpin",
    "isolated",
  ]
    .filter((key) => values[key] !== undefined && values[key] !== false && values[key] !== 0)
    .map((key) => `${key} ${values[key]}`);
  const up = ["UP", "PROMISC", "ALLMULTI"].filter((flag) => flags.includes(flag));
  return [
    [info_kind, ...settings, ...up, `mtu ${mtu}`, `qlen ${txqlen ?? 0}`].join(" ").trim(),
    ...address?.startsWith("02:00:00") ? [`address ${address}`] : [],
    ...master === undefined ? [] : [`master ${master}`],
    ...link_netnsid !== undefined ? ["other end elsewhere"] : link ? [`link ${link}`] : [],
    ...ifalias === undefined ? [] : [`alias ${ifalias}`],
  ];
}

function addressesOf(all: { local: string; prefixlen: number; nodad?: boolean; scope: string }[]): string[] {
  return all.filter(({ local, scope }) => local !== undefined && scope !== "link")
    .map(({ local, prefixlen, nodad }) => `${local}/${prefixlen}${nodad ? " nodad" : ""}`);
}

function addSysctls(found: Map<string, string[]>, namespace: string, lines: string[]): void {
  const values = new Map(lines.map((line) => line.split(":") as [string, string]));
  for (const [path, value] of values) {
    const [, family, link, key] = /^(ipv[46])\/conf\/(.*)\/(\w+)$/.exec(path) ?? [];
    const object = found.get(`${namespace} ${link}`);
    if (object === undefined) {
      if (link !== "default") found.set(`${namespace} ${path}`, [value]);
    } else if (value !== values.get(`${family}/conf/default/${key}`)) object.push(`${family} ${key} ${value}`);
  }
}

/** Without numbers that the kernel chooses, and qdiscs not in the order of these. */
function addTraffic(found: Map<string, string[]>, lines: string[]): void {
  const told = lines.map(withoutNumbers), isQdisc = (line: string) => line.includes(" qdisc ");
  for (const line of [...told.filter(isQdisc).sort(), ...told.filter((each) => !isQdisc(each))]) {
    const [, link, text = ""] = /^(\S+) (.*)$/.exec(line) ?? [];
    if (/noqueue|qdisc (pfifo_fast|mq|fq_codel)|chain 0 ?$|ht divisor|^$|index \d/.test(text)) continue;
    found.get(`host ${link}`)?.push(text);
  }
}

function withoutNumbers(line: string): string {
  const known = line.replace(
    / (refcnt|direct_packets_stat) \d+| order \d+ key .* bkt \w+| chain 0 fh \S+| not_in_hw/g,
    "",
  );
  return known.replace(/\b(?!ffff)[89a-f][0-9a-f]{3}:/, "…").replace(/\s+/g, " ").trimEnd();
}

/** Without what the kernel makes by itself, and what comes some time later. */
function withoutLuck(line: string): string {
  if (/ table local|^(fe80|ff00|multicast|local|broadcast|anycast)/.test(line)) return "";
  return line.replace(/ (linkdown|pref medium|expires \S+)/g, "").trim();
}
