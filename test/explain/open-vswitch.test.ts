/**
 * Containers on Open vSwitch, whose flows the kernel does not tell: real packets pass or not, and `explain` says that it
 * cannot tell, or what stops them before the switch.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { lacks } from "../support/kernel-features.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { type OpenVswitch, PATIENT, startOpenVswitch } from "../support/open-vswitch.ts";
import { ownShare } from "../support/share.ts";
import { untilTrue } from "../support/until-true.ts";
import { UPLINK } from "../support/way-out.ts";
import { expectStopped, judgedOn, mendAll, setUpOf } from "./judged.ts";
import type { SetUp } from "./set-ups.ts";
import { nft } from "./town.ts";

const BESIDE = ["web", "jug", "tcp/80"], OUT = ["web", "198.18.0.2", "tcp/7000"];
const INTO = ["outside", "web", "tcp/80"], FROM_HOST = ["host", "web", "tcp/80"];
const unknown = (script: string): Partial<SetUp> => ({ verdict: "unknown", mend: { script } });

const ofOvs: SetUp[] = [
  setUpOf("the container's link is down", "ip -n web link set eth0 down", BESIDE, "link-down"),
  setUpOf("the port is down", "ip link set $port down", BESIDE, "no-carrier"),
  setUpOf("the container's default route is gone", "ip -n web route delete default", OUT, "no-route"),
  setUpOf(
    "a neighbour's MAC address is another one's",
    "ip -n web neighbour replace 10.82.0.3 lladdr 02:00:00:00:00:77 dev eth0 nud permanent",
    BESIDE,
    "wrong-neighbour",
  ),
  setUpOf(
    "the gateway's MAC address is another one's",
    "ip -n web neighbour replace 10.82.0.1 lladdr 02:00:00:00:00:77 dev eth0 nud permanent",
    OUT,
    "wrong-neighbour",
  ),
  setUpOf(
    "a firewall within the container",
    `ip netns exec web ${
      nft("table ip own { chain out { type filter hook output priority 0; tcp dport 80 drop; } }")
    }`,
    BESIDE,
    "output-drop",
    { undo: "ip netns exec web nft flush ruleset" },
  ),
  setUpOf("the host's port in the VLAN is down", "ip link set host100 down", FROM_HOST, "leads-away", {
    mend: "none",
    undo: "ip link set host100 up",
  }),
  setUpOf(
    "another VLAN",
    "ovs-vsctl set port $port tag=7",
    BESIDE,
    "other-switch",
    unknown("ovs-vsctl set port $port tag=100"),
  ),
  setUpOf(
    "a flow that drops",
    "ovs-ofctl add-flow ovs0 priority=200,tcp,tp_dst=80,actions=drop",
    BESIDE,
    "other-switch",
    unknown("ovs-ofctl del-flows ovs0 tcp,tp_dst=80"),
  ),
  setUpOf(
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
      await mendAll(judged, one.undo);
    }
  });
});
