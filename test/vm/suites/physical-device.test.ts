/**
 * host-device with PCI network cards. Unlike software links they outlive a namespace: the kernel moves them to the
 * initial namespace, under whatever name they had, and DEL finds them there.
 *
 * The plugins work in the initial namespace, with the files of a machine.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { commandOf, innerNamespace } from "../../support/inner-namespace.ts";
import { lacks } from "../../support/kernel-features.ts";
import { type Container, type Machine, openMachine } from "../../support/machine.ts";
import { network } from "../../support/network.ts";
import { ping } from "../../support/traffic.ts";
import { untilTrue } from "../../support/until-true.ts";

const cardTest = test.skipIf(lacks("network cards to spare"));

const MAC = "52:54:00:00:00:10", OTHER_MAC = "52:54:00:00:00:11";
const ipam = {
  type: "host-local",
  ranges: [[{ subnet: "10.30.0.0/24", rangeStart: "10.30.0.7", rangeEnd: "10.30.0.7" }]],
};

let machine: Machine, container: Container;
let name: string, pci: string;
let before: Link;

interface Link {
  ifname: string;
  ifindex: number;
  address: string;
  mtu: number;
  ifalias?: string;
  altnames?: string[];
  flags: string[];
}

async function links(): Promise<Link[]> {
  const all: Link[] = JSON.parse(await machine.sh("ip -j link show"));
  return all.map(({ ifname, ifindex, address, mtu, ifalias, altnames, flags }) => ({
    ifname,
    ifindex,
    address,
    mtu,
    ifalias,
    altnames,
    flags: flags.filter((flag) => flag === "UP"),
  }));
}

/** The card, when it is on the host. */
async function card(): Promise<Link | undefined> {
  return (await links()).find(({ address }) => address === MAC);
}

/** Whatever another test left. */
async function cardOf(mac: string): Promise<string> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const found = (await links()).find(({ address }) => address === mac);
    if (found !== undefined) return found.ifname;
    await Bun.sleep(100);
  }
  throw new Error(`no card ${mac}`);
}

beforeEach(async () => {
  if (lacks("network cards to spare")) return;
  const inner = await openMachine();
  const inFirst = ["nsenter", "--net=/proc/1/ns/net"];
  machine = {
    ...inner,
    containers: inner.containers,
    run: (command, options = {}) => inner.run(options.in === undefined ? [...inFirst, ...command] : command, options),
    sh: (script, options = {}) =>
      inner.sh(options.in === undefined ? `nsenter --net=/proc/1/ns/net sh -ec '${script}'` : script, options),
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  };
  // Which links a sysfs shows is decided by the namespace that mounted it.
  await machine.sh("mount -t sysfs sysfs /sys");
  container = await machine.container("c1");
  name = "lan0";
  const other = await cardOf(OTHER_MAC);
  await machine.sh(`
    old=${await cardOf(MAC)}
    ip link set $old down
    ip link property add dev $old altname the-card-next-to-the-window 2>/dev/null || true
    [ $old = ${name} ] || ip link set $old name ${name}
    ip link set ${name} mtu 1300 alias "window"
    ip link set ${other} up
    ip address replace 10.30.0.1/24 dev ${other}`);
  pci = (await machine.sh(`basename $(readlink -f /sys/class/net/${name}/device/..)`)).trim();
  before = (await card())!;
});

afterEach(async () => {
  if (!lacks("network cards to spare")) await machine[Symbol.asyncDispose]();
});

cardTest("a card is lent, carries packets, and comes back as it was, however it is chosen", async () => {
  const path = (await machine.sh(`readlink -f /sys/class/net/${name}/device`)).trim();
  const choices = [
    { pciBusID: pci },
    { runtimeConfig: { deviceID: pci } },
    { kernelpath: path },
    { device: "the-card-next-to-the-window" },
  ];
  for (const choice of choices) {
    const net = network(machine, { type: "host-device", ipam, ...choice });
    const result = await net.add(container);
    expect(result.interfaces).toEqual([{ name: "eth0", mac: MAC, sandbox: container.netnsPath }]);
    expect(await card()).toBeUndefined();
    if (choice.pciBusID !== undefined) {
      expect(await ping(machine, container, "10.30.0.1")).toBe(true);
      await net.check(container);
    }
    await machine.sh("ip link set eth0 down; ip link set eth0 name x address 02:00:00:00:00:01 mtu 900 alias y", {
      in: container,
    });
    for (let count = 0; count < 2; count++) await net.del(container);
    expect({ choice, ...await card() }).toEqual({ choice, ...before });
  }
});

interface Row {
  name: string;
  /** In the container, before its namespace ends. */
  inside?: string;
  /** On the host, after that. */
  outside?: string;
  conf?: Record<string, unknown>;
  env?: Record<string, undefined>;
}

const rows: Row[] = [
  {
    name: "renamed, another MAC, no CNI_NETNS",
    inside: "ip link set eth0 down; ip link set eth0 name x address 02:00:00:00:00:01",
    env: { CNI_NETNS: undefined },
  },
  {
    name: "no alias, and names that the container has chosen",
    inside: `ip link set eth0 down; ip link set eth0 name br0 alias ""; ip link property add dev br0 altname br1`,
  },
  {
    name: "the host has a link of the container's name, another device configured",
    outside: "ip link add eth0 type dummy",
    conf: { device: "nothing" },
  },
];

cardTest.each(rows)("a card whose namespace ended first comes back as it was: $name", async (row) => {
  const net = network(machine, { type: "host-device", device: name, ipam });
  await net.add(container);
  if (row.inside !== undefined) await machine.sh(row.inside, { in: container });
  if (row.outside !== undefined) await machine.sh(row.outside);
  await machine.removeContainer(container);
  for (let count = 0; count < 2; count++) await net.del(container, row);
  expect(await card()).toEqual(before);
  await machine.sh("ip link del eth0 type dummy 2>/dev/null || true");
  // There is one address to be had.
  const again = await machine.container("c2");
  await net.add(again);
  await net.del(again);
});

cardTest("so does one that had its own name in the container, whose path is another namespace's by now", async () => {
  const net = network(machine, { type: "host-device", device: name, ipam });
  await net.add(container, { ifName: name });
  await machine.sh(`ip link set ${name} mtu 900`, { in: container });
  await machine.removeContainer(container);
  await machine.container(container.name);
  await net.del(container, { ifName: name });
  expect(await card()).toEqual(before);
});

cardTest("so does one whose ledger is lost, or that the reference plugin lent", async () => {
  const net = network(machine, { type: "host-device", device: name, ipam });
  await net.add(container);
  await machine.removeContainer(container);
  for (let attempt = 0; await card() === undefined && attempt < 100; attempt++) await Bun.sleep(50);
  await machine.sh("rm -r /run/patchbay");
  await net.del(container);
  expect(await card()).toEqual({ ...before, ifalias: undefined });
});

cardTest("DEL says that something still holds the namespace, and brings the card back once it is gone", async () => {
  const net = network(machine, { type: "host-device", device: name, ipam });
  await net.add(container);
  const holder = machine.start(["nsenter", `--net=${container.netnsPath}`, "cat"]);
  for (let attempt = 0; attempt < 100; attempt++) {
    const same = await machine.run(["sh", "-c", `[ /proc/${holder.pid}/ns/net -ef ${container.netnsPath} ]`]);
    if (same.code === 0) break;
    await Bun.sleep(50);
  }
  await machine.removeContainer(container);
  const answer = await net.call("DEL", container);
  expect(answer.json).toMatchObject({ code: 11, msg: `"lan0" is still in the container's network namespace` });
  await holder.stdin.end();
  await holder.exited;
  await net.del(container);
  expect(await card()).toEqual(before);
});

cardTest("a card that the container hides is brought back as soon as it is known where it is", async () => {
  const net = network(machine, { type: "host-device", device: name, ipam });
  const hide = `ip link set eth0 down; ip link set eth0 name br0 alias ""; ip link property add dev br0 altname br1`;
  // Somebody's, and then nobody's: the kernel returns it.
  const alone = machine.start(["unshare", "-n", "sleep", "1000"]);
  await untilTrue(() => commandOf(alone.pid), (command) => command === "sleep");
  await net.add(container);
  await machine.sh(`${hide}; ip link set br0 netns ${alone.pid}`, { in: container });
  const answer = await net.call("DEL", container);
  expect(answer.json).toMatchObject({ code: 11, msg: `"lan0" is in a network namespace of process ${alone.pid}` });
  alone.kill();
  await alone.exited;
  await net.del(container);
  expect(await card()).toEqual(before);
  // The container's.
  const inner = await innerNamespace(machine, container);
  await net.add(container);
  await machine.sh(`${hide}; ip link set br0 netns ${inner.pid}`, { in: container });
  await net.del(container);
  expect(await card()).toEqual(before);
  await inner.end();
});

cardTest("a card that was lent again since is the other container's", async () => {
  const net = network(machine, { type: "host-device", device: name });
  await net.add(container);
  // As if ADD had been killed between the ledger and the move.
  await machine.sh(`ip -n c1 link set eth0 netns 1`);
  await machine.sh(`ip link set eth0 name ${name} alias "window"`);
  const other = await machine.container("c2");
  await net.add(other);
  await machine.removeContainer(container);
  await net.del(container);
  await net.check(other);
  await net.del(other);
  expect(await card()).toEqual(before);
});

cardTest("a card that was pulled out is nobody's any more", async () => {
  const net = network(machine, { type: "host-device", device: name, ipam });
  await net.add(container);
  await machine.sh(`echo 1 >/sys/bus/pci/devices/${pci}/remove`);
  await machine.removeContainer(container);
  await net.del(container);
  await machine.sh("echo 1 >/sys/bus/pci/rescan");
  await cardOf(MAC);
});
