/**
 * The plugins that the sweeps test, one entry each: kill-sweep.test.ts kills them at every system call, errno-sweep.test.ts
 * makes each call fail once.
 *
 * Longer than 300 lines: a table, one entry a plugin, and the machines that the entries need.
 */
import { expect } from "bun:test";
import { type Feature, lacks } from "../support/kernel-features.ts";
import type { Point } from "../support/injection.ts";
import { legacyPath } from "../support/legacy-iptables.ts";
import type { Container, Machine } from "../support/machine.ts";
import { type Network, network } from "../support/network.ts";
import { PATIENT, startOpenVswitch } from "../support/open-vswitch.ts";
import { type Call, patchbayPlugins } from "../support/plugins.ts";
import { serving } from "../support/served-pool.ts";
import { isShortRun, ownShare } from "../support/share.ts";

export interface Subject {
  /** In the names of tests. */
  name: string;
  conf: Record<string, unknown> & { type: string };
  /** What differs from container to container; for a chained plugin, prevResult of the plugins before it. */
  own?: (container: Container) => Record<string, unknown>;
  /** A shell script that makes what the plugins before it would have made. */
  prepare?: (container: Container) => string;
  /** Starts in the machine, before its containers, what the plugin works with. It ends with the machine (Machine.services). */
  service?: (machine: Machine) => Promise<void>;
  /** A shell script that undoes what DEL leaves to the plugins before it, which would remove the link. */
  again?: (container: Container) => string;
  /** It makes nothing that is shared or stays, so fresh and used machines are the same to it. */
  sharesNothing?: true;
  /** Beside the CNI_ variables. */
  env?: Record<string, string>;
  /** The sweeps take every nth point only, because other subjects go through the same code. */
  every?: number;
  /**
   * For slow subjects: only so many points, all at calls that change something. A plugin that is killed anywhere between
   * two of those leaves the same state.
   */
  few?: number;
  /** `npm test` sweeps it, at every eighth point. The long run has its other points, and all of the other subjects. */
  isInShortRun?: true;
  needs?: Feature;
}

const EFFECTS = /^(sendto|p?write(64)?|rename|link(at)?|unlink|mkdir|rmdir|ftruncate|fallocate|vfork|clone)$/;

/** The points that this run's sweep takes; all of them with PATCHBAY_TEST_FULL_SWEEP=1. */
export function taken<P extends Point>(points: readonly P[], { every = 1, few, isInShortRun }: Subject): P[] {
  if (isFullSweep) return [...points];
  if (few === undefined) {
    const chosen = points.filter((_, index) => index % every === 0);
    return isInShortRun ? ownShare(chosen) : chosen;
  }
  const effects = points.filter(({ syscall }) => EFFECTS.test(syscall));
  const nth = (index: number) => Math.round(index * few / effects.length);
  return effects.filter((_, index) => nth(index) !== nth(index + 1));
}

/** A call is made more or less often from run to run: less than a fifth of the points may be missed, one where they are few. */
export function expectMost(hits: number, points: number): void {
  expect(hits).toBeGreaterThan(0);
  expect(points - hits).toBeLessThan(Math.max(2, points * 0.2));
}

/** Machines that a sweep uses at a time. Under emulation, more than one costs more than it saves. */
export const LANES = process.env.PATCHBAY_TEST_VM ? 1 : 3;

export const isFullSweep = process.env.PATCHBAY_TEST_FULL_SWEEP === "1";

/** Only ends what hangs. All points of one plugin take hours under emulation. */
export const SWEEP_TIMEOUT_MS = isFullSweep ? 6 * 3600_000 : 3600_000;

// Three addresses a family, one for each container of the kill sweep, so that a lost one is missed at once.
const ipam = {
  type: "host-local",
  ranges: [
    [{ subnet: "10.20.0.0/24", rangeStart: "10.20.0.2", rangeEnd: "10.20.0.4" }],
    [{ subnet: "fd20::/64", rangeStart: "fd20::2", rangeEnd: "fd20::4" }],
  ],
};
const threeOfEach = [
  { cidr: "10.20.0.0/24", from: "10.20.0.2", blockSize: 3 },
  { cidr: "fd20::/64", from: "fd20::2", blockSize: 3 },
];
const spoofGuard = lacks("nftables bridge family") ? {} : { macspoofchk: true };

const all: Subject[] = [
  { name: "host-local", conf: { type: "host-local", ipam }, isInShortRun: true },
  {
    name: "patchbay-cluster",
    conf: { type: "patchbay-cluster", ipam: { type: "patchbay-cluster", pool: "lan" } },
    prepare: () => serving({ ranges: threeOfEach, blocks: [0] }),
    isInShortRun: true,
  },
  {
    name: "tuning",
    conf: {
      type: "tuning",
      sysctl: { "net.ipv4.conf.IFNAME.arp_filter": "1", "net.ipv4.conf.IFNAME.forwarding": "1" },
      mac: "c2:11:22:33:44:55",
      mtu: 1400,
      promisc: true,
    },
    own: pairResult,
    prepare: vethPair,
    sharesNothing: true,
  },
  {
    name: "bandwidth",
    conf: {
      type: "bandwidth",
      ingressRate: 8_000_000,
      ingressBurst: 800_000,
      egressRate: 8_000_000,
      egressBurst: 800_000,
      unshapedSubnets: ["10.0.0.0/8"],
    },
    own: pairResult,
    prepare: vethPair,
    sharesNothing: true,
  },
  {
    name: "bridge",
    conf: { type: "bridge", bridge: "br0", isDefaultGateway: true, ipMasq: true, ...spoofGuard, ipam },
    isInShortRun: true,
  },
  {
    name: "macvlan",
    conf: { type: "macvlan", master: "m0", ipam },
    prepare: master,
    sharesNothing: true,
    every: 2,
  },
  { name: "ptp", conf: { type: "ptp", ipMasq: true, ipam }, every: 4 },
  { name: "tap", conf: { type: "tap", mtu: 1400, ipam }, sharesNothing: true, every: 3 },
  {
    name: "ovs",
    conf: { type: "ovs", bridge: "ovs0", vlan: 5, ipam, ...PATIENT },
    service: openVswitch,
    every: 2,
  },
  {
    name: "sbr",
    conf: { type: "sbr" },
    own: routedResult,
    prepare: routedPair,
    again: routesOfPair,
    sharesNothing: true,
    every: 2,
  },
  {
    name: "host-device",
    conf: { type: "host-device", ipam },
    own: ownDevice,
    prepare: device,
    sharesNothing: true,
    every: 2,
    isInShortRun: true,
  },
  // The kernel that has these is emulated, and slow.
  {
    name: "ipvlan",
    conf: { type: "ipvlan", master: "m0", ipam },
    prepare: master,
    sharesNothing: true,
    few: 2,
    needs: "ipvlan links",
  },
  {
    name: "vlan",
    conf: { type: "vlan", master: "m0", vlanId: 7, ipam },
    own: ({ name }) => ({ vlanId: 7 + Number(name.slice(1)) }),
    prepare: master,
    sharesNothing: true,
    few: 2,
    needs: "VLAN links",
  },
  {
    name: "dummy",
    conf: { type: "dummy", ipam },
    sharesNothing: true,
    few: 2,
    needs: "dummy links",
  },
  {
    name: "vrf",
    conf: { type: "vrf", vrfname: "red" },
    own: routedResult,
    prepare: (container) => `${routedPair(container)}; ${ruleForVrfs(container)}`,
    again: (container) => `${addressesOfPair(container)}; ${routesOfPair(container)}`,
    sharesNothing: true,
    few: 5,
    needs: "VRF links",
  },
  {
    name: "flannel",
    conf: { type: "flannel", ipam: { dataDir: "/run/leases" } },
    prepare: subnetEnv,
    every: 6,
  },
  {
    name: "firewall by iptables",
    conf: { type: "firewall", ingressPolicy: "isolated" },
    own: bridgeResult,
    prepare: bridgeAlone,
    every: 3,
  },
  {
    name: "firewall by legacy iptables",
    conf: { type: "firewall", backend: "iptables", ingressPolicy: "same-bridge" },
    own: bridgeResult,
    prepare: bridgeAlone,
    env: { PATH: legacyPath() },
    every: 5,
  },
  {
    name: "firewall by nftables",
    conf: { type: "firewall", backend: "nftables", ingressPolicy: "isolated" },
    own: bridgeResult,
    prepare: bridgeAlone,
    every: 3,
  },
  {
    name: "portmap by nftables",
    conf: { type: "portmap", backend: "nftables" },
    own: portResult,
    prepare: bridgeAlone,
    every: 4,
    isInShortRun: true,
  },
  {
    name: "portmap by iptables",
    conf: { type: "portmap", backend: "iptables" },
    own: portResult,
    prepare: bridgeAlone,
    every: 6,
  },
  {
    name: "portmap by legacy iptables",
    conf: { type: "portmap", backend: "iptables" },
    own: portResult,
    prepare: bridgeAlone,
    env: { PATH: legacyPath() },
    every: 12,
  },
];

/** What this run sweeps. */
export const subjects: readonly Subject[] = all.filter((one) => !isShortRun || one.isInShortRun);

/** Its bridge would take the lowest MAC address of its ports, and so change with them. */
async function openVswitch(machine: Machine): Promise<void> {
  const ovs = await startOpenVswitch(machine);
  await ovs.addBridge("ovs0");
  await ovs.vsctl("set", "bridge", "ovs0", 'other_config:hwaddr="02:00:00:00:00:01"');
}

/** A bridge that leads to the containers there would be. */
function bridgeAlone(): string {
  return `
    test -e /sys/class/net/br0 || {
      sysctl -qw net.ipv6.conf.default.disable_ipv6=1
      ip link add br0 type bridge; ip address add 10.20.0.1/24 dev br0; ip link set br0 up
      sysctl -qw net.ipv6.conf.default.disable_ipv6=0
    }`;
}

/** Ports enough for a range, and one for the flows of which there is something to forget. */
function portResult(container: Container) {
  const first = 1000 + 1000 * Number(container.name.slice(1));
  const portMappings = [{ hostPort: first, containerPort: 53, protocol: "udp" }];
  for (let port = first + 1; port <= first + 20; port++) {
    portMappings.push({ hostPort: port, containerPort: port, protocol: "tcp" });
  }
  return { ...bridgeResult(container), runtimeConfig: { portMappings } };
}

/** The result of a bridge that the plugin does not look for. */
function bridgeResult({ name, netnsPath }: Container) {
  const last = 2 + Number(name.slice(1));
  const interfaces = [{ name: "br0" }, { name: `v${name}` }, { name: "eth0", sandbox: netnsPath }];
  const ips = [`10.20.0.${last}/24`, `fd20::${last}/64`].map((address) => ({ interface: 2, address }));
  return { prevResult: { cniVersion: "1.1.0", interfaces, ips } };
}

/** Without IPv6, whose addresses and routes would come by themselves, up to a second later. */
function vethPair({ name }: Container): string {
  const withoutV6 = "sysctl -qw net.ipv6.conf.default.disable_ipv6=1";
  return `
    ${withoutV6}; ip netns exec ${name} ${withoutV6}
    ip link add v${name} type veth peer name eth0 netns ${name}
    ip link set v${name} up; ip -n ${name} link set eth0 up`;
}

function pairResult({ name, netnsPath }: Container) {
  const interfaces = [{ name: `v${name}` }, { name: "eth0", sandbox: netnsPath }];
  return { prevResult: { cniVersion: "1.1.0", interfaces, ips: [{ interface: 1, address: "10.20.0.5/24" }] } };
}

/** With addresses of both families. A link-local one would come by itself, up to a second later. */
function routedPair(container: Container): string {
  const { name } = container;
  return `
    ip link add v${name} type veth peer name eth0 netns ${name}; ip link set v${name} addrgenmode none
    ip link set v${name} up; ip -n ${name} link set eth0 addrgenmode none
    ${addressesOfPair(container)}; ip -n ${name} link set eth0 up; ${routesOfPair(container)}`;
}

function addressesOfPair(container: Container): string {
  const inside = `ip -n ${container.name} address replace`;
  const { v4, v6 } = addressesOf(container);
  return `${inside} ${v4}/24 dev eth0; ${inside} ${v6}/64 dev eth0 nodad`;
}

function routesOfPair(container: Container): string {
  const { name } = container;
  return `
    ip -n ${name} route replace 10.20.0.0/24 dev eth0 proto kernel scope link src ${addressesOf(container).v4}
    ip -n ${name} route replace fd20::/64 dev eth0 proto kernel metric 256
    ip -n ${name} route replace default via 10.20.0.1; ip -n ${name} route replace default via fd20::1`;
}

function routedResult(container: Container) {
  const { v4, v6 } = addressesOf(container);
  const interfaces = [{ name: `v${container.name}` }, { name: "eth0", sandbox: container.netnsPath }];
  const ips = [
    { interface: 1, address: `${v4}/24`, gateway: "10.20.0.1" },
    { interface: 1, address: `${v6}/64`, gateway: "fd20::1" },
  ];
  return { prevResult: { cniVersion: "1.1.0", interfaces, ips } };
}

function addressesOf({ name }: Container) {
  const last = 2 + Number(name.slice(1));
  return { v4: `10.20.0.${last}`, v6: `fd20::${last}` };
}

/** It comes with the first VRF of a namespace, and stays. */
function ruleForVrfs({ name }: Container): string {
  return `ip -n ${name} link add first type vrf table 9; ip -n ${name} link del first`;
}

/** One for all. Its IPv6 addresses would come up to a second later. */
function master(): string {
  return `
    test -e /sys/class/net/m0 || {
      sysctl -qw net.ipv6.conf.default.disable_ipv6=1
      ip link add m0 type veth peer name m1; ip link set m1 up; ip link set m0 up
      sysctl -qw net.ipv6.conf.default.disable_ipv6=0
    }`;
}

function device({ name }: Container): string {
  return `
    ip link add far${name} type veth peer name dev${name}
    echo 1 >/proc/sys/net/ipv6/conf/far${name}/disable_ipv6
    ip link set far${name} up
    ip link set dev${name} mtu 1300 alias "cable ${name}"`;
}

function ownDevice({ name }: Container) {
  return { device: `dev${name}` };
}

/** Six addresses a family. */
function subnetEnv(): string {
  return `
    mkdir -p /run/flannel
    printf 'FLANNEL_NETWORK=10.20.0.0/16\\nFLANNEL_SUBNET=10.20.0.1/29\\n' >/run/flannel/subnet.env
    printf 'FLANNEL_IPV6_NETWORK=fd20::/48\\nFLANNEL_IPV6_SUBNET=fd20::1/125\\n' >>/run/flannel/subnet.env
    printf 'FLANNEL_MTU=1450\\nFLANNEL_IPMASQ=false\\n' >>/run/flannel/subnet.env`;
}

/** A subject on a machine. */
export interface Staged {
  net: Network;
  /** A new container, as the plugin finds it. */
  container(name: string): Promise<Container>;
  /** The call that `net` makes for an attachment it has no result of. */
  call(command: string, container: Container): Call;
}

export async function stage(
  { conf, own = () => ({}), service, prepare, again, env }: Subject,
  machine: Machine,
): Promise<Staged> {
  await service?.(machine);
  const net = network(machine, conf, patchbayPlugins(), { own, env });
  const redo = async (containers: readonly Container[]) => {
    if (again !== undefined) await machine.sh(containers.map(again).join("\n"));
  };
  return {
    net: {
      ...net,
      async del(container, change) {
        await net.del(container, change);
        await redo([container]);
      },
      async gc(valid) {
        await net.gc(valid);
        await redo(machine.containers.filter((one) => !valid.includes(one)));
      },
    },
    async container(name) {
      const container = await machine.container(name);
      if (prepare !== undefined) await machine.sh(prepare(container));
      return container;
    },
    call(command, container) {
      const whole = { cniVersion: "1.1.0", name: "net", ...conf, ...own(container) };
      return { plugin: conf.type, command, container, conf: whole, env };
    },
  };
}
