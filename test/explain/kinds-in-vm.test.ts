/**
 * Networks of kinds that not every kernel has: VLANs of a bridge, ipvlan, vlan, dummy, VRF and Open vSwitch. What is asked
 * is tried with real packets first.
 */
import { afterEach, expect, test } from "bun:test";
import type { ExplanationDocument } from "../../src/explain/explanation.schema.ts";
import { commandsOn, networkFiles } from "../support/commands.ts";
import { lacks } from "../support/kernel-features.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { PATIENT, startOpenVswitch } from "../support/open-vswitch.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { serve } from "../support/traffic.ts";
import { untilTrue } from "../support/until-true.ts";
import { UPLINK } from "../support/way-out.ts";

let machine: Machine;
const { directory, configure } = networkFiles();
const { patchbay, must } = commandsOn(() => machine, () => directory);
afterEach(() => machine?.[Symbol.asyncDispose]());

const ipam = (subnet: string, more: object = {}) => ({
  type: "host-local",
  ranges: [[{ subnet, ...more }]],
  routes: [{ dst: "0.0.0.0/0" }],
});

async function openHost(prepare = "true"): Promise<Container> {
  machine = await openMachine();
  const outside = await machine.container("outside");
  await machine.sh(`${UPLINK}; ${prepare}`);
  return outside;
}

/** The containers of each network, in the order of their addresses. */
async function attach(networks: Record<string, { plugins: object[]; containers: string[] }>): Promise<void> {
  for (const [name, { plugins, containers }] of Object.entries(networks)) {
    configure(name, plugins);
    for (const container of containers) {
      await machine.container(container);
      await must("add", name, container);
    }
  }
}

type Ask = readonly [from: string, to: string, address: string];

/** `as`: the VRF of the sender. */
async function reaches([from, , address]: Ask, as?: string): Promise<boolean> {
  const place = from === "host" ? [] : ["ip", "netns", "exec", from];
  const ping = ["ping", "-nc1", "-W1", ...as === undefined ? [] : ["-I", as], address];
  return (await machine.run([...place, ...ping])).code === 0;
}

async function explain(from: string, ...to: readonly string[]): Promise<ExplanationDocument> {
  // A stranger has another address than the one that is tried.
  const sender = from === "outside" ? "198.18.0.2" : from;
  const { stdout, stderr } = await patchbay(["explain", sender, ...to, "--json"]);
  if (stdout === "") throw new Error(stderr);
  return JSON.parse(stdout)[0];
}

async function passes(ask: Ask, verdict: "arrives" | "leaves"): Promise<void> {
  expect({ ask, isReached: await untilTrue(() => reaches(ask), Boolean) }).toEqual({ ask, isReached: true });
  expect(await explain(ask[0], ask[1])).toMatchObject({ verdict, ways: { stopped: 0 } });
}

/** Returns the lines that are printed to mend it. */
async function stops(ask: Ask, code: string): Promise<string[]> {
  expect({ ask, isReached: await reaches(ask) }).toEqual({ ask, isReached: false });
  const said = await explain(ask[0], ask[1]);
  expect({ ask, ...said, steps: [] }).toMatchObject({ ask, verdict: "stops", cause: { code } });
  return said.cause!.mend.flatMap((remedy) => "run" in remedy ? remedy.run : []);
}

async function mends(ask: Ask, code: string, verdict: "arrives" | "leaves"): Promise<void> {
  const [line] = await stops(ask, code);
  expect({ ask, line: typeof line }).toEqual({ ask, line: "string" });
  await machine.sh(line!.replaceAll(/^patchbay /g, `${PATCHBAY} `));
  await passes(ask, verdict);
}

/** Another switch decides: nothing is claimed, whether packets get there or not. */
async function isLeftOpen(ask: Ask, isReached: boolean, as?: string): Promise<void> {
  const found = isReached ? await untilTrue(() => reaches(ask, as), Boolean) : await reaches(ask, as);
  expect({ ask, isReached: found }).toEqual({ ask, isReached });
  expect({ ask, ...await explain(ask[0], ask[1]), steps: [] }).toMatchObject({
    ask,
    verdict: "unknown",
    cause: { code: "other-switch" },
  });
}

const tagged = (vlan: number, subnet: string, more: object = {}) => [{
  type: "bridge",
  bridge: "vl0",
  isGateway: true,
  ipMasq: true,
  ...vlan > 0 && { vlan },
  ipam: ipam(subnet, more),
}];
const vlanTest = test.skipIf(lacks("bridge VLAN filtering") || lacks("VLAN links"));
const TOWN = {
  red: {
    plugins: [...tagged(100, "10.60.0.0/24", { rangeEnd: "10.60.0.50" }), {
      type: "portmap",
      capabilities: { portMappings: true },
    }],
    containers: ["r1", "r2"],
  },
  blue: { plugins: tagged(200, "10.61.0.0/24"), containers: ["b1"] },
  green: {
    plugins: [{
      type: "bridge",
      bridge: "vl0",
      vlan: 300,
      ipam: ipam("10.60.0.0/24", { rangeStart: "10.60.0.100" }),
    }],
    containers: ["g1"],
  },
  plain: { plugins: tagged(0, "10.62.0.0/24"), containers: ["p1"] },
};
const OUT = ["r1", "198.18.0.2", "198.18.0.2"] as const, BESIDE = ["r1", "r2", "10.60.0.3"] as const;
const BACK = ["r2", "r1", "10.60.0.2"] as const, IN = ["host", "r1", "10.60.0.2"] as const;
const AT_BRIDGE = ["p1", "10.62.0.1", "10.62.0.1"] as const;
const PORT =
  `port=$(ip -o link | sed -n "s/^$(ip netns exec r1 cat /sys/class/net/eth0/iflink): \\([^@]*\\)@.*/\\1/p")`;
const GATEWAYS_PORT = "port=$(ip -o link | sed -n 's/.* vl0.100@\\([^:]*\\):.*/\\1/p')";

vlanTest("VLANs of a bridge: what passes is not called broken", async () => {
  await openHost();
  await attach(TOWN);
  await passes(BESIDE, "arrives");
  await passes(OUT, "leaves");
  await passes(["r1", "10.60.0.1", "10.60.0.1"], "arrives");
  await passes(IN, "arrives");
  await passes(["r1", "b1", "10.61.0.2"], "arrives");
  await passes(AT_BRIDGE, "arrives");
  await passes(["p1", "b1", "10.61.0.2"], "arrives");
  await passes(["host", "p1", "10.62.0.2"], "arrives");
  // They have one subnet, so the frame is for the other directly.
  expect(await stops(["r1", "g1", "10.60.0.100"], "vlan-mismatch")).toEqual([]);
});

vlanTest("a published port of a container in a VLAN", async () => {
  const outside = await openHost(), r1 = await machine.container("r1");
  await attach({ red: { ...TOWN.red, containers: [] } });
  await must("add", "red", "r1", "--ports", "8080:80");
  await using server = await serve(machine, r1, "tcp", 80);
  const asked = [[outside, "outside", "198.18.0.1"], [undefined, "host", "127.0.0.1"]] as const;
  for (const [place, from, address] of asked) {
    expect(await server.ask(place, address, 8080)).toBeDefined();
    expect(await explain(from, from === "host" ? address : "host", "tcp/8080")).toMatchObject({ verdict: "arrives" });
  }
});

vlanTest("what breaks a VLAN, and what mends it", async () => {
  await openHost();
  await attach(TOWN);
  const rows: [how: string, ask: Ask, code: string, verdict: "arrives" | "leaves"][] = [
    [`${PORT}; bridge vlan del vid 100 dev $port`, BESIDE, "vlan-mismatch", "arrives"],
    [`${PORT}; bridge vlan del vid 100 dev $port`, BACK, "vlan-mismatch", "arrives"],
    [`${PORT}; bridge vlan del vid 100 dev $port`, IN, "vlan-mismatch", "arrives"],
    // Frames for the container keep their tag.
    [`${PORT}; bridge vlan add vid 100 dev $port pvid`, BACK, "vlan-mismatch", "arrives"],
    [`${GATEWAYS_PORT}; bridge vlan del vid 100 dev $port`, OUT, "vlan-mismatch", "leaves"],
    [`${GATEWAYS_PORT}; bridge vlan del vid 100 dev $port`, IN, "vlan-mismatch", "arrives"],
    [`${GATEWAYS_PORT}; bridge link set dev $port state 0`, OUT, "port-blocked", "leaves"],
    ["ip link set vl0.100 down", OUT, "no-carrier", "leaves"],
    ["ip address flush dev vl0.100", OUT, "gateway-missing", "leaves"],
    ["bridge vlan del vid 1 dev vl0 self", AT_BRIDGE, "vlan-mismatch", "arrives"],
    ["bridge vlan del vid 1 dev vl0 self", ["host", "p1", "10.62.0.2"], "vlan-mismatch", "arrives"],
  ];
  for (const [how, ask, code, verdict] of rows) {
    await machine.sh(how);
    await mends(ask, code, verdict);
  }
  // Who is in another VLAN is so on purpose.
  await machine.sh(`${PORT}; bridge vlan del vid 100 dev $port; bridge vlan add vid 300 dev $port pvid untagged`);
  expect(await stops(BESIDE, "vlan-mismatch")).toEqual([]);
});

vlanTest("a VLAN link of the host upon the bridge is the gateway", async () => {
  await openHost();
  await attach(TOWN);
  await machine.sh(`ip link delete vl0.100; ip link add link vl0 name vl0.100 type vlan id 100
    ip address add 10.60.0.1/24 dev vl0.100; ip link set vl0.100 up`);
  await mends(OUT, "vlan-mismatch", "leaves");
  await passes(IN, "arrives");
  await machine.sh("bridge vlan del vid 100 dev vl0 self");
  await mends(IN, "vlan-mismatch", "arrives");
});

const SIDE = ["v1", "v2", "198.18.0.51"] as const, ABOVE = ["v1", "198.18.0.1", "198.18.0.1"] as const;

test.skipIf(lacks("ipvlan links"))("ipvlan: outside and one another, but not the host", async () => {
  const plugins = [{ type: "ipvlan", master: "eth1", ipam: ipam("198.18.0.0/24", { rangeStart: "198.18.0.50" }) }];
  await openHost();
  await attach({ iv: { plugins, containers: ["v1", "v2"] } });
  const out = ["v1", "198.18.0.2", "198.18.0.2"] as const, down = ["host", "v1", "198.18.0.50"] as const;
  await passes(out, "leaves");
  await passes(SIDE, "arrives");
  await passes(["outside", "v1", "198.18.0.50"], "arrives");
  expect(await stops(ABOVE, "macvlan-host")).toEqual([]);
  expect(await stops(down, "macvlan-host")).toEqual([]);
  await machine.sh("ip link set eth1 down");
  await mends(out, "link-down", "leaves");
  await machine.sh(`ip link add shim link eth1 type ipvlan mode l2; ip link set shim up
    ip address add 198.18.0.200/32 dev shim; ip route add 198.18.0.50 dev shim`);
  await passes(down, "arrives");
  await passes(["v1", "198.18.0.200", "198.18.0.200"], "arrives");
  await passes(ABOVE, "arrives");
});

test.skipIf(lacks("ipvlan links"))("ipvlan in mode l3, which asks no neighbour", async () => {
  const plugins = [{ type: "ipvlan", mode: "l3", master: "eth1", ipam: ipam("10.63.0.0/24") }];
  const containers = ["v1", "v2"], other = [{ ...plugins[0]!, ipam: ipam("10.64.0.0/24") }];
  await openHost(`ip netns exec outside sysctl -qw net.ipv4.ip_forward=1
    ip -n outside route add 10.63.0.0/24 via 198.18.0.1`);
  await attach({ iv: { plugins, containers }, far: { plugins: other, containers: ["v3"] } });
  await passes(["v1", "198.18.0.2", "198.18.0.2"], "leaves");
  await passes(["v1", "v2", "10.63.0.3"], "arrives");
  await passes(["v1", "v3", "10.64.0.2"], "arrives");
  await passes(["outside", "v1", "10.63.0.2"], "arrives");
  // By the router outside, which leads back to the link.
  await passes(["host", "v1", "10.63.0.2"], "leaves");
  expect(await reaches(ABOVE)).toBe(true);
  expect(await explain(ABOVE[0], ABOVE[1])).toMatchObject({
    verdict: "unknown",
    cause: { code: "answer-elsewhere" },
  });
  await machine.sh("iptables -A OUTPUT -s 10.63.0.2 -d 198.18.0.2 -j DROP");
  await mends(["v1", "198.18.0.2", "198.18.0.2"], "output-drop", "leaves");
});

test.skipIf(lacks("VLAN links"))("vlan: out with its tag", async () => {
  await openHost(`ip -n outside link add link eth0 name eth0.7 type vlan id 7; ip -n outside link set eth0.7 up
    ip -n outside address add 10.7.0.1/24 dev eth0.7; ip netns exec outside sysctl -qw net.ipv4.ip_forward=1`);
  const plugins = [{ type: "vlan", master: "eth1", vlanId: 7, ipam: ipam("10.7.0.0/24") }];
  await attach({ tag: { plugins, containers: ["t1"] } });
  const out = ["t1", "10.7.0.1", "10.7.0.1"] as const;
  await passes(out, "leaves");
  // By the router, which is in both.
  await passes(["host", "t1", "10.7.0.2"], "leaves");
  await machine.sh("ip -n t1 link set eth0 down");
  await mends(out, "link-down", "leaves");
});

test.skipIf(lacks("dummy links"))("dummy: nothing gets out, or in", async () => {
  await openHost();
  await attach({ dum: { plugins: [{ type: "dummy", ipam: ipam("10.8.0.0/24") }], containers: ["d1"] } });
  expect(await stops(["d1", "198.18.0.2", "198.18.0.2"], "nobody-answers")).toEqual([]);
  expect(await stops(["host", "d1", "10.8.0.2"], "nobody-answers")).toEqual([]);
});

test.skipIf(lacks("VRF links"))("VRF: of a container's link, and of a bridge", async () => {
  const plugins = [{ ...tagged(0, "10.9.0.0/24", { rangeEnd: "10.9.0.50" })[0], bridge: "pl0" }];
  const red = [{ ...plugins[0], ipam: ipam("10.9.0.0/24", { rangeStart: "10.9.0.100" }) }, {
    type: "vrf",
    vrfname: "red",
  }];
  await openHost();
  await attach({ plain: { plugins, containers: ["c1"] }, red: { plugins: red, containers: ["c2"] } });
  await isLeftOpen(["c2", "198.18.0.2", "198.18.0.2"], false);
  await isLeftOpen(["c2", "198.18.0.2", "198.18.0.2"], true, "red");
  await isLeftOpen(["c1", "c2", "10.9.0.100"], true);
  await isLeftOpen(["host", "c2", "10.9.0.100"], true);
  await machine.sh("ip link add blue type vrf table 10; ip link set blue up; ip link set pl0 master blue");
  await isLeftOpen(["c1", "10.9.0.1", "10.9.0.1"], true);
  await isLeftOpen(["c1", "198.18.0.2", "198.18.0.2"], false);
});

for (const datapath of ["kernel", "process"]) {
  const needs = datapath === "kernel" ? "Open vSwitch's datapath" : undefined;
  test.skipIf(lacks(needs))(`Open vSwitch decides, in a ${datapath}`, async () => {
    const ovs = (vlan: number, more: object) => [{
      ...{ type: "ovs", bridge: "ovs0", vlan, ...PATIENT },
      ipam: ipam("10.82.0.0/24", more),
    }];
    await openHost("sysctl -qw net.ipv4.ip_forward=1; ip -n outside route add 10.82.0.0/24 via 198.18.0.1");
    await using vswitch = await startOpenVswitch(machine);
    if (datapath === "process") await vswitch.addBridge("ovs0");
    else await vswitch.vsctl("add-br", "ovs0");
    await vswitch.vsctl("add-port", "ovs0", "in0", "tag=100", "--", "set", "interface", "in0", "type=internal");
    await machine.sh("ip address add 10.82.0.1/24 dev in0; ip link set in0 up");
    await attach({
      lan: { plugins: ovs(100, { rangeEnd: "10.82.0.50" }), containers: ["o1", "o2"] },
      other: { plugins: ovs(200, { rangeStart: "10.82.0.100" }), containers: ["o3"] },
    });
    await isLeftOpen(["o1", "198.18.0.2", "198.18.0.2"], true);
    await isLeftOpen(["o1", "10.82.0.1", "10.82.0.1"], true);
    await isLeftOpen(["o1", "o2", "10.82.0.3"], true);
    await isLeftOpen(["o1", "o3", "10.82.0.100"], false);
    await isLeftOpen(["host", "o1", "10.82.0.2"], true);
    await isLeftOpen(["outside", "o1", "10.82.0.2"], true);
  });
}
