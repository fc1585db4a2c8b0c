/**
 * Cases for both implementations: configurations of loopback, bridge, host-local and static, and the calls made with them.
 * The Go plugins define what is expected.
 *
 * Longer than 300 lines: a table, one row a case.
 */
import type { Feature } from "../support/kernel-features.ts";
import { firewalls } from "./firewall-cases.ts";
import { portmaps } from "./portmap-cases.ts";
import { hostDevices } from "./host-device-cases.ts";
import { masterLinks } from "./master-cases.ts";
import { ptps, sbrs, vrfs } from "./routing-cases.ts";
import { bandwidths, tunings } from "./chained-cases.ts";

/** `ADD c1` and the like, or `! command` for a shell command on the machine that must succeed. */
export type StepText = `${string} c${number}` | `! ${string}`;

export interface Step {
  step: StepText;
  conf?: Record<string, unknown>;
  args?: string;
  env?: Record<string, string | undefined>;
}

export interface Case {
  name: string;
  plugin: string;
  /** An object, or the exact text of stdin. */
  conf: Record<string, unknown> | string;
  args?: string;
  env?: Record<string, string | undefined>;
  before?: string;
  /** ADD, CHECK and two times DEL of one container, unless said otherwise. */
  steps?: (StepText | Step)[];
  /** MACs that were asked for, which must come out as they are. */
  macs?: string[];
  needs?: Feature;
}

const VERSIONS = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0"];

const v4 = { type: "host-local", subnet: "10.20.0.0/24" };
const v6 = { type: "host-local", ranges: [[{ subnet: "fd20::/64" }]] };
const dual = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
const defaultRoutes = { routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }] };

const loopbackBase = { cniVersion: "1.0.0", name: "lonet", type: "loopback" };

const loopback: Case[] = [
  ...VERSIONS.map((cniVersion) => ({
    name: `loopback, ${cniVersion}`,
    plugin: "loopback",
    conf: { ...loopbackBase, cniVersion },
  })),
  {
    name: "loopback called with lo as its interface",
    plugin: "loopback",
    conf: loopbackBase,
    env: { CNI_IFNAME: "lo" },
  },
  {
    name: "loopback passes prevResult through",
    plugin: "loopback",
    conf: {
      ...loopbackBase,
      prevResult: {
        cniVersion: "1.0.0",
        interfaces: [{ name: "eth0", sandbox: "/var/run/netns/c1" }],
        ips: [{ address: "10.0.0.2/24", interface: 0 }],
      },
    },
  },
  {
    name: "loopback with a foreign address on lo",
    plugin: "loopback",
    conf: loopbackBase,
    before: "ip -n c1 address add 192.0.2.1/32 dev lo",
  },
  {
    name: "loopback, CHECK after lo went down",
    plugin: "loopback",
    conf: loopbackBase,
    steps: ["ADD c1", "! ip -n c1 link set lo down", "CHECK c1", "DEL c1"],
  },
  {
    name: "loopback, DEL without a namespace",
    plugin: "loopback",
    conf: loopbackBase,
    steps: ["ADD c1", { step: "DEL c1", env: { CNI_NETNS: undefined } }],
  },
  {
    name: "loopback, DEL after the namespace went",
    plugin: "loopback",
    conf: loopbackBase,
    steps: ["ADD c1", { step: "DEL c1", env: { CNI_NETNS: "/var/run/netns/gone" } }],
  },
];

function bridge(name: string, conf: Record<string, unknown>, rest: Partial<Case> = {}): Case {
  return {
    name: `bridge, ${name}`,
    plugin: "bridge",
    conf: { cniVersion: "1.0.0", name: "brnet", type: "bridge", bridge: "br0", ...conf },
    ...rest,
  };
}

const MAC = "c2:11:22:33:44:55";
const OTHER_MAC = "c2:66:77:88:99:aa";
const requestedMacs = { macs: [MAC, OTHER_MAC] };
const conflictingBridge = "ip link add br0 type bridge; ip address add 10.99.0.1/24 dev br0; ip link set br0 up";

const bridges: Case[] = [
  ...VERSIONS.map((cniVersion) => bridge(`host-local, ${cniVersion}`, { cniVersion, isGateway: true, ipam: v4 })),
  ...["0.2.0", "0.4.0", "1.0.0"].map((cniVersion) =>
    bridge(`dual stack with default routes, ${cniVersion}`, {
      cniVersion,
      isGateway: true,
      ipam: { ...dual, ...defaultRoutes },
    })
  ),
  ...["0.2.0", "0.4.0", "1.0.0"].map((cniVersion) => bridge(`layer 2 only, ${cniVersion}`, { cniVersion })),
  bridge("layer 2 only with an empty ipam object", { ipam: {} }),
  bridge("default bridge name", { bridge: undefined, ipam: v4, isGateway: true }),
  bridge("neither gateway nor masquerade", { ipam: v4 }),
  bridge("isDefaultGateway", { isDefaultGateway: true, ipam: v4 }),
  bridge("isDefaultGateway, dual stack", { isDefaultGateway: true, ipam: dual }),
  bridge("isDefaultGateway with a default route that has a gateway", {
    isDefaultGateway: true,
    ipam: { ...v4, routes: [{ dst: "0.0.0.0/0", gw: "10.20.0.9" }] },
  }),
  bridge("isDefaultGateway with a default route without gateway", {
    isDefaultGateway: true,
    ipam: { ...v4, routes: [{ dst: "0.0.0.0/0" }] },
  }, { steps: ["ADD c1", "DEL c1"] }),
  bridge("IPv6 gateway", { isGateway: true, ipam: v6 }),
  bridge("gateway given by the range", {
    isGateway: true,
    ipam: { type: "host-local", subnet: "10.20.0.0/24", gateway: "10.20.0.200" },
  }),
  bridge("routes", {
    isGateway: true,
    ipam: { ...v4, routes: [{ dst: "192.168.0.0/16" }, { dst: "172.16.0.0/12", gw: "10.20.0.7" }] },
  }),
  bridge("a route with host bits", { ipam: { ...v4, routes: [{ dst: "192.168.1.1/16" }] } }, {
    steps: ["ADD c1", "DEL c1"],
  }),
  bridge(
    "the same route twice",
    { ipam: { ...v4, routes: [{ dst: "192.168.0.0/16" }, { dst: "192.168.0.0/16" }] } },
    {
      steps: ["ADD c1", "DEL c1"],
    },
  ),
  bridge("address conflict on the bridge", { isGateway: true, ipam: v4 }, {
    before: conflictingBridge,
    steps: ["ADD c1", "DEL c1"],
  }),
  bridge("forceAddress", { isGateway: true, forceAddress: true, ipam: v4 }, { before: conflictingBridge }),
  bridge("forceAddress, IPv6", { isGateway: true, forceAddress: true, ipam: v6 }, {
    before: "ip link add br0 type bridge; ip address add fd20::9/64 dev br0 nodad; ip link set br0 up",
  }),
  bridge("overlapping IPv6 address on the bridge", { isGateway: true, ipam: v6 }, {
    before: "ip link add br0 type bridge; ip address add fd20::9/64 dev br0 nodad; ip link set br0 up",
    steps: ["ADD c1", "DEL c1"],
  }),
  bridge("other IPv6 address on the bridge", { isGateway: true, ipam: v6 }, {
    before: "ip link add br0 type bridge; ip address add fd99::9/64 dev br0 nodad; ip link set br0 up",
  }),
  bridge("gateway address already there", { isGateway: true, ipam: v4 }, {
    before: "ip link add br0 type bridge; ip address add 10.20.0.1/24 dev br0; ip link set br0 up",
  }),
  bridge("ipMasq", { isGateway: true, ipMasq: true, ipam: v4 }),
  bridge("ipMasq, IPv6", { isGateway: true, ipMasq: true, ipam: v6 }),
  bridge("ipMasq, dual stack", { isGateway: true, ipMasq: true, ipam: dual }),
  bridge("ipMasq without gateway", { ipMasq: true, ipam: v4 }),
  bridge("ipMasq on layer 2 is ignored", { ipMasq: true }),
  bridge("ipMasq, two containers", { isGateway: true, ipMasq: true, ipam: v4 }, {
    steps: ["ADD c1", "ADD c2", "DEL c1", "CHECK c2", "DEL c2"],
  }),
  bridge("mtu", { mtu: 1400, isGateway: true, ipam: v4 }),
  bridge("mtu on a bridge that exists", { mtu: 1400, ipam: v4 }, { before: "ip link add br0 type bridge" }),
  bridge("mtu below zero", { mtu: -1, ipam: v4 }),
  bridge("mtu larger than a veth can have", { mtu: 100000, ipam: v4 }, { steps: ["ADD c1", "DEL c1"] }),
  bridge("hairpinMode", { hairpinMode: true, isGateway: true, ipam: v4 }),
  bridge("promiscMode", { promiscMode: true, isGateway: true, ipam: v4 }),
  bridge("hairpinMode and promiscMode", { hairpinMode: true, promiscMode: true, ipam: v4 }),
  bridge("enabledad", { enabledad: true, isGateway: true, ipam: dual }),
  bridge("vlan with gateway, two containers", { vlan: 100, isGateway: true, ipam: dual }, {
    needs: "bridge VLAN filtering",
    steps: ["ADD c1", "CHECK c1", "ADD c2", "DEL c1", "DEL c2"],
  }),
  bridge("vlan on layer 2", { vlan: 7 }, { needs: "bridge VLAN filtering" }),
  bridge("vlan too large", { vlan: 4095, ipam: v4 }),
  bridge("vlan below zero", { vlan: -1, ipam: v4 }),
  bridge("macspoofchk", { macspoofchk: true, isGateway: true, ipam: v4 }),
  bridge("macspoofchk, two containers", { macspoofchk: true, isGateway: true, ipam: v4 }, {
    steps: ["ADD c1", "ADD c2", "DEL c1", "DEL c2"],
  }),
  bridge("MAC by capability", { capabilities: { mac: true }, runtimeConfig: { mac: MAC }, ipam: v4 }, requestedMacs),
  bridge("MAC in upper case", { runtimeConfig: { mac: MAC.toUpperCase() }, ipam: v4 }, requestedMacs),
  bridge("MAC by CNI_ARGS", { ipam: v4 }, { ...requestedMacs, args: `MAC=${MAC};IgnoreUnknown=true` }),
  bridge("MAC by args.cni", { args: { cni: { mac: MAC } }, ipam: v4 }, requestedMacs),
  bridge(
    "MAC by every way at once",
    { runtimeConfig: { mac: MAC }, args: { cni: { mac: OTHER_MAC } }, ipam: v4 },
    { ...requestedMacs, args: "MAC=c2:00:00:00:00:01;IgnoreUnknown=1" },
  ),
  bridge("invalid MAC", { runtimeConfig: { mac: "no mac" }, ipam: v4 }),
  bridge("dns of its own", { dns: { nameservers: ["10.1.1.1"], search: ["a.example"] }, ipam: v4 }),
  bridge("dns with all fields", {
    dns: { nameservers: ["10.1.1.1", "fd00::1"], domain: "b.example", search: ["a.example"], options: ["ndots:3"] },
    ipam: v4,
  }),
  bridge("an empty array counts as dns of its own", {
    dns: { nameservers: [] },
    ipam: { ...v4, resolvConf: "/run/resolv.conf" },
  }, { before: "echo nameserver 10.9.9.9 >/run/resolv.conf" }),
  bridge("dns of the IPAM plugin", { ipam: { ...v4, resolvConf: "/run/resolv.conf" } }, {
    before:
      "printf '# x\\nnameserver 10.9.9.9\\nnameserver fd00::9\\nsearch a.example b.example\\ndomain c.example\\noptions ndots:2 edns0\\n' >/run/resolv.conf",
  }),
  bridge("the bridge's name is another kind of link", { bridge: "other", ipam: v4 }, {
    before: "ip link add other type veth peer name other2",
    steps: ["ADD c1", "DEL c1"],
  }),
  bridge("bridge name too long", { bridge: "a-bridge-name-too-long", ipam: v4 }, { steps: ["ADD c1", "DEL c1"] }),
  bridge("interface name taken in the container", { isGateway: true, ipam: v4 }, {
    before: "ip -n c1 link add eth0 type veth peer name other",
    steps: ["ADD c1"],
  }),
  bridge("ADD of the same attachment twice", { isGateway: true, ipam: v4 }, { steps: ["ADD c1", "ADD c1"] }),
  bridge("two interfaces of one container", { isGateway: true, ipam: v4 }, {
    steps: [
      "ADD c1",
      { step: "ADD c1", env: { CNI_IFNAME: "eth1" } },
      { step: "DEL c1", env: { CNI_IFNAME: "eth0" } },
      { step: "DEL c1", env: { CNI_IFNAME: "eth1" } },
    ],
  }),
  bridge("DEL with the namespace gone", { isGateway: true, ipam: v4 }, {
    steps: ["ADD c1", { step: "DEL c1", env: { CNI_NETNS: "/var/run/netns/gone" } }],
  }),
  bridge("DEL of what was never added", { isGateway: true, ipMasq: true, ipam: v4 }, { steps: ["DEL c1"] }),
  bridge("keys in other letter case", {
    BRIDGE: "br7",
    bridge: undefined,
    IsGateway: true,
    Mtu: 1300,
    ipam: { TYPE: "host-local", Subnet: "10.20.0.0/24" },
  }),
  bridge("unknown keys and null values", { mtu: null, vlan: null, isGateway: null, surprise: { a: 1 }, ipam: v4 }),
  bridge("static addresses", {
    isDefaultGateway: true,
    ipam: {
      type: "static",
      addresses: [{ address: "10.30.0.5/24", gateway: "10.30.0.254" }, { address: "fd30::5/64" }],
      routes: [{ dst: "10.0.0.0/8" }, { dst: "fd00::/8", gw: "fd30::fe" }],
      dns: { nameservers: ["10.30.0.53"] },
    },
  }),
  bridge("two static addresses of one subnet", {
    isGateway: true,
    ipam: { type: "static", addresses: [{ address: "10.30.0.5/24" }, { address: "10.30.0.6/24" }] },
  }),
  bridge("a static /31 and a /30", {
    ipam: { type: "static", addresses: [{ address: "10.30.0.4/31" }, { address: "10.31.0.5/30" }] },
  }),
  bridge("static without addresses", { ipam: { type: "static" } }, { steps: ["ADD c1", "DEL c1"] }),
  bridge("an IPAM plugin that is not there", { ipam: { type: "no-such-ipam" } }, { steps: ["ADD c1", "DEL c1"] }),
  bridge("an IPAM type with a slash", { ipam: { type: "../host-local" } }, { steps: ["ADD c1", "DEL c1"] }),
  bridge("an IPAM plugin that fails", { ipam: { type: "host-local" } }, { steps: ["ADD c1", "DEL c1"] }),
  bridge("CHECK without prevResult", { isGateway: true, ipam: v4 }, {
    steps: ["ADD c1", { step: "CHECK c1", conf: { prevResult: undefined } }, "DEL c1"],
  }),
  bridge("CHECK after an address went", { isGateway: true, ipam: v4 }, {
    steps: ["ADD c1", "! ip -n c1 address flush dev eth0", "CHECK c1", "DEL c1"],
  }),
  bridge("CHECK after the link went", { isGateway: true, ipam: v4 }, {
    steps: ["ADD c1", "! ip -n c1 link del eth0", "CHECK c1", "DEL c1"],
  }),
  bridge("CHECK after a route went", { isGateway: true, ipam: { ...v4, routes: [{ dst: "192.168.0.0/16" }] } }, {
    steps: ["ADD c1", "! ip -n c1 route del 192.168.0.0/16", "CHECK c1", "DEL c1"],
  }),
  bridge("CHECK after the bridge changed its MAC", { isGateway: true, ipam: v4 }, {
    steps: ["ADD c1", "! ip link set br0 address 02:00:00:00:00:99", "CHECK c1", "DEL c1"],
  }),
  bridge("prevResult of another version's form", { ipam: v4 }, {
    steps: [
      "ADD c1",
      { step: "CHECK c1", conf: { prevResult: { cniVersion: "0.4.0", ips: [] } } },
      "DEL c1",
    ],
  }),
];

function hostLocal(name: string, ipam: Record<string, unknown>, rest: Partial<Case> & { conf?: never } = {}): Case {
  return {
    name: `host-local, ${name}`,
    plugin: "host-local",
    conf: { cniVersion: "1.0.0", name: "ipnet", type: "bridge", ipam: { type: "host-local", ...ipam } },
    ...rest,
  };
}

/** Like `hostLocal`, with more keys beside `ipam`. */
function withConf(base: Case, conf: Record<string, unknown>): Case {
  return { ...base, conf: { ...(base.conf as Record<string, unknown>), ...conf } };
}

const range = (subnet: string, rest = {}) => ({ subnet, ...rest });

const hostLocals: Case[] = [
  ...VERSIONS.map((cniVersion) =>
    withConf(hostLocal(`one of each family, ${cniVersion}`, { ...dual, ...defaultRoutes }), { cniVersion })
  ),
  withConf(
    hostLocal("two IPv4 sets, 0.2.0", { ranges: [[range("10.1.0.0/24")], [range("10.2.0.0/24")]] }),
    { cniVersion: "0.2.0" },
  ),
  hostLocal("several sets", {
    ranges: [[range("10.1.0.0/24")], [range("10.2.0.0/24"), range("10.3.0.0/24")], [range("fd01::/64")]],
  }),
  hostLocal("rangeStart and rangeEnd", {
    ranges: [[range("10.1.0.0/24", { rangeStart: "10.1.0.50", rangeEnd: "10.1.0.52" })]],
  }, { steps: ["ADD c1", "ADD c2", "ADD c3", "ADD c4", "DEL c2", "ADD c4", "CHECK c4"] }),
  hostLocal("a range that starts before its gateway", {
    ranges: [[range("10.1.0.0/29", { rangeStart: "10.1.0.1", rangeEnd: "10.1.0.3", gateway: "10.1.0.2" })]],
  }, { steps: ["ADD c1", "ADD c2", "ADD c3"] }),
  hostLocal("round robin does not reuse at once", { ranges: [[range("10.1.0.0/29")]] }, {
    steps: ["ADD c1", "DEL c1", "ADD c1", "DEL c1", "ADD c1", "DEL c1", "ADD c2", "ADD c1"],
  }),
  hostLocal("a set of two ranges fills one after the other", {
    ranges: [[
      range("10.1.0.0/29", { rangeStart: "10.1.0.5" }),
      range("10.2.0.0/29", { rangeStart: "10.2.0.5" }),
    ]],
  }, { steps: ["ADD c1", "ADD c2", "ADD c3", "ADD c4", "ADD c5"] }),
  hostLocal("an IPv6 range with ends", {
    ranges: [[range("2001:db8::/64", { rangeStart: "2001:db8::ffff", rangeEnd: "2001:db8::1:0" })]],
  }, { steps: ["ADD c1", "ADD c2", "ADD c3"] }),
  hostLocal("gateway outside the subnet", { subnet: "10.1.0.0/24", gateway: "192.0.2.1" }, { steps: ["ADD c1"] }),
  hostLocal("rangeStart behind the default end", { subnet: "10.1.0.0/24", rangeStart: "10.1.0.255" }, {
    steps: ["ADD c1"],
  }),
  hostLocal("IPv6 gateway given", { ranges: [[range("fd01::/64", { gateway: "fd01::ffff" })]] }),
  hostLocal("IPv6 written at length", { ranges: [[range("2001:0DB8:0000::/64")]] }),
  hostLocal("routes", {
    subnet: "10.1.0.0/24",
    routes: [{ dst: "0.0.0.0/0" }, { dst: "10.5.0.0/16", gw: "10.1.0.3" }],
  }),
  hostLocal("resolvConf", { subnet: "10.1.0.0/24", resolvConf: "/run/resolv.conf" }, {
    before:
      "printf ';c\\n\\nnameserver 10.9.9.9\\nnameserver\\nsearch a b\\nsearch c\\ndomain x\\ndomain y\\noptions o\\nsortlist z\\n' >/run/resolv.conf",
  }),
  hostLocal("resolvConf missing", { subnet: "10.1.0.0/24", resolvConf: "/run/none" }),
  hostLocal("dataDir", { subnet: "10.1.0.0/24", dataDir: "/run/leases" }, { steps: ["ADD c1", "ADD c2", "DEL c1"] }),
  hostLocal("address by CNI_ARGS", { subnet: "10.1.0.0/24" }, { args: "IP=10.1.0.77" }),
  hostLocal("address by CNI_ARGS with a mask", { subnet: "10.1.0.0/24" }, { args: "IP=10.1.0.77/16" }),
  withConf(hostLocal("address by args.cni", { subnet: "10.1.0.0/24" }), { args: { cni: { ips: ["10.1.0.78"] } } }),
  withConf(hostLocal("addresses by capability", dual), {
    capabilities: { ips: true },
    runtimeConfig: { ips: ["10.20.0.79/24", "fd20::79"] },
  }),
  withConf(
    hostLocal("addresses by three ways", {
      ranges: [[range("10.1.0.0/24")], [range("10.2.0.0/24")], [range("fd01::/64")]],
    }, {
      args: "IP=10.1.0.5",
    }),
    { args: { cni: { ips: ["10.2.0.6"] } }, runtimeConfig: { ips: ["fd01::7"] } },
  ),
  hostLocal("requested address is the gateway", { subnet: "10.1.0.0/24" }, { args: "IP=10.1.0.1" }),
  hostLocal("requested address is taken", { subnet: "10.1.0.0/24" }, {
    args: "IP=10.1.0.9",
    steps: ["ADD c1", "ADD c2", "DEL c1", "ADD c2"],
  }),
  hostLocal("requested address of no set", { subnet: "10.1.0.0/24" }, { args: "IP=10.2.0.9" }),
  hostLocal("requested address outside the range", {
    ranges: [[range("10.1.0.0/24", { rangeStart: "10.1.0.10", rangeEnd: "10.1.0.20" })]],
  }, { args: "IP=10.1.0.9" }),
  hostLocal("requested address is no address", { subnet: "10.1.0.0/24" }, { args: "IP=10.1.0" }),
  hostLocal("allocation goes on behind a requested address", { subnet: "10.1.0.0/24" }, {
    steps: [{ step: "ADD c1", args: "IP=10.1.0.100" }, "ADD c2"],
  }),
  withConf(hostLocal("ranges by capability", { subnet: "10.1.0.0/24" }), {
    runtimeConfig: { ipRanges: [[range("10.7.0.0/24")], [range("fd07::/64")]] },
  }),
  hostLocal("legacy range and ranges", {
    subnet: "10.1.0.0/24",
    rangeStart: "10.1.0.9",
    ranges: [[range("10.2.0.0/24")]],
  }),
  hostLocal("exhausted", { subnet: "10.1.0.0/30" }, { steps: ["ADD c1", "ADD c2", "DEL c1", "ADD c2"] }),
  hostLocal("the second set is exhausted", { ranges: [[range("10.1.0.0/24")], [range("10.2.0.0/30")]] }, {
    steps: ["ADD c1", "ADD c2", "CHECK c2"],
  }),
  hostLocal("the same attachment twice", { subnet: "10.1.0.0/24" }, {
    steps: ["ADD c1", "ADD c1", "DEL c1", "ADD c1"],
  }),
  hostLocal("CHECK before ADD", { subnet: "10.1.0.0/24" }, { steps: ["CHECK c1"] }),
  hostLocal("CHECK after DEL", { subnet: "10.1.0.0/24" }, { steps: ["ADD c1", "DEL c1", "CHECK c1"] }),
  hostLocal("DEL before ADD", { subnet: "10.1.0.0/24" }, { steps: ["DEL c1"] }),
  hostLocal("no range at all", {}, { steps: ["ADD c1"] }),
  hostLocal("an empty set", { ranges: [[]] }, { steps: ["ADD c1"] }),
  hostLocal("no subnet in a range", { ranges: [[{ rangeStart: "10.1.0.1" }]] }, { steps: ["ADD c1"] }),
  hostLocal("host bits in the subnet", { subnet: "10.1.0.7/24" }, { steps: ["ADD c1"] }),
  hostLocal("a subnet of version 4 in the form of version 6", { subnet: "::ffff:10.0.0.0/120" }, {
    steps: ["ADD c1"],
  }),
  hostLocal("ends, gateway and routes of version 4 in the form of version 6", {
    ranges: [[range("10.1.0.0/24", {
      rangeStart: "::ffff:10.1.0.9",
      rangeEnd: "::ffff:a01:13",
      gateway: "::ffff:10.1.0.3",
    })]],
    routes: [{ dst: "::ffff:10.9.0.0/104", gw: "::ffff:10.1.0.1" }, { dst: "::ffff:10.9.0.0/90" }],
  }),
  hostLocal("a subnet too small", { subnet: "10.1.0.0/31" }, { steps: ["ADD c1"] }),
  hostLocal("an IPv6 subnet too small", { subnet: "fd01::/127" }, { steps: ["ADD c1"] }),
  hostLocal("rangeStart outside the subnet", { subnet: "10.1.0.0/24", rangeStart: "10.2.0.5" }, {
    steps: ["ADD c1"],
  }),
  hostLocal("rangeEnd outside the subnet", { subnet: "10.1.0.0/24", rangeEnd: "10.2.0.5" }, { steps: ["ADD c1"] }),
  hostLocal("rangeStart behind rangeEnd", {
    ranges: [[range("10.1.0.0/24", { rangeStart: "10.1.0.20", rangeEnd: "10.1.0.10" })]],
  }, { steps: ["ADD c1"] }),
  hostLocal("two families in one set", { ranges: [[range("10.1.0.0/24"), range("fd01::/64")]] }, {
    steps: ["ADD c1"],
  }),
  hostLocal("overlap inside a set", { ranges: [[range("10.1.0.0/24"), range("10.1.0.0/25")]] }, {
    steps: ["ADD c1"],
  }),
  hostLocal("overlap across sets", { ranges: [[range("10.1.0.0/24")], [range("10.1.0.0/25")]] }, {
    steps: ["ADD c1"],
  }),
  hostLocal("a subnet that is none", { subnet: "10.1.0/24" }, { steps: ["ADD c1"] }),
  hostLocal("a gateway that is none", { subnet: "10.1.0.0/24", gateway: "10.1.0.x" }, { steps: ["ADD c1"] }),
  withConf(hostLocal("no ipam object", {}, { steps: ["ADD c1"] }), { ipam: undefined }),
];

function staticIpam(name: string, ipam: Record<string, unknown> | undefined, rest: Partial<Case> = {}): Case {
  return {
    name: `static, ${name}`,
    plugin: "static",
    conf: { cniVersion: "1.0.0", name: "ipnet", type: "bridge", ipam: ipam && { type: "static", ...ipam } },
    ...rest,
  };
}

const both = { addresses: [{ address: "10.40.0.5/24", gateway: "10.40.0.1" }, { address: "fd40::5/64" }] };

const statics: Case[] = [
  ...VERSIONS.map((cniVersion) =>
    withConf(staticIpam(`both families, ${cniVersion}`, { ...both, ...defaultRoutes }), { cniVersion })
  ),
  withConf(
    staticIpam("two IPv4 addresses, 0.2.0", { addresses: [{ address: "10.1.0.1/8" }, { address: "10.2.0.1/8" }] }),
    {
      cniVersion: "0.2.0",
    },
  ),
  staticIpam("routes and dns", {
    ...both,
    routes: [{ dst: "10.9.0.0/16", gw: "10.40.0.9" }],
    dns: { nameservers: ["10.1.1.1"], domain: "d", search: ["s"], options: ["o"] },
  }),
  staticIpam("address by CNI_ARGS", {}, { args: "IP=10.41.0.5/24;GATEWAY=10.41.0.1" }),
  staticIpam("addresses of both families by CNI_ARGS", {}, {
    args: "IP=10.41.0.5/24,fd41::5/64;GATEWAY=fd41::1,10.41.0.1",
  }),
  staticIpam("CNI_ARGS adds to the configuration", both, { args: "IP=10.41.0.5/24" }),
  staticIpam("CNI_ARGS address without a mask", {}, { args: "IP=10.41.0.5" }),
  staticIpam("CNI_ARGS gateway that is none", {}, { args: "IP=10.41.0.5/24;GATEWAY=x" }),
  withConf(staticIpam("args.cni replaces the configuration", both), { args: { cni: { ips: ["10.42.0.5/24"] } } }),
  withConf(staticIpam("the capability replaces all", both), {
    args: { cni: { ips: ["10.42.0.5/24"] } },
    runtimeConfig: { ips: ["10.43.0.5/24", "fd43::5/64"] },
  }),
  withConf(staticIpam("an address without a mask by capability", both), { runtimeConfig: { ips: ["10.43.0.5"] } }),
  staticIpam("an address without a mask", { addresses: [{ address: "10.40.0.5" }] }),
  staticIpam("a gateway that is none", { addresses: [{ address: "10.40.0.5/24", gateway: "x" }] }),
  staticIpam("no ipam object", undefined),
  staticIpam("no addresses", {}),
  staticIpam("CHECK finds another gateway", both, {
    steps: ["ADD c1", {
      step: "CHECK c1",
      conf: { prevResult: { cniVersion: "1.0.0", ips: [{ address: "10.40.0.5/24", gateway: "10.40.0.9" }] } },
    }],
  }),
];

/** The protocol itself, which all plugins share: looked at through bridge. */
function protocol(name: string, rest: Partial<Case>): Case {
  return {
    name: `protocol, ${name}`,
    plugin: "bridge",
    conf: { cniVersion: "1.0.0", name: "brnet", type: "bridge", bridge: "br0", ipam: v4 },
    steps: ["ADD c1"],
    ...rest,
  };
}

const text = (conf: Record<string, unknown>) => ({
  conf: { cniVersion: "1.0.0", name: "brnet", type: "bridge", bridge: "br0", ipam: v4, ...conf },
});

const protocols: Case[] = [
  ...["bridge", "loopback", "host-local", "static"].map((plugin) =>
    protocol(`VERSION of ${plugin}`, { plugin, steps: ["VERSION c1"] })
  ),
  protocol("VERSION with nothing on stdin", { conf: "", steps: ["VERSION c1"] }),
  protocol("unknown command", { steps: ["MOVE c1"] }),
  protocol("command in lower case", { steps: ["add c1"] }),
  protocol("unknown command and empty stdin", { conf: "", steps: ["MOVE c1"] }),
  protocol("empty stdin", { conf: "" }),
  protocol("stdin is no JSON", { conf: "{ name" }),
  protocol("stdin is an array", { conf: "[]" }),
  protocol("stdin is null", { conf: "null" }),
  protocol("stdin is an empty object", { conf: "{}" }),
  protocol("two documents on stdin", { conf: `{"name":"n","type":"bridge"}{}` }),
  protocol("no name", text({ name: undefined })),
  protocol("empty name", text({ name: "" })),
  protocol("name with a slash", text({ name: "a/b" })),
  protocol("name with a leading dash", text({ name: "-a" })),
  protocol("name is a number", text({ name: 5 })),
  protocol("cniVersion unknown", text({ cniVersion: "9.9.9" })),
  protocol("cniVersion is no version", text({ cniVersion: "new" })),
  protocol("cniVersion is a number", text({ cniVersion: 1 })),
  protocol("cniVersion empty", text({ cniVersion: "" })),
  protocol("cniVersion absent", text({ cniVersion: undefined })),
  protocol("cniVersion shortened", text({ cniVersion: "1.0" })),
  protocol("CHECK before its version", { ...text({ cniVersion: "0.3.1" }), steps: ["CHECK c1"] }),
  protocol("mtu as text", text({ mtu: "1500" })),
  protocol("mtu with a fraction", text({ mtu: 1500.5 })),
  protocol("vlan as text", text({ vlan: "5" })),
  protocol("isGateway as text", text({ isGateway: "true" })),
  protocol("ipMasq as number", text({ ipMasq: 1 })),
  protocol("bridge as number", text({ bridge: 5 })),
  protocol("ipam as text", text({ ipam: "host-local" })),
  protocol("ipam.type as number", text({ ipam: { type: 1 } })),
  protocol("dns as text", text({ dns: "10.0.0.1" })),
  protocol("dns.nameservers as text", text({ dns: { nameservers: "10.0.0.1" } })),
  protocol("capabilities of text", text({ capabilities: { mac: "yes" } })),
  protocol("runtimeConfig.mac as number", text({ runtimeConfig: { mac: 5 } })),
  protocol("ipam.routes of text", text({ ipam: { ...v4, routes: ["10.0.0.0/8"] } })),
  protocol("ipam.routes without a prefix", text({ ipam: { ...v4, routes: [{ dst: "10.0.0.0" }] } })),
  protocol("prevResult as text", text({ prevResult: "none" })),
  ...["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"].map((name) =>
    protocol(`no ${name}`, { env: { [name]: undefined } })
  ),
  protocol("no CNI_PATH for DEL", { env: { CNI_PATH: undefined }, steps: ["DEL c1"] }),
  protocol("nothing but the command", {
    env: { CNI_CONTAINERID: undefined, CNI_NETNS: undefined, CNI_IFNAME: undefined, CNI_PATH: undefined },
    steps: ["ADD c1", "DEL c1", "CHECK c1"],
  }),
  protocol("container id with a slash", { env: { CNI_CONTAINERID: "a/b" } }),
  protocol("container id with a newline", { env: { CNI_CONTAINERID: "ab\n" } }),
  protocol("interface name of 16 bytes", { env: { CNI_IFNAME: "a234567890123456" } }),
  protocol("interface name of 15 bytes", { env: { CNI_IFNAME: "a23456789012345" }, steps: ["ADD c1", "DEL c1"] }),
  ...[".", "..", "a/b", "a:b", "a b", "a\u00a0b"].map((name) =>
    protocol(`interface name ${JSON.stringify(name)}`, { env: { CNI_IFNAME: name } })
  ),
  protocol("bad interface name beside missing variables", {
    env: { CNI_IFNAME: "a/b", CNI_NETNS: undefined, CNI_CONTAINERID: undefined },
  }),
  protocol("namespace missing", { env: { CNI_NETNS: "/var/run/netns/none" } }),
  protocol("namespace is a plain file", { before: "touch /run/plain", env: { CNI_NETNS: "/run/plain" } }),
  protocol("CNI_ARGS without a value", { args: "MAC" }),
  protocol("CNI_ARGS with a trailing semicolon", { args: "IgnoreUnknown=1;" }),
  protocol("CNI_ARGS with two equals signs", { args: "IgnoreUnknown=1;A=b=c" }),
  protocol("CNI_ARGS unknown", { args: "K8S_POD_NAME=a;X=y" }),
  protocol("CNI_ARGS unknown and ignored", {
    args: "IgnoreUnknown=TRUE;K8S_POD_NAME=a",
    steps: ["ADD c1", "DEL c1"],
  }),
  protocol("CNI_ARGS with a bad IgnoreUnknown", { args: "IgnoreUnknown=yes" }),
  protocol("CNI_ARGS keys in lower case", {
    args: "IgnoreUnknown=1;mac=c2:11:22:33:44:55",
    steps: ["ADD c1", "DEL c1"],
  }),
];

export const cases: Case[] = [
  ...loopback,
  ...bridges,
  ...hostLocals,
  ...statics,
  ...tunings,
  ...bandwidths,
  ...firewalls,
  ...portmaps,
  ...masterLinks,
  ...hostDevices,
  ...ptps,
  ...sbrs,
  ...vrfs,
  ...protocols,
];
