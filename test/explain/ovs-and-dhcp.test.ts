/**
 * Containers on Open vSwitch, whose flows the kernel does not tell, and containers whose addresses a DHCP server gives,
 * behind a bridge's port: real packets pass or not, and `explain` says the same, or that it cannot tell.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { type BridgeSegment, serverBehindBridge } from "../support/dhcp/link.ts";
import { OFFER4 } from "../support/dhcp/offer.ts";
import { dnsmasq, serve4 } from "../support/dhcp/servers-v4.ts";
import { type Service, startService } from "../support/dhcp/service.ts";
import { lacks } from "../support/kernel-features.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { type Network, network } from "../support/network.ts";
import { type OpenVswitch, PATIENT, startOpenVswitch } from "../support/open-vswitch.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { ownShare } from "../support/share.ts";
import { serve, type Server } from "../support/traffic.ts";
import { untilTrue } from "../support/until-true.ts";
import { UPLINK } from "../support/way-out.ts";
import { asking, expectPasses, expectStopped, explaining, type Judged } from "./judged.ts";
import type { SetUp } from "./set-ups.ts";
import { nft } from "./town.ts";

/** `web` and `jug`, and whom else they ask; `jug` serves port 80, and `other` port 7000. */
async function judgedOn(machine: Machine, net: Network, other: Container, addresses: Record<string, string> = {}) {
  const containers: Record<string, Container> = { outside: other }, ports: string[] = [], servers: Server[] = [];
  for (const name of ["web", "jug"]) {
    const container = containers[name] = await machine.container(name);
    const { ips: [{ address }], interfaces } = await net.add(container);
    addresses[name] = address.split("/")[0];
    ports.push(interfaces.find(({ name }: { name: string }) => name.startsWith("veth")).name);
    servers.push(await serve(machine, container, "tcp", 80));
  }
  servers.push(await serve(machine, other, "tcp", 7000));
  const sh: Machine["sh"] = (script, options) => machine.sh(`port=${ports[0]}; ${script}`, options);
  const judged: Judged = {
    machine: { ...machine, sh },
    explain: explaining((args) => machine.run([PATCHBAY, ...args])),
    isAnswered: asking(machine, { containers, addresses, askers: { tcp: servers[0]! } }),
  };
  const end = async () => {
    for (const server of servers) await server[Symbol.asyncDispose]();
  };
  return { ...judged, [Symbol.asyncDispose]: end };
}

async function mend({ machine }: Judged, undo = "true"): Promise<void> {
  await machine.sh(`${undo}; nft flush ruleset; ip -n web neighbour flush all nud permanent`);
  await machine.run([PATCHBAY, "repair"]);
}

const setUp = (
  what: string,
  script: string,
  ask: readonly string[],
  code: string,
  more: Partial<SetUp> = {},
): SetUp => ({
  what,
  break: script,
  ask,
  code,
  mend: "printed",
  ...more,
});

const BESIDE = ["web", "jug", "tcp/80"], OUT = ["web", "198.18.0.2", "tcp/7000"];
const INTO = ["outside", "web", "tcp/80"], FROM_HOST = ["host", "web", "tcp/80"];
const unknown = (script: string): Partial<SetUp> => ({ verdict: "unknown", mend: { script } });

const ofOvs: SetUp[] = [
  setUp("the container's link is down", "ip -n web link set eth0 down", BESIDE, "link-down"),
  setUp("the port is down", "ip link set $port down", BESIDE, "no-carrier"),
  setUp("the container's default route is gone", "ip -n web route delete default", OUT, "no-route"),
  setUp(
    "a neighbour's MAC address is another one's",
    "ip -n web neighbour replace 10.82.0.3 lladdr 02:00:00:00:00:77 dev eth0 nud permanent",
    BESIDE,
    "wrong-neighbour",
  ),
  setUp(
    "the gateway's MAC address is another one's",
    "ip -n web neighbour replace 10.82.0.1 lladdr 02:00:00:00:00:77 dev eth0 nud permanent",
    OUT,
    "wrong-neighbour",
  ),
  setUp(
    "a firewall within the container",
    `ip netns exec web ${
      nft("table ip own { chain out { type filter hook output priority 0; tcp dport 80 drop; } }")
    }`,
    BESIDE,
    "output-drop",
    { undo: "ip netns exec web nft flush ruleset" },
  ),
  setUp("the host's port in the VLAN is down", "ip link set host100 down", FROM_HOST, "leads-away", {
    mend: "none",
    undo: "ip link set host100 up",
  }),
  setUp(
    "another VLAN",
    "ovs-vsctl set port $port tag=7",
    BESIDE,
    "other-switch",
    unknown("ovs-vsctl set port $port tag=100"),
  ),
  setUp(
    "a flow that drops",
    "ovs-ofctl add-flow ovs0 priority=200,tcp,tp_dst=80,actions=drop",
    BESIDE,
    "other-switch",
    unknown("ovs-ofctl del-flows ovs0 tcp,tp_dst=80"),
  ),
  setUp(
    "a flow that drops what the host sends",
    "ovs-ofctl add-flow ovs0 priority=200,tcp,tp_dst=80,actions=drop",
    INTO,
    "other-switch",
    unknown("ovs-ofctl del-flows ovs0 tcp,tp_dst=80"),
  ),
];

const VLAN = 100;
const lan = {
  type: "ovs",
  name: "lan",
  bridge: "ovs0",
  vlan: VLAN,
  ipam: {
    type: "host-local",
    ranges: [[{ subnet: "10.82.0.0/24", gateway: "10.82.0.1" }]],
    routes: [{ dst: "0.0.0.0/0" }],
  },
  ...PATIENT,
};

describe.each(["process", "kernel"])("Open vSwitch, datapath: %s", (datapath) => {
  const here = test.skipIf(datapath === "kernel" && lacks("Open vSwitch's datapath"));
  let machine: Machine, ovs: OpenVswitch, judged: Awaited<ReturnType<typeof judgedOn>>;
  beforeAll(async () => {
    if (datapath === "kernel" && lacks("Open vSwitch's datapath")) return;
    machine = await openMachine();
    ovs = await startOpenVswitch(machine);
    await (datapath === "kernel" ? ovs.vsctl("add-br", "ovs0") : ovs.addBridge("ovs0"));
    const outside = await machine.container("outside");
    await machine.sh(`${UPLINK}; ip -n outside route add 10.82.0.0/24 via 198.18.0.1
      ovs-vsctl add-port ovs0 host100 tag=${VLAN} -- set interface host100 type=internal
      sysctl -qw net.ipv6.conf.host100.accept_ra=0 net.ipv4.conf.host100.accept_redirects=0 net.ipv4.ip_forward=1
      ip address add 10.82.0.1/24 dev host100; ip link set host100 up`);
    judged = await judgedOn(machine, network(machine, lan), outside);
  });
  afterAll(async () => {
    for (const each of [judged, ovs, machine]) await each?.[Symbol.asyncDispose]();
  });

  here.each([BESIDE, OUT, INTO, FROM_HOST])("%s %s %s passes, and its flows are not known", async (...ask) => {
    expect(await untilTrue(() => judged.isAnswered(ask), Boolean)).toBe(true);
    const { said, code } = await judged.explain(ask);
    expect({ ...said, steps: [] }).toMatchObject({ verdict: "unknown", cause: { code: "other-switch" } });
    expect(code).toBe(2);
  });

  here.each([BESIDE, OUT])("%s %s %s: a real packet decides", async (...ask) => {
    const { said, code } = await judged.explain([...ask, "--live"]);
    expect(said.live).toMatchObject({ agrees: "decides", verdict: "arrives", text: "it was answered" });
    expect(code).toBe(0);
  });

  here("a real packet shows the rule that drops it behind the switch", async () => {
    await machine.sh("iptables -P FORWARD DROP");
    try {
      expect(await judged.isAnswered(OUT)).toBe(false);
      const { said, code } = await judged.explain([...OUT, "--live"]);
      expect(said.live).toMatchObject({ agrees: "decides", verdict: "stops" });
      expect(said.live!.text).toContain("FORWARD");
      expect(code).toBe(1);
    } finally {
      await machine.sh("iptables -P FORWARD ACCEPT");
    }
  });

  here("a real packet that the switch drops decides nothing", async () => {
    await machine.sh("ovs-ofctl add-flow ovs0 priority=200,tcp,tp_dst=80,actions=drop");
    try {
      expect(await judged.isAnswered(BESIDE)).toBe(false);
      const { said, code } = await judged.explain([...BESIDE, "--live"]);
      expect(said.live).toMatchObject({ agrees: "open" });
      expect(code).toBe(2);
    } finally {
      await machine.sh("ovs-ofctl del-flows ovs0 tcp,tp_dst=80");
    }
  });

  here.each(ownShare(ofOvs))("broken: $what: $code", async (one) => {
    try {
      await expectStopped(judged, one, /unknown/);
    } finally {
      await mend(judged, one.undo);
    }
  });
});

const SERVER = ["web", "192.168.77.1", "tcp/7000"], BEYOND = ["web", "192.0.2.9", "tcp/7000"];

/** Without br_netfilter the host's rules are not asked about what stays on a bridge. */
const asksAboutBridged = existsSync("/proc/sys/net/bridge/bridge-nf-call-iptables");
const judgedByHost: SetUp[] = [
  setUp("iptables' FORWARD judges frames of bridges", "iptables -P FORWARD DROP", SERVER, "forward-drop"),
  setUp(
    "iptables' FORWARD drops what leaves by the bridge, and no answer",
    "iptables -A FORWARD -d 192.168.77.1 -j DROP",
    SERVER,
    "forward-drop",
  ),
];

const ofDhcp: SetUp[] = [
  setUp("the address is gone", "ip -n web -4 address flush dev eth0", SERVER, "no-address"),
  setUp("the server's route is gone", "ip -n web route delete default", BEYOND, "no-route"),
  setUp("the container's link is down", "ip -n web link set eth0 down", SERVER, "link-down"),
  setUp("the bridge is down", "ip link set br0 down", SERVER, "link-down"),
  ...asksAboutBridged ? judgedByHost : [],
  setUp(
    "a rule of bridges drops what leaves by the port",
    nft("table bridge other { chain c { type filter hook postrouting priority 0; oifname p0 drop; } }"),
    SERVER,
    "bridge-drop",
  ),
  setUp(
    "both ports are isolated",
    "for each in p0 $port; do ip link set $each type bridge_slave isolated on; done",
    SERVER,
    "port-isolated",
    { mend: { script: "for each in p0 $port; do ip link set $each type bridge_slave isolated off; done" } },
  ),
  setUp(
    "the port to the server is down",
    "ip link set p0 down",
    SERVER,
    "nobody-answers",
    unknown("ip link set p0 up"),
  ),
];

describe("a network with a DHCP server behind a port of its bridge", () => {
  let segment: BridgeSegment, service: Service, judged: Awaited<ReturnType<typeof judgedOn>>;
  beforeAll(async () => {
    segment = await serverBehindBridge();
    await serve4(dnsmasq, segment.site, { ...OFFER4, leaseSeconds: 1000 });
    await segment.machine.sh("ip -n server address add 192.0.2.9/32 dev lo");
    service = await startService(segment);
    judged = await judgedOn(segment.machine, service.network(), segment.site.namespace);
  });
  afterAll(async () => {
    for (const each of [judged, service, segment]) await each?.[Symbol.asyncDispose]();
  });

  const passes = [[SERVER, "leaves"], [BEYOND, "leaves"], [BESIDE, "arrives"]] as const;
  test.each(passes)("%j: %s", async (ask, verdict) => await expectPasses(judged, ask, verdict));

  test.each(ownShare(ofDhcp))("broken: $what: $code", async (one) => {
    try {
      await expectStopped(judged, one);
    } finally {
      await mend(judged, one.undo);
    }
  });
});
