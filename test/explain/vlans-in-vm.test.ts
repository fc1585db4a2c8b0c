/** VLANs of a bridge, which not every kernel has. What is asked is tried with real packets first. */
import { expect, test } from "bun:test";
import { lacks } from "../support/kernel-features.ts";
import { serve } from "../support/traffic.ts";
import { type Ask, ipam, tagged, triedByEchoes } from "./tried.ts";

const { machine, must, openHost, attach, explain, passes, stops, mends } = triedByEchoes();

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
  const outside = await openHost(), r1 = await machine().container("r1");
  await attach({ red: { ...TOWN.red, containers: [] } });
  await must("add", "red", "r1", "--ports", "8080:80");
  await using server = await serve(machine(), r1, "tcp", 80);
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
    await machine().sh(how);
    await mends(ask, code, verdict);
  }
  // Who is in another VLAN is so on purpose.
  await machine().sh(`${PORT}; bridge vlan del vid 100 dev $port; bridge vlan add vid 300 dev $port pvid untagged`);
  expect(await stops(BESIDE, "vlan-mismatch")).toEqual([]);
});

vlanTest("a VLAN link of the host upon the bridge is the gateway", async () => {
  await openHost();
  await attach(TOWN);
  await machine().sh(`ip link delete vl0.100; ip link add link vl0 name vl0.100 type vlan id 100
    ip address add 10.60.0.1/24 dev vl0.100; ip link set vl0.100 up`);
  await mends(OUT, "vlan-mismatch", "leaves");
  await passes(IN, "arrives");
  await machine().sh("bridge vlan del vid 100 dev vl0 self");
  await mends(IN, "vlan-mismatch", "arrives");
});

/** A machine behind a port of the bridge, which takes frames of the VLAN with their tag. */
function trunk(bridge: string, tag: number, address: string): string {
  return `ip link add ${bridge}up type veth peer name eth0 netns far; ip link set ${bridge}up master ${bridge} up
    ip -n far link set eth0 up; ip -n far link add link eth0 name tagged type vlan id ${tag}
    ip -n far address add ${address} dev tagged; ip -n far link set tagged up`;
}

vlanTest("a stranger takes frames with their tag, and answers with it", async () => {
  await openHost();
  await machine().container("far");
  await attach(TOWN);
  await machine().sh(`${trunk("vl0", 100, "10.60.0.77/24")}
    bridge vlan del vid 1 dev vl0up; bridge vlan add vid 100 dev vl0up`);
  await passes(["r1", "10.60.0.77", "10.60.0.77"], "leaves");
  await passes(["host", "10.60.0.77", "10.60.0.77"], "leaves");
});

vlanTest("a bridge that does not filter VLANs hands a stranger the host's tag", async () => {
  await openHost();
  await machine().container("far");
  await machine().sh(`ip link add flat type bridge; ip link set flat up; ${trunk("flat", 7, "10.70.0.2/24")}
    ip link add link flat name flat.7 type vlan id 7; ip address add 10.70.0.1/24 dev flat.7; ip link set flat.7 up`);
  await passes(["host", "10.70.0.2", "10.70.0.2"], "leaves");
});
