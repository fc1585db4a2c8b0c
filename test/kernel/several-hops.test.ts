/**
 * Routes to one destination through several gateways. The kernel joins IPv6 routes into one with several next hops,
 * also across links; IPv4 routes stay apart unless somebody joins them.
 */
import { expect, test } from "bun:test";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { type Network, network } from "../support/network.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { lacks } from "../support/kernel-features.ts";

const addresses = [{ address: "10.1.0.2/24" }, { address: "fd01::2/64" }];
const v4 = [{ dst: "10.9.0.0/16", gw: "10.1.0.1" }, { dst: "10.9.0.0/16", gw: "10.1.0.3" }];
const v6 = [{ dst: "fd09::/32", gw: "fd01::1" }, { dst: "fd09::/32", gw: "fd01::3" }];

function bridge(machine: Machine, routes: object[], conf: Record<string, unknown> = {}): Network {
  return network(machine, { type: "bridge", ipam: { type: "static", addresses, routes }, ...conf });
}

async function patchbay(machine: Machine, verb: "inspect" | "repair") {
  const { code, stdout } = await machine.run([PATCHBAY, verb, "--json"]);
  const [{ plugins }] = JSON.parse(stdout);
  // deno-lint-ignore no-explicit-any
  const states = plugins.flatMap(({ resources }: any) => resources.map(({ state }: any) => state));
  return { code, states: [...new Set(states)].sort() };
}

const routesTo = (machine: Machine, container: Container, dst: string) =>
  machine.sh(`ip route show table all ${dst} | grep -o 'via [^ ]* dev [^ ]*' | sort`, { in: container });

const HOPS4 = "via 10.1.0.1 dev eth0\nvia 10.1.0.3 dev eth0\n",
  HOPS6 = "via fd01::1 dev eth0\nvia fd01::3 dev eth0\n";

/** It is as it was made, and every verb says so. */
async function isRight(machine: Machine, container: Container, net: Network): Promise<void> {
  expect(await routesTo(machine, container, "10.9.0.0/16")).toBe(HOPS4);
  expect(await routesTo(machine, container, "fd09::/32")).toBe(HOPS6);
  await net.check(container);
  expect(await patchbay(machine, "inspect")).toEqual({ code: 0, states: ["ok"] });
  expect(await patchbay(machine, "repair")).toEqual({ code: 0, states: ["ok"] });
}

test("CHECK, inspect and repair find each next hop, and CHECK names the one that is missing", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const net = bridge(machine, [...v4, ...v6]);
  await net.add(container);
  await isRight(machine, container, net);
  for (const [dst, gateway] of [["10.9.0.0/16", "10.1.0.1"], ["fd09::/32", "fd01::1"], ["fd09::/32", "fd01::3"]]) {
    await machine.sh(`ip route del ${dst} via ${gateway}`, { in: container });
    expect((await net.call("CHECK", container)).json.msg).toBe(
      `Expected Route ${dst} via ${gateway} not found in routing table`,
    );
    expect(await patchbay(machine, "repair")).toEqual({ code: 0, states: ["mended", "ok"] });
    await isRight(machine, container, net);
  }
  await machine.sh("rm -r /run/patchbay");
  await net.check(container);
  await net.del(container);
  expect(await machine.sh("ip -o link show", { in: container })).not.toMatch(/eth0/);
});

test("version 4: a route that somebody made with both next hops is as good as two", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const net = bridge(machine, [...v4, ...v6]);
  await net.add(container);
  await machine.sh(
    `ip route del 10.9.0.0/16; ip route del 10.9.0.0/16
    ip route add 10.9.0.0/16 nexthop via 10.1.0.1 nexthop via 10.1.0.3`,
    { in: container },
  );
  await isRight(machine, container, net);
  await net.del(container);
});

test("two interfaces with a default route each, which the kernel makes one of", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const nets = ["eth0", "eth1"].map((ifName, index) => {
    const ipam = {
      type: "static",
      addresses: [{ address: `fd0${index}::2/64`, gateway: `fd0${index}::1` }],
      routes: [{ dst: "::/0" }],
    };
    return { ifName, net: network(machine, { type: "bridge", name: ifName, bridge: `br-${ifName}`, ipam }) };
  });
  const hops = () => routesTo(machine, container, "default");
  for (const { ifName, net } of nets) await net.add(container, { ifName });
  expect(await machine.sh("ip -6 -j route show default | grep -c nexthops", { in: container })).toBe("1\n");
  expect(await hops()).toBe("via fd00::1 dev eth0\nvia fd01::1 dev eth1\n");
  for (const { ifName, net } of nets) await net.check(container, { ifName });
  expect((await machine.run([PATCHBAY, "repair"])).code).toBe(0);
  expect(await hops()).toBe("via fd00::1 dev eth0\nvia fd01::1 dev eth1\n");
  const [first, second] = nets;
  await first!.net.del(container, { ifName: "eth0" });
  expect(await hops()).toBe("via fd01::1 dev eth1\n");
  await second!.net.check(container, { ifName: "eth1" });
  await second!.net.del(container, { ifName: "eth1" });
  expect(await hops().catch(() => "")).toBe("");
});

/** Plugins that move routes, next hop by next hop. */
const movers = { sbr: { type: "sbr" }, vrf: { type: "vrf", vrfname: "blue" } };

for (const [type, conf] of Object.entries(movers)) {
  const unsuited = lacks(type === "vrf" ? "VRF links" : undefined);
  test.skipIf(unsuited)(`${type} takes every next hop along, and misses each`, async () => {
    await using machine = await openMachine();
    const container = await machine.container();
    const net = bridge(machine, [...v4, ...v6]);
    const prevResult = await net.add(container);
    const mover = network(machine, { ...conf, name: "net" }, undefined, { own: () => ({ prevResult }) });
    await mover.add(container);
    for (const gateway of [undefined, "fd01::1", "fd01::3"]) {
      if (gateway !== undefined) {
        const table = await machine.sh("ip -6 route show table all fd09::/32 | grep -o 'table [^ ]*'", {
          in: container,
        });
        await machine.sh(`ip route del fd09::/32 via ${gateway} ${table}`, { in: container });
        expect((await mover.call("CHECK", container)).json.msg).toMatch(
          new RegExp(`^route fd09::/32 via ${gateway} .*is missing`),
        );
        expect(await patchbay(machine, "repair")).toMatchObject({ code: 0, states: ["mended", "ok"] });
      }
      await mover.check(container);
      await isRight(machine, container, net);
    }
    await mover.del(container);
    await net.del(container);
  });
}

test("sbr misses it when a next hop is back in the main table", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const net = bridge(machine, v6);
  const prevResult = await net.add(container);
  const sbr = network(machine, { type: "sbr", name: "net" }, undefined, { own: () => ({ prevResult }) });
  await sbr.add(container);
  await machine.sh(
    "ip route add fd01::/64 dev eth0; ip route add fd09::/32 via fd01::3; ip route del fd01::/64 dev eth0 table main",
    { in: container },
  );
  expect((await sbr.call("CHECK", container)).json.msg).toBe(
    "route fd09::/32 via fd01::3 metric 1024 by eth0 is back in the main table",
  );
  expect(await patchbay(machine, "repair")).toEqual({ code: 0, states: ["mended", "ok"] });
  await sbr.check(container);
});

test.skipIf(lacks("VRF links"))("version 4: a VRF's link keeps a route with several next hops", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const net = bridge(machine, []);
  const prevResult = await net.add(container);
  await machine.sh("ip route add 10.9.0.0/16 nexthop via 10.1.0.1 nexthop via 10.1.0.3", { in: container });
  const vrf = network(machine, { ...movers.vrf, name: "net" }, undefined, { own: () => ({ prevResult }) });
  await vrf.add(container);
  expect(await routesTo(machine, container, "10.9.0.0/16")).toBe(HOPS4);
  await vrf.check(container);
  await machine.sh("ip route del 10.9.0.0/16 vrf blue", { in: container });
  expect((await vrf.call("CHECK", container)).json.msg).toMatch(
    /^route 10.9.0.0\/16 via 10.1.0.1 via 10.1.0.3 by eth0 is missing/,
  );
  expect((await machine.run([PATCHBAY, "repair"])).code).toBe(0);
  await vrf.check(container);
});
