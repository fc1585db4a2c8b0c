/** Cases for both implementations of tuning and bandwidth, on a veth pair that stands in for earlier plugins. */
import type { Case } from "./cases.ts";

const withoutV6 = "sysctl -qw net.ipv6.conf.default.disable_ipv6=1";
const pair = `
  ${withoutV6}; ip netns exec c1 ${withoutV6}
  ip link add host1 mtu 1400 address 0a:00:00:00:00:01 type veth peer name eth0 mtu 1400 address 0a:00:00:00:00:02 netns c1
  ip link set host1 up; ip -n c1 link set eth0 up`;
const interfaces = [{ name: "host1" }, { name: "eth0", sandbox: "/var/run/netns/c1" }];
const macs = ["0a:00:00:00:00:01", "0a:00:00:00:00:02", "c2:11:22:33:44:55", "c2:66:77:88:99:aa"];

function chained(type: string) {
  return (name: string, conf: Record<string, unknown>, rest: Partial<Case> = {}): Case => {
    const cniVersion = conf.cniVersion ?? "1.0.0";
    return {
      name: `${type}, ${name}`,
      plugin: type,
      conf: { cniVersion, name: "net", type, prevResult: { cniVersion, interfaces }, ...conf },
      before: pair,
      macs,
      ...type === "bandwidth"
        ? { steps: ["ADD c1", "CHECK c1", "! ip link del host1 || true", "DEL c1", "DEL c1"] }
        : {},
      ...rest,
    };
  };
}

const tuning = chained("tuning");
const [MAC, OTHER_MAC] = macs.slice(2) as [string, string];
const arpFilter = { "net.ipv4.conf.eth0.arp_filter": "1" };

export const tunings: Case[] = [
  ...["0.3.1", "0.4.0", "1.0.0"].map((cniVersion) => tuning(`${cniVersion}`, { cniVersion, mac: MAC })),
  tuning("nothing to do", {}),
  tuning("mac", { mac: MAC }),
  tuning("mac from the capability", { mac: OTHER_MAC, runtimeConfig: { mac: MAC } }),
  tuning("mac from CNI_ARGS", { mac: OTHER_MAC }, { args: `MAC=${MAC}` }),
  tuning("mac from args before all others", { mac: OTHER_MAC, args: { cni: { mac: MAC } } }, {
    args: `MAC=${OTHER_MAC}`,
  }),
  tuning("CNI_ARGS with an unknown key", { mac: MAC }, { args: "K=V" }),
  tuning("invalid mac", { mac: "hello" }),
  tuning("multicast mac", { mac: "01:00:5e:00:00:01" }, { steps: ["ADD c1"] }),
  tuning("mtu", { mtu: 1300 }),
  tuning("mtu that is too large", { mtu: 70_000 }, { steps: ["ADD c1"] }),
  tuning("promisc", { promisc: true }),
  tuning("promisc off", { promisc: false }),
  tuning("allmulti", { allmulti: true }),
  tuning("allmulti off", { allmulti: false }, { before: `${pair}; ip -n c1 link set eth0 allmulticast on` }),
  tuning("all settings at once", { mac: MAC, mtu: 1300, promisc: true, allmulti: true }),
  tuning("all settings from args", { args: { cni: { mac: MAC, mtu: 1300, promisc: true, allmulti: true } } }),
  tuning("sysctl", { sysctl: arpFilter }),
  tuning("sysctl with slashes", { sysctl: { "net/ipv4/conf/eth0/arp_filter": "1" } }),
  tuning("sysctl with IFNAME", { sysctl: { "net.ipv4.conf.IFNAME.arp_filter": "1" } }),
  tuning("sysctl from args too", {
    sysctl: { "net.ipv4.conf.eth0.arp_announce": "1" },
    args: { cni: { sysctl: arpFilter } },
  }),
  tuning("sysctl that is none", { sysctl: { "net.ipv4.nonesuch": "1" } }, { steps: ["ADD c1"] }),
  tuning("sysctl with a value that is none", { sysctl: { "net.ipv4.tcp_syncookies": "many" } }, {
    steps: ["ADD c1"],
  }),
  tuning("sysctl that is not net's", { sysctl: { "kernel.panic": "1" } }, { steps: ["ADD c1", "DEL c1"] }),
  tuning("the same sysctl twice", {}, {
    conf: `{"cniVersion":"1.0.0","name":"net","type":"tuning","sysctl":{"net.a":"1","net.a":"2"},"prevResult":{}}`,
    steps: ["ADD c1"],
  }),
  tuning("without prevResult", { prevResult: undefined, mtu: 1300 }),
  tuning("link missing", { mtu: 1300 }, { before: "true" }),
  tuning("CHECK after a change", { mac: MAC, mtu: 1300 }, {
    steps: ["ADD c1", "! ip -n c1 link set eth0 mtu 1200", "CHECK c1", "DEL c1"],
  }),
  tuning("DEL without namespace", { mtu: 1300 }, {
    steps: ["ADD c1", { step: "DEL c1", env: { CNI_NETNS: undefined } }],
  }),
  tuning("DEL with a link that is gone", { mtu: 1300 }, {
    steps: ["ADD c1", "! ip -n c1 link del eth0", "DEL c1", "DEL c1"],
  }),
];

const bandwidth = chained("bandwidth");
const both = { ingressRate: 8_000_000, ingressBurst: 1_600_000, egressRate: 4_000_000, egressBurst: 800_000 };

export const bandwidths: Case[] = [
  ...["0.3.0", "0.3.1", "0.4.0", "1.0.0"].map((cniVersion) => bandwidth(cniVersion, { cniVersion, ...both })),
  bandwidth("0.2.0", { cniVersion: "0.2.0", ...both }),
  bandwidth("nothing to do", {}),
  bandwidth("ingress alone", { ingressRate: 8_000_000, ingressBurst: 1_600_000 }),
  bandwidth("egress alone", { egressRate: 8_000_000, egressBurst: 1_600_000 }),
  bandwidth("capability", { runtimeConfig: { bandwidth: both } }),
  bandwidth("capability beside the configuration", {
    ingressRate: 16_000_000,
    ingressBurst: 80_000,
    runtimeConfig: { bandwidth: both },
  }),
  bandwidth("capability beside zeros", { ingressRate: 0, runtimeConfig: { bandwidth: both } }),
  bandwidth("odd numbers", {
    ingressRate: 12_345_679,
    ingressBurst: 765_433,
    egressRate: 9_999_991,
    egressBurst: 99_991,
  }),
  bandwidth("rates beyond 32 bits", { ingressRate: 80_000_000_000, ingressBurst: 8_000_000_000 }),
  bandwidth("kubelet's burst at a high rate", { egressRate: 1_000_000_000, egressBurst: 2_147_483_647 }),
  bandwidth("kubelet's burst at a low rate", { egressRate: 1_000_000, egressBurst: 2_147_483_647 }),
  bandwidth("rate without burst", { ingressRate: 1_000_000 }),
  bandwidth("burst without rate", { egressBurst: 1_000_000 }),
  bandwidth("burst of 4 GB", { egressRate: 1_000_000, egressBurst: 8 * 0xffffffff }),
  bandwidth("negative rate", { egressRate: -1, egressBurst: 8000 }),
  bandwidth("without prevResult", { ...both, prevResult: undefined }, { steps: ["ADD c1"] }),
  bandwidth("link missing", both, { before: "true", steps: ["ADD c1", "DEL c1"] }),
  bandwidth("link that is no veth", both, { before: "true", env: { CNI_IFNAME: "lo" }, steps: ["ADD c1"] }),
  bandwidth("prevResult without interfaces", { ...both, prevResult: { cniVersion: "1.0.0", interfaces: [] } }, {
    steps: ["ADD c1"],
  }),
  bandwidth("host's end not in prevResult", {
    ...both,
    prevResult: { cniVersion: "1.0.0", interfaces: interfaces.slice(1) },
  }, { steps: ["ADD c1"] }),
  bandwidth("another queueing discipline there", both, {
    before: `${pair}; tc qdisc add dev host1 root handle 5: pfifo`,
    steps: ["ADD c1"],
  }),
  bandwidth("CHECK after the limit went", both, {
    steps: ["ADD c1", "! tc qdisc del dev host1 root", "CHECK c1"],
  }),
  bandwidth("CHECK after the ifb went", both, {
    steps: ["ADD c1", "! ip link del $(ip -br link show type ifb | cut -d' ' -f1)", "CHECK c1"],
  }),
  bandwidth("the link stays after DEL", both, { steps: ["ADD c1", "DEL c1", "DEL c1"] }),
  bandwidth("DEL without namespace", both, {
    steps: ["ADD c1", "! ip link del host1", { step: "DEL c1", env: { CNI_NETNS: undefined } }],
  }),
];
