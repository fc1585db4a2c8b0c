/** netavark's drivers macvlan and ipvlan. */
import { expect, test } from "bun:test";
import { lacks } from "../../support/kernel-features.ts";
import { leftSince, momentOf } from "../../support/leftovers.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { attach, bridgeNetwork, containerIn } from "../../support/netavark/attached.ts";
import { ND } from "../../support/netavark/names.ts";
import { PATCHBAY } from "../../support/plugins.ts";

const KEPT = new RegExp(`^[-+] file ${ND}/`);

async function openWithParent(): Promise<Machine> {
  const machine = await openMachine();
  await machine.sh(
    "ip link add parent0 type veth peer name outside0; ip link set parent0 up; ip link set outside0 up",
  );
  return machine;
}

const network = (driver: string, options: Record<string, string>) =>
  bridgeNetwork(8, {
    driver,
    options,
    network_interface: "parent0",
    routes: [{ destination: "10.99.0.0/16", gateway: "10.88.0.2", metric: 7 }, {
      destination: "10.98.0.0/16",
      route_type: "blackhole",
    }],
  });

for (
  const { driver, mode, isMissing } of [
    { driver: "macvlan", mode: "private", isMissing: false },
    { driver: "ipvlan", mode: "l2", isMissing: lacks("ipvlan links") },
  ]
) {
  test.skipIf(isMissing)(`${driver}: link, addresses, routes, and nothing stays`, async () => {
    await using machine = await openWithParent();
    const container = await machine.container();
    await machine.sh("ip link set lo up", { in: container });
    const before = await momentOf(machine);
    const input = containerIn([{
      network: network(driver, { mode, mtu: "1400" }),
      attachment: driver === "macvlan" ? { static_mac: "02-00-00-aa-bb-cc" } : {},
    }]);
    const { code, json, stderr } = await attach(machine, "setup", container, input);
    expect([code, stderr]).toEqual([0, ""]);
    const link = JSON.parse(await machine.sh("ip -j -d link show eth0", { in: container }))[0];
    expect(link).toMatchObject({ mtu: 1400, linkinfo: { info_kind: driver, info_data: { mode } } });
    if (driver === "macvlan") expect(link.address).toBe("02:00:00:aa:bb:cc");
    expect(json.net8.interfaces.eth0.mac_address).toBe(link.address);
    const routes = await machine.sh("ip route; ip -6 route", { in: container });
    for (
      const line of [
        "default via 10.88.0.1 dev eth0 proto static metric 99",
        "default via fd00:8::1 dev eth0 proto static metric 99",
        "10.99.0.0/16 via 10.88.0.2 dev eth0 proto static metric 7",
        "blackhole 10.98.0.0/16 proto static",
      ]
    ) {
      expect(routes).toContain(line);
    }
    expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stdout: "", stderr: "" });
    expect(await leftSince(before, machine, KEPT)).toEqual([]);
  });
}

test("without a parent, the link of the default route; without one, an error and nothing made", async () => {
  await using machine = await openWithParent();
  const container = await machine.container(), before = await momentOf(machine);
  const input = containerIn([{ network: { ...network("macvlan", {}), network_interface: "" } }]);
  expect((await attach(machine, "setup", container, input)).json).toEqual({
    error: "failed to get default route interface",
  });
  expect(await leftSince(before, machine, KEPT)).toEqual([]);
  await machine.sh("ip addr add 192.0.2.1/24 dev parent0; ip route add default via 192.0.2.2");
  expect(await attach(machine, "setup", container, input)).toMatchObject({ code: 0 });
  expect(await machine.sh("ip -br link show lo", { in: container })).toContain("UP");
  expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0 });
  await attach(machine, "setup", container, input);
  await machine.sh("ip link del eth0", { in: container });
  expect((await attach(machine, "teardown", container, input)).json).toEqual({
    error: "failed to delete container macvlan eth0: Netlink error: No such device (os error 19)",
  });
});

test("routes by one gateway through two links are each link's own", async () => {
  await using machine = await openWithParent();
  const container = await machine.container();
  const calls = [8, 7].map((number, index) => {
    const named = { name: `net${number}`, network_interface: "parent0", driver: "macvlan" };
    const routes = [{ destination: "10.99.0.0/16", gateway: "10.88.0.2" }];
    const attachment = { interface_name: `eth${index}` };
    return containerIn([{ network: bridgeNetwork(8, { ...named, routes }), attachment }], number);
  });
  const links = async (destination: string) =>
    [...(await machine.sh(`ip route show ${destination}`, { in: container })).matchAll(/dev (\S+)/g)].map((
      [, link],
    ) => link)
      .sort();
  for (const input of calls) expect(await attach(machine, "setup", container, input)).toMatchObject({ code: 0 });
  for (const each of ["default", "10.99.0.0/16"]) expect(await links(each)).toEqual(["eth0", "eth1"]);
  await machine.sh("ip route del default dev eth1; ip route del 10.99.0.0/16 dev eth0", { in: container });
  const told = (await machine.run([PATCHBAY, "inspect"])).stdout;
  expect(told.match(/route .* is missing/g)).toEqual([
    "route 0.0.0.0/0 via 10.88.0.1 metric 99 through eth1 is missing",
    "route 10.99.0.0/16 via 10.88.0.2 metric 100 through eth0 is missing",
  ]);
  await machine.sh(`${PATCHBAY} repair`);
  for (const each of ["default", "10.99.0.0/16"]) expect(await links(each)).toEqual(["eth0", "eth1"]);
  expect(await attach(machine, "teardown", container, calls[0]!)).toMatchObject({ code: 0, stderr: "" });
  for (const each of ["default", "10.99.0.0/16"]) expect(await links(each)).toEqual(["eth1"]);
  expect(await attach(machine, "teardown", container, calls[1]!)).toMatchObject({ code: 0, stderr: "" });
});
