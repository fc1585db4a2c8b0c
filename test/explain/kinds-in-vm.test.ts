/**
 * Networks of kinds that not every kernel has: ipvlan, vlan, dummy, VRF and Open vSwitch. What is asked is tried with real
 * packets first.
 */
import { expect, test } from "bun:test";
import { lacks } from "../support/kernel-features.ts";
import { PATIENT, startOpenVswitch } from "../support/open-vswitch.ts";
import { ipam, tagged, triedByEchoes } from "./tried.ts";

const { machine, openHost, attach, reaches, explain, passes, stops, mends, isLeftOpen } = triedByEchoes();

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
  await machine().sh("ip link set eth1 down");
  await mends(out, "link-down", "leaves");
  await machine().sh(`ip link add shim link eth1 type ipvlan mode l2; ip link set shim up
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
  await machine().sh("iptables -A OUTPUT -s 10.63.0.2 -d 198.18.0.2 -j DROP");
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
  await machine().sh("ip -n t1 link set eth0 down");
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
  await machine().sh("ip link add blue type vrf table 10; ip link set blue up; ip link set pl0 master blue");
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
    await using vswitch = await startOpenVswitch(machine());
    if (datapath === "process") await vswitch.addBridge("ovs0");
    else await vswitch.vsctl("add-br", "ovs0");
    await vswitch.vsctl("add-port", "ovs0", "in0", "tag=100", "--", "set", "interface", "in0", "type=internal");
    await machine().sh("ip address add 10.82.0.1/24 dev in0; ip link set in0 up");
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
