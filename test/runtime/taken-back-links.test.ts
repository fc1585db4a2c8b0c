/** An ADD that fails takes back what it made, and nothing that was there: neither others' links nor others' attachments. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { PATCHBAY } from "../support/plugins.ts";

const CONFIGS = "/run/networks";
const ipam = { type: "host-local", subnet: "10.9.0.0/24" };
const bridge = { type: "bridge", bridge: "br0", isGateway: true, ipam };
const chains: Record<string, Record<string, unknown>[]> = {
  bridge: [bridge],
  ptp: [{ type: "ptp", ipam }],
  macvlan: [{ type: "macvlan", master: "m0", ipam }],
  "in the middle of a chain": [{ type: "loopback" }, bridge, { type: "tuning" }],
  "bridge twice": [bridge, { ...bridge, bridge: "br1" }],
};

let machine: Machine;
beforeAll(async () => {
  machine = await openMachine();
  await machine.sh("ip link add m0 type veth peer name m1; ip link set m0 up; ip link set m1 up");
  for (const [name, plugins] of Object.entries(chains)) await write(name, plugins);
});
afterAll(() => machine[Symbol.asyncDispose]());

async function write(name: string, plugins: unknown[]): Promise<void> {
  const list = { cniVersion: "1.1.0", name: name.replaceAll(" ", "-"), plugins };
  await machine.sh(`mkdir -p ${CONFIGS}; cat >${CONFIGS}/${list.name}.conflist`, { stdin: JSON.stringify(list) });
}

const patchbay = (...args: string[]) => machine.run([PATCHBAY, ...args], { env: { NETCONFPATH: CONFIGS } });
const links = (container: Container) => machine.sh("ip -o link; ip -o addr", { in: container });

test.each(Object.keys(chains).filter((name) => name !== "bridge twice"))(
  "another engine's eth0 stays: %s",
  async (name) => {
    const network = name.replaceAll(" ", "-"), container = await machine.container();
    await patchbay("add", network, container.netnsPath);
    await patchbay("del", network, container.netnsPath);
    await machine.sh(`ip link add theirs type veth peer name eth0 netns ${container.name}
      ip -n ${container.name} addr add 172.17.0.2/16 dev eth0`);
    const before = await quietMoment(machine);
    const { code, stderr } = await patchbay("add", network, container.netnsPath);
    expect([code, stderr]).toEqual([1, expect.stringContaining("exist")]);
    expect(stderr).not.toContain("taking it back");
    expect(await leftSince(before, machine)).toEqual([]);
    await machine.sh("ip link del theirs");
    await machine.removeContainer(container);
  },
);

test("an attachment whose record in the cache is lost stays, when a second ADD of it fails", async () => {
  const container = await machine.container();
  expect((await patchbay("add", "bridge", container.netnsPath)).code).toBe(0);
  await machine.sh("rm /var/lib/cni/results/*");
  const before = await links(container);
  expect((await patchbay("add", "bridge", container.netnsPath)).code).toBe(1);
  expect(await links(container)).toBe(before);
  expect((await patchbay("del", "bridge", container.netnsPath)).code).toBe(0);
});

test.each([
  ["there is no such plugin", [bridge, { type: "nothing" }]],
  ["the next one fails", [bridge, { type: "tuning", sysctl: { "net.nothing.there": "1" } }]],
  ["a program fails", [bridge, { type: "tuning" }, { type: "failing" }]],
])("what had succeeded in the chain is taken back: %s", async (_, plugins) => {
  const container = await machine.container();
  await machine.sh(`mkdir -p /run/bin; cd /run/bin; printf '#!/bin/sh\\nexit 1\\n' >failing; chmod +x failing
    for name in bridge host-local tuning; do ln -sf ${PATCHBAY} $name; done`);
  await write("chain", plugins);
  await patchbay("add", "bridge", container.netnsPath);
  await patchbay("del", "bridge", container.netnsPath);
  const before = await quietMoment(machine);
  const { code, stderr } = await patchbay("add", "chain", container.netnsPath, "--plugin-path", "/run/bin");
  expect([code, stderr]).toEqual([1, expect.stringMatching(/type="(nothing|tuning|failing)" failed/)]);
  // What host-local keeps of a network that has been used.
  const ofNetwork = /networks\/chain\/(last_reserved_ip|\.patchbay)/;
  expect(await leftSince(before, machine, ofNetwork)).toEqual([]);
});

test("the first of two plugins of one type is taken back, when the second one fails", async () => {
  const container = await machine.container();
  await patchbay("add", "bridge-twice", container.netnsPath);
  const before = await quietMoment(machine);
  expect((await patchbay("add", "bridge-twice", container.netnsPath)).code).toBe(1);
  expect(await leftSince(before, machine)).toEqual([]);
  expect(await machine.sh("ip -o link show type veth", { in: container })).toBe("");
});

test("a plugin whose result its network's version cannot say has made something, and that is taken back", async () => {
  const container = await machine.container(),
    list = { cniVersion: "0.2.0", name: "old", plugins: [{ type: "bridge" }] };
  await machine.sh(`cat >${CONFIGS}/old.conflist`, { stdin: JSON.stringify(list) });
  await patchbay("add", "old", container.netnsPath);
  const before = await quietMoment(machine);
  const { code, stderr } = await patchbay("add", "old", container.netnsPath);
  expect([code, stderr]).toEqual([1, expect.stringContaining("cannot convert: no valid IP addresses")]);
  expect(await leftSince(before, machine)).toEqual([]);
  expect(await links(container)).not.toContain("eth0");
  await machine.removeContainer(container);
});
