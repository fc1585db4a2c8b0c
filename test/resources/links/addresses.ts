/** Stories of what resources make of addresses, routes, rules and lent links. links.txt has them told. */
import type { TableStory } from "../../support/table-story.ts";
import { mac, veth } from "./links.ts";

const addressing = (number: number, change: object) => ({
  kind: "addressing",
  ifName: `eth${number}`,
  addresses: [],
  routes: [],
  sysctls: {},
  detectDuplicates: false,
  ...change,
});
const both = [{ address: "10.1.0.2/24", gateway: "10.1.0.1" }, { address: "fd00::2/64", gateway: "fd00::1" }];

export const addresses: TableStory = {
  title: "addresses and routes",
  list: "links",
  specs: {
    link: veth(1, { refusesRedirects: true }),
    up: { kind: "host-end-up", ifName: "veth1" },
    "gateway's side": { kind: "gateway-side", ifName: "veth1", addresses: both },
    "of version 6 alone": {
      kind: "gateway-side",
      ifName: "veth2",
      addresses: [{ address: "fd07::2/64", gateway: "fd07::1" }],
    },
    "point to point": addressing(1, {
      addresses: both,
      routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }],
      sysctls: { "ipv4/conf/eth1/arp_notify": "1", "ipv4/conf/eth1/nonesuch": "1" },
      pointToPoint: true,
    }),
    announcement: { kind: "announcement", ifName: "eth1", mac: mac(5) },
    "second link": veth(2),
    "second up": { kind: "host-end-up", ifName: "veth2" },
    plain: addressing(2, {
      addresses: [{ address: "10.2.0.2/24", gateway: "10.2.0.1" }, { address: "10.2.0.3/24", gateway: "10.2.0.9" }],
      routes: [
        { dst: "192.0.2.0/24" },
        { dst: "192.0.3.0/24", gw: "10.2.0.7", priority: 5, mtu: 1300, advmss: 1200 },
        { dst: "192.0.4.0/24", table: 77 },
        { dst: "192.0.5.0/24", gw: "10.2.0.7", scope: 0 },
      ],
      protocol: 17,
    }),
    "twice the same": addressing(2, { addresses: [{ address: "10.2.0.2/24" }] }),
    unreachable: addressing(2, { routes: [{ dst: "192.0.9.0/24", gw: "10.9.0.1" }] }),
    nonsense: addressing(2, { addresses: [{ address: "10.2.0.300/24" }] }),
    nowhere: addressing(9, { addresses: both }),
    loopback: { kind: "loopback-up" },
  },
  steps: [
    ["apply", "loopback"],
    ["verify", "loopback"],
    ["remove", "loopback"],
    ["verify", "loopback"],
    { sh: "ip -n c1 address add 192.0.2.99/32 dev lo" },
    ["apply", "loopback"],
    {
      sh:
        "ip -n c1 address del 192.0.2.99/32 dev lo; ip netns exec c1 sysctl -qw net.ipv6.conf.default.disable_ipv6=1",
    },
    ["apply", "link"],
    ["apply", "up"],
    ["apply", "gateway's side"],
    ["verify", "gateway's side"],
    ["judge", "point to point"],
    ["apply", "point to point"],
    ["verify", "point to point"],
    ["apply", "announcement"],
    ["apply", "second link"],
    ["apply", "second up"],
    ["apply", "of version 6 alone"],
    ["apply", "plain"],
    ["verify", "plain"],
    ["apply", "twice the same"],
    ["judge", "unreachable"],
    ["apply", "unreachable"],
    ["judge", "nonsense"],
    ["apply", "nowhere"],
    { sh: "ip -n c1 link set eth1 down; ip -n c1 address del 10.2.0.3/24 dev eth2; ip -n c1 route del 192.0.3.0/24" },
    ["verify", "point to point"],
    ["verify", "plain"],
    ["repair", "plain"],
    ["repair", "point to point"],
    ["verify", "point to point"],
    // It begins with the byte that link-local addresses of IPv6 begin with.
    { sh: "ip -n c1 address flush dev eth2; ip -n c1 address add 254.9.0.2/24 dev eth2" },
    ["repair", "plain"],
    { sh: "ip address flush dev veth1; ip route flush dev veth1; ip -6 route flush dev veth1" },
    ["verify", "gateway's side"],
    ["repair", "gateway's side"],
    { sh: "ip link add br9 type bridge; ip link set veth1 master br9" },
    ["verify", "link"],
    ["repair", "link"],
    ["verify", "link"],
    ["remove", "link"],
    ["verify", "gateway's side"],
    ["apply", "gateway's side"],
  ],
};

export const routing: TableStory = {
  title: "routing by source",
  list: "links",
  specs: {
    rule: { kind: "source-rule", source: "10.1.0.2", table: 100, priority: 50 },
    rule6: { kind: "source-rule", source: "fd00::2", table: 101, priority: 51 },
    "unknown table": { kind: "source-rule", source: "10.1.0.2" },
  },
  prepare: `ip link add eth1 address ${mac(1)} netns c1 type veth peer name h1
    ip netns exec c1 sysctl -qw net.ipv6.conf.eth1.disable_ipv6=0; ip link set h1 up; ip -n c1 link set eth1 up
    ip -n c1 address add 10.1.0.2/24 dev eth1; ip -n c1 address add fd00::2/64 dev eth1 nodad`,
  steps: [
    ["apply", "rule"],
    ["apply", "rule"],
    ["apply", "rule6"],
    ["verify", "rule"],
    { sh: "ip -n c1 rule add from 10.1.0.2 lookup 100 priority 77; ip -n c1 rule del from 10.1.0.2 priority 50" },
    ["verify", "rule"],
    ["verify", "unknown table"],
    ["repair", "rule"],
    ["repair", "rule6"],
    ["remove", "rule"],
    ["remove", "unknown table"],
    ["verify", "unknown table"],
    ["remove", "rule6"],
    ["remove", "rule6"],
  ],
};

const owner = { network: "net", containerId: "ctr-1", ifName: "eth0" };
const settings = { group: 0, txQueueLength: 1000, flags: 0, limits: {} };
const found = {
  name: "d0",
  index: 20,
  kind: "veth",
  mac: mac(1),
  mtu: 1400,
  alias: "its own",
  altNames: [],
  up: true,
};
const device = { ...found, settings };
const lent = { kind: "lent-link", owner, netnsPath: "/var/run/netns/c1", index: 20 };

export const lending: TableStory = {
  title: "lending a link",
  list: "links",
  specs: {
    lent: { ...lent, device },
    "known by its name": { ...lent, index: undefined, known: { name: "d0", mac: "" } },
    "known by its address": { ...lent, index: undefined, known: { name: "", mac: mac(1) } },
    "as another name": { ...lent, owner: { ...owner, ifName: "eth9" }, device },
    "not there": { ...lent, device: { ...device, name: "d9", index: 99 } },
  },
  prepare: `ip link add d0 index 20 address ${mac(1)} mtu 1400 type veth peer name d1 index 11
    ip link set d0 up alias "its own"; ip -n c1 link add taken0 type bridge`,
  steps: [
    ["judge", "lent"],
    ["apply", "not there"],
    ["apply", "lent"],
    ["verify", "lent"],
    ["verify", "as another name"],
    ["undo", "lent"],
    ["apply", "lent"],
    { sh: "ip -n c1 link set eth0 down; ip -n c1 link set eth0 name spoilt0 mtu 1300 address 02:00:00:00:00:08" },
    ["verify", "lent"],
    ["repair", "lent"],
    ["verify", "lent"],
    ["remove", "lent"],
    ["verify", "lent"],
    ["repair", "lent"],
    ["remove", "lent"],
    { sh: "ip link set d0 alias ''" },
    ["apply", "lent"],
    { sh: "ip -n c1 link set eth0 alias spoilt" },
    ["verify", "lent"],
    ["remove", "known by its name"],
    ["repair", "lent"],
    ["remove", "known by its name"],
    ["apply", "lent"],
    { sh: "ip link add d0 type bridge" },
    ["remove", "known by its address"],
    { sh: "ip link del d0" },
    ["remove", "known by its address"],
    ["remove", "lent"],
  ],
};
