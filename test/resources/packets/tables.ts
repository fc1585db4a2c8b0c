/**
 * Stories of what kinds of resources write into the tables of the kernel. tables.txt has them told.
 *
 * Longer than 300 lines: the specifications of every kind, and the steps with them.
 */
import type { TableStory } from "../../support/table-story.ts";

const owner = (number: number) => ({ network: "net", containerId: `ctr-${number}`, ifName: "eth0" });
const addresses = (number: number) => [`10.88.0.${number}/16`, `fd00:10:88::${number}/64`];
const next = { containerId: "next" };

const tcp = (hostPort: number, containerPort: number, hostIp?: string) => ({
  protocol: "tcp",
  hostPort,
  containerPort,
  hostIp,
});
const udp = (hostPort: number, containerPort: number, hostIp?: string) => ({
  ...tcp(hostPort, containerPort, hostIp),
  protocol: "udp",
});
const run = (first: number, count: number, one: typeof tcp = tcp, hostIp?: string) =>
  Array.from({ length: count }, (_, at) => one(first + at, first + at, hostIp));

const masquerade = (backend: string, list: TableStory["list"]): TableStory => ({
  title: `masquerade by ${backend}`,
  kind: "masquerade",
  base: { backend },
  specs: {
    one: { ...owner(1), addresses: addresses(1) },
    two: { ...owner(2), addresses: [...addresses(2), "10.88.1.2/16", "10.9.0.2/32", "fd09::2/128", "10.7.0.1/0"] },
    next: { ...owner(1), ...next, addresses: addresses(1) },
    eth1: { ...owner(2), ifName: "eth1", addresses: ["10.99.0.2/24"] },
    other: { ...owner(2), network: "other", addresses: ["10.100.0.2/12"] },
  },
  list,
  steps: [
    ["apply", "one"],
    ["apply", "two"],
    ["apply", "two"],
    ["apply", "eth1"],
    ["apply", "other"],
    ["apply", "next"],
    ["verify", "one"],
    ["repair", "one"],
    ["remove", "one"],
    {
      sh: backend === "nftables"
        ? "nft flush chain inet patchbay_masquerade postrouting"
        : "iptables -t nat -F POSTROUTING",
    },
    ["verify", "two"],
    ["repair", "two"],
    ["remove", "eth1"],
    ["verify", "two"],
    ["sweep", "ctr-2"],
    ["forget", "two"],
    ["sweep"],
    ["remove", "other"],
  ],
});

const firewall = (backend: string, list: TableStory["list"]): TableStory => {
  const ips = (number: number) => addresses(number).map((address) => address.replace(/\/.*/, ""));
  return {
    title: `firewall by ${backend}`,
    kind: "firewall",
    base: { backend, adminChain: "ADMIN", zone: "" },
    specs: {
      one: { ...owner(1), addresses: ips(1) },
      two: { ...owner(2), addresses: ips(2), ingress: { policy: "same-bridge", bridge: "br0" } },
      three: { ...owner(3), addresses: ips(3).slice(0, 1), ingress: { policy: "isolated", bridge: "br1" } },
      "one on br0": { ...owner(1), addresses: ips(1), ingress: { policy: "isolated", bridge: "br0" } },
      next: { ...owner(1), ...next, addresses: ips(1).slice(1) },
      known: {
        ...owner(4),
        addresses: ips(4).slice(0, 1),
        ingress: { policy: "isolated", bridge: "br2", isKnownToAll: true },
      },
      own: {
        ...owner(5),
        addresses: [],
        ingress: { policy: "same-bridge", bridge: "veth5", isOwn: true, isKnownToAll: true },
      },
    },
    list,
    byOwner: /next|forget|sweep/,
    steps: [
      ["apply", "one"],
      ["apply", "one"],
      ["apply", "two"],
      ["apply", "three"],
      ["verify", "two"],
      ["apply", "one on br0"],
      ["verify", "two"],
      ["apply", "next"],
      ["verify", "one"],
      ["remove", "one"],
      { sh: backend === "nftables" ? "nft flush chain inet patchbay_firewall forward" : "iptables -F FORWARD" },
      ["verify", "two"],
      ["repair", "two"],
      ["forget", "two"],
      ["sweep", "ctr-3"],
      ["remove", "three"],
      ["apply", "known"],
      ["apply", "own"],
      { sh: "nft flush set inet patchbay_firewall guarded" },
      ["verify", "own"],
      ["repair", "own"],
      ["verify", "own"],
      ["verify", "known"],
      ["remove", "own"],
      ["remove", "known"],
    ],
  };
};

const ports = {
  one: {
    ...owner(1),
    addresses: addresses(1),
    mappings: [
      tcp(8080, 80),
      tcp(8081, 81, "192.0.2.1"),
      tcp(8082, 82, "fd00::1"),
      udp(53, 5353, "::"),
      udp(53, 5354, "0.0.0.0"),
      { ...tcp(70, 71), protocol: "sctp" },
    ],
  },
  "one with other ports": {
    ...owner(1),
    addresses: addresses(1),
    mappings: [tcp(8080, 88), tcp(8083, 83), udp(53, 5353, "::"), tcp(8080, 88, "0.0.0.0")],
  },
  conditions: {
    ...owner(3),
    addresses: addresses(3),
    mappings: [tcp(8080, 80), udp(8080, 80), tcp(8090, 90)],
    conditions: {
      4: {
        protocol: { value: "tcp" },
        ports: { first: 8000, last: 8080 },
        source: { prefix: "192.0.2.0/24", not: true },
        inLink: { name: "eth+" },
        outLink: { name: "br0", not: true },
        mark: { value: 1, mask: 0xff },
      },
      6: {
        protocol: { value: "udp", not: true },
        destination: { prefix: "fd00::1/128" },
        mark: { value: 1, mask: 0xffffffff, not: true },
      },
    },
    masquerade: undefined,
  },
  "one in another network": {
    ...owner(1),
    network: "other",
    addresses: ["10.99.0.1/24"],
    mappings: [tcp(8080, 88)],
    masquerade: "all",
  },
};

const portsByNftables: TableStory = {
  title: "port mappings by nftables",
  kind: "port-mappings",
  base: { backend: "nftables", markBit: 13, masquerade: "own" },
  specs: {
    ...ports,
    "one in another network, to another port": {
      ...owner(1),
      network: "other",
      addresses: ["fd00:10:99::1/64"],
      mappings: [tcp(8082, 82 + 0x100, "fd00::1")],
    },
    runs: {
      ...owner(2),
      addresses: addresses(2).slice(0, 1),
      mappings: [
        ...run(9016, 4),
        ...run(9000, 16),
        ...run(7000, 15),
        ...run(9000, 17, udp),
        ...run(300, 16, tcp, "192.0.2.1"),
      ],
    },
    "parts of runs": {
      ...owner(2),
      addresses: addresses(2).slice(0, 1),
      mappings: [...run(9001, 16), tcp(9000, 90), ...run(7000, 16), ...run(310, 60)],
    },
    "another's port": { ...owner(4), addresses: addresses(4), mappings: [tcp(8080, 80)] },
    "a run with another's": { ...owner(4), addresses: addresses(4), mappings: run(8070, 20) },
    "another's in a run": { ...owner(4), addresses: addresses(4), mappings: [tcp(9003, 9003)] },
    "one of another's run": { ...owner(4), addresses: addresses(4), mappings: [tcp(315, 1, "192.0.2.1")] },
  },
  list: "nft",
  steps: [
    ["apply", "one"],
    ["verify", "one"],
    ["apply", "one"],
    ["apply", "one in another network, to another port"],
    ["apply", "runs"],
    ["verify", "runs"],
    ["apply", "conditions"],
    ["verify", "conditions"],
    ["apply", "another's port"],
    ["apply", "a run with another's"],
    ["apply", "another's in a run"],
    ["apply", "one of another's run"],
    ["verify", "another's in a run"],
    ["apply", "one with other ports"],
    ["apply", "one in another network"],
    ["verify", "one in another network"],
    ["apply", "parts of runs"],
    ["verify", "parts of runs"],
    ["verify", "runs"],
    ["remove", "conditions"],
    { sh: "nft flush chain inet patchbay_portmap mapped; nft flush chain inet patchbay_portmap output" },
    ["verify", "one with other ports"],
    ["repair", "one with other ports"],
    ["forget", "one in another network"],
    ["sweep", "ctr-2"],
    ["remove", "parts of runs"],
    ["remove", "runs"],
  ],
};

const portsByIptables: TableStory = {
  title: "port mappings by iptables",
  kind: "port-mappings",
  base: { backend: "iptables", markBit: 13, masquerade: "own" },
  specs: {
    ...ports,
    many: {
      ...owner(2),
      addresses: addresses(2).slice(0, 1),
      mappings: run(1, 16),
      masquerade: "all",
      setMarkChain: "THEIRS",
    },
    eth1: { ...owner(1), ifName: "eth1", addresses: ["10.88.0.9/16"], mappings: [tcp(8084, 84)] },
  },
  list: "iptables",
  byOwner: /eth1/,
  prepare: "iptables -t nat -A POSTROUTING -s 192.0.2.9 -j ACCEPT",
  steps: [
    ["apply", "many"],
    { sh: "iptables -t nat -N THEIRS" },
    ["apply", "many"],
    ["apply", "one"],
    ["verify", "one"],
    ["apply", "one"],
    ["apply", "conditions"],
    ["verify", "conditions"],
    ["apply", "one with other ports"],
    ["verify", "one"],
    ["apply", "eth1"],
    ["apply", "one in another network"],
    ["remove", "conditions"],
    ["remove", "eth1"],
    { sh: "iptables -t nat -F PREROUTING; ip6tables -t nat -F CNI-HOSTPORT-DNAT" },
    ["verify", "one with other ports"],
    ["repair", "one with other ports"],
    ["forget", "one in another network"],
    ["sweep", "ctr-2"],
    ["remove", "many"],
  ],
};

const localhost: TableStory = {
  title: "localhost access",
  kind: "localhost-access",
  base: {},
  specs: {
    one: { ...owner(1), link: "br0" },
    two: { ...owner(2), link: "br0" },
    "one by br1": { ...owner(1), link: "br1" },
    "three by br2": { ...owner(3), link: "br2", wasSet: true },
    "nobody's": { ...owner(4), link: "" },
  },
  list: "nft",
  prepare:
    "for I in br0 br1 br2; do ip link add $I type bridge; done; echo 1 > /proc/sys/net/ipv4/conf/br2/route_localnet",
  steps: [
    ["apply", "one"],
    // A container whose ADD is repeated keeps its access meanwhile: the setting is not switched off and on.
    { sh: "mount -o bind,ro /proc/sys /proc/sys" },
    ["apply", "one"],
    { sh: "umount /proc/sys" },
    ["apply", "two"],
    ["apply", "one by br1"],
    ["verify", "one"],
    ["verify", "one by br1"],
    ["verify", "nobody's"],
    ["apply", "three by br2"],
    ["verify", "three by br2"],
    { sh: "nft flush map ip patchbay_localhost users; echo 0 > /proc/sys/net/ipv4/conf/br1/route_localnet" },
    ["repair", "one by br1"],
    ["repair", "two"],
    ["repair", "three by br2"],
    ["remove", "two"],
    ["remove", "one by br1"],
    ["forget", "three by br2"],
    ["apply", "two"],
    ["sweep", "ctr-2"],
    ["sweep"],
  ],
};

const spoofing: TableStory = {
  title: "MAC check",
  kind: "mac-spoof-check",
  base: {},
  specs: {
    one: { containerId: "ctr-1", ifName: "eth0", hostVeth: "veth1", mac: "02:00:00:00:00:01" },
    two: { containerId: "ctr-2", ifName: "eth0", hostVeth: "veth2", mac: "02:00:00:00:00:02" },
    "one's link": { containerId: "ctr-3", ifName: "eth0", hostVeth: "veth1", mac: "02:00:00:00:00:03" },
    "two's": { containerId: "ctr-2", ifName: "eth0", hostVeth: "", mac: "" },
  },
  list: "nft",
  needs: "nftables bridge family",
  prepare: "ip link add veth1 type bridge",
  steps: [
    ["apply", "one"],
    ["apply", "two"],
    ["verify", "two"],
    ["apply", "one's link"],
    ["verify", "one"],
    {
      sh: "nft flush set bridge patchbay_macspoofchk allowed; nft flush chain bridge patchbay_macspoofchk prerouting",
    },
    ["repair", "two"],
    ["repair", "one's link"],
    ["remove", "two's"],
    ["apply", "two"],
    ["sweep"],
    ["remove", "one's link"],
    ["repair", "two"],
    ["sweep"],
  ],
};

const isolation: TableStory = {
  title: "isolated ports",
  kind: "port-isolation",
  base: {},
  specs: {
    one: { ...owner(1), link: "br0" },
    two: { ...owner(2), link: "br0" },
    "one's again": { ...owner(1), link: "br0.7" },
    other: { ...owner(3), network: "other", link: "br1" },
  },
  list: "nft",
  prepare: "for link in br0 br0.7 br1; do ip link add $link type bridge; done",
  steps: [
    ["apply", "one"],
    ["apply", "two"],
    ["apply", "two"],
    ["verify", "two"],
    ["apply", "other"],
    { sh: "nft flush chain netdev patchbay_isolation on_br0" },
    ["verify", "one"],
    ["repair", "one"],
    ["verify", "one"],
    ["apply", "one's again"],
    ["verify", "one"],
    ["remove", "two"],
    ["sweep", "ctr-1"],
    ["forget", "one's again"],
    ["sweep"],
    ["apply", "one"],
    ["apply", "one's again"],
    { sh: "nft flush ruleset" },
    ["verify", "other"],
    ["repair", "other"],
    ["remove", "one"],
    ["remove", "other"],
  ],
};

export const tableStories: readonly TableStory[] = [
  masquerade("nftables", "nft"),
  masquerade("iptables", "iptables"),
  firewall("nftables", "nft"),
  firewall("iptables", "iptables"),
  portsByNftables,
  portsByIptables,
  localhost,
  spoofing,
  isolation,
];
