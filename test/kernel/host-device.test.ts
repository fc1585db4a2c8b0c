/**
 * host-device never loses its device: whatever happens to the container, the ledger and the device, DEL brings it
 * back with its name, MTU, MAC and alias.
 *
 * The device is one end of a veth pair whose other end stays on the host. Behaviour that only physical devices have
 * is tested in the virtual machine: test/vm/suites/physical-device.test.ts.
 *
 * Longer than 300 lines: a table of what can happen to a device, the container and the ledger, one row each.
 */
import { expect, test } from "bun:test";
import { leftOf, leftSince, type Moment, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { type Network, network } from "../support/network.ts";
import { GO_PLUGINS, PATCHBAY } from "../support/plugins.ts";
import { ping } from "../support/traffic.ts";

const MAC = "0a:00:00:00:00:05";
const ipam = { type: "host-local", ranges: [[{ subnet: "10.30.0.0/24" }], [{ subnet: "fd30::/64" }]] };
const conf = { type: "host-device", device: "dev5", ipam };

/** The device: dev5, with an MTU, a MAC and an alias of its own; far5 is at the other end. */
const plugIn = `
ip link add far5 type veth peer name dev5
ip link set dev5 address ${MAC} mtu 1300 alias "cable to the attic"
echo 1 >/proc/sys/net/ipv6/conf/far5/disable_ipv6
ip link set far5 up
ip address add 10.30.0.1/24 dev far5
`;

interface Stage {
  machine: Machine;
  net: Network;
  container: Container;
  moment: Moment;
  device: Device;
}

interface Device {
  ifname: string;
  ifindex: number;
  address: string;
  mtu: number;
  ifalias?: string;
  flags: string[];
}

async function linkOf(machine: Machine, name: string, container?: Container): Promise<Device | undefined> {
  const { code, stdout } = await machine.run(["ip", "-j", "link", "show", name], { in: container });
  if (code !== 0) return undefined;
  const { ifname, ifindex, address, mtu, ifalias, flags } = JSON.parse(stdout)[0];
  return { ifname, ifindex, address, mtu, ifalias, flags: flags.filter((flag: string) => flag === "UP") };
}

/** A machine where an attachment has come and gone. */
async function stage(change: Record<string, unknown> = {}): Promise<Stage> {
  const machine = await openMachine();
  await machine.sh(plugIn);
  const container = await machine.container("c1");
  const net = network(machine, { ...conf, ...change });
  await net.add(container);
  await net.del(container);
  return { machine, net, container, moment: await quietMoment(machine), device: (await linkOf(machine, "dev5"))! };
}

async function expectAllBack(stage: Stage): Promise<void> {
  expect(await linkOf(stage.machine, "dev5")).toEqual(stage.device);
  expect(await leftOf(stage)).toEqual([]);
}

test("the device is the container's between ADD and DEL", async () => {
  const attachment = await stage();
  const { machine, net, container, device } = attachment;
  await using _ = machine;
  expect(device).toMatchObject({ address: MAC, mtu: 1300, ifalias: "cable to the attic", flags: [] });
  const result = await net.add(container);
  expect(result.interfaces).toEqual([{ name: "eth0", mac: MAC, sandbox: container.netnsPath }]);
  expect(result.ips).toMatchObject([{ interface: 0 }, { interface: 0 }]);
  expect(await linkOf(machine, "dev5")).toBeUndefined();
  const inside = await linkOf(machine, "eth0", container);
  expect(inside).toEqual({ ...device, ifname: "eth0", ifalias: "dev5", flags: ["UP"] });
  expect(await ping(machine, container, "10.30.0.1")).toBe(true);
  await net.check(container);
  const again = await net.call("ADD", container);
  expect(again.json).toMatchObject({ msg: "failed to find host device: failed to find physical interface" });
  await net.check(container);
  await net.del(container);
  await expectAllBack(attachment);
  await net.del(container);
  await expectAllBack(attachment);
});

test("without IPAM it is only moved, and up", async () => {
  const attachment = await stage({ ipam: undefined });
  const { machine, net, container } = attachment;
  await using _ = machine;
  expect(await net.add(container)).toEqual({
    cniVersion: "1.1.0",
    interfaces: [{ name: "eth0", mac: MAC, sandbox: container.netnsPath }],
  });
  expect((await linkOf(machine, "eth0", container))!.flags).toEqual(["UP"]);
  await net.check(container);
  await net.del(container);
  await expectAllBack(attachment);
});

/** As an agent of a cloud does: the gateway is outside of the subnet, and what comes from an address has its own table. */
const provision = `
ip link set dev5 up
ip address add 10.30.0.7/24 dev dev5; ip -6 address add fd30::7/64 dev dev5 nodad
ip -6 address add fd30::8/64 dev dev5 valid_lft 900 preferred_lft 900 nodad
ip route add 192.0.2.1 dev dev5 proto dhcp scope link src 10.30.0.7
ip route add default via 192.0.2.1 dev dev5 proto dhcp metric 100
ip -6 route add default via fd30::1 dev dev5 metric 50; ip -6 route add fd31::/64 via fd30::1 dev dev5 proto ra
ip route add default via 10.30.0.1 dev dev5 table 77
ip rule add from 10.30.0.0/24 lookup 77 priority 1000
ip rule add from 10.30.0.7 fwmark 5 to 10.66.0.0/16 lookup 77 priority 1001
ip rule add from 10.30.0.7 lookup 78 priority 1002; ip rule add from 10.31.0.0/16 lookup 77 priority 1003
`;

test("useInterfaceNetwork: the container has the addresses, routes and rules that the device had", async () => {
  const ipam = { type: "host-local", subnet: "10.77.0.0/24", routes: [{ dst: "10.66.0.0/16" }] };
  const { machine, net, container, device } = await stage({ useInterfaceNetwork: true, ipam });
  await using _ = machine;
  // So the device has another index there.
  await machine.sh(`ip link add index ${device.ifindex} name other type ifb`, { in: container });
  await machine.sh("ip address add 192.0.2.1/32 dev far5; ip address add 192.0.2.9/32 dev far5");
  const moment = await quietMoment(machine);
  await machine.sh(provision);

  const copied = [{ address: "10.30.0.7/24", interface: 0 }, { address: "fd30::7/64", interface: 0 }];
  const routes = [
    { dst: "192.0.2.1/32", table: 254, scope: 253 },
    { dst: "0.0.0.0/0", gw: "192.0.2.1", priority: 100, table: 254 },
    { dst: "::/0", gw: "fd30::1", priority: 50, table: 254 },
    { dst: "0.0.0.0/0", gw: "10.30.0.1", table: 77 },
  ];
  const { ips, routes: inResult } = await net.add(container);
  expect([ips.slice(1), inResult]).toEqual([copied, [{ dst: "10.66.0.0/16" }, ...routes]]);
  const inside = (command: string) => machine.sh(`ip ${command}`, { in: container });
  const settings = async () => [await inside("route show table all"), await inside("rule")].join("");
  const before = await settings();
  for (
    const line of [
      /^192.0.2.1 dev eth0 proto dhcp scope link src 10.30.0.7/m,
      /^default via 192.0.2.1 dev eth0 proto dhcp metric 100/m,
      /^default via 10.30.0.1 dev eth0 table 77/m,
      /^default via fd30::1 dev eth0 metric 50/m,
      /^1000:\s+from 10.30.0.0\/24 lookup 77/m,
      /^1001:\s+from 10.30.0.7 to 10.66.0.0\/16 fwmark 0x5 lookup 77/m,
    ]
  ) expect(before).toMatch(line);
  expect(before).not.toMatch(/fd31|fd30::8|lookup 78|10\.31/);
  expect(await ping(machine, container, "192.0.2.9")).toBe(true);

  await net.check(container);
  await inside("route del default table 77; ip rule del priority 1001; ip address del 10.30.0.7/24 dev eth0");
  const { json: { msg } } = await net.call("CHECK", container);
  for (const missing of ["0.0.0.0/0 via 10.30.0.1", "from 10.30.0.7/32 lookup 77", "addr 10.30.0.7/24"]) {
    expect(msg).toContain(missing);
  }
  await machine.run([PATCHBAY, "repair", "net"]);
  await net.check(container);
  await net.del(container);
  expect(await linkOf(machine, "dev5")).toEqual({ ...device, ifindex: expect.any(Number) });
  await machine.sh("for each in 1000 1001 1002 1003; do ip rule del priority $each; done");
  expect(await leftSince(moment, machine, /last_reserved_ip|\.patchbay\.lock/)).toEqual([]);
});

test("useInterfaceNetwork beside IPAM that gives routes alone, and for a program's device", async () => {
  const ipam = { type: "static", routes: [{ dst: "10.66.0.0/16", gw: "10.30.0.1" }] };
  const machine = await openMachine();
  await using _ = machine;
  const container = await machine.container(), net = network(machine, { ...conf, ipam });
  await machine.sh(`${plugIn} ip link set dev5 up; ip address add 10.30.0.7/24 dev dev5`);
  const change = { conf: { useInterfaceNetwork: true } };
  const { ips, routes } = await net.add(container, change);
  expect([ips, routes]).toEqual([[{ address: "10.30.0.7/24", interface: 0 }], ipam.routes]);
  await net.check(container, change);
  await net.del(container, change);
  for (const device of [{ DPDKMode: true }, { device: "", pciBusID: "vfio-pci" }]) {
    if ("pciBusID" in device) await machine.sh(buses);
    const refused = await net.call("ADD", container, { conf: { ...change.conf, ...device } });
    expect(refused.json.msg).toBe("useInterfaceNetwork is not supported for dpdk-bound devices");
  }
});

test("names and indexes that are taken in the container are in nobody's way", async () => {
  const attachment = await stage();
  const { machine, net, container, device } = attachment;
  await using _ = machine;
  await machine.sh(`ip link add index ${device.ifindex} name dev5 type ifb`, { in: container });
  attachment.moment = await quietMoment(machine);
  await net.add(container);
  await net.check(container);
  expect(await ping(machine, container, "10.30.0.1")).toBe(true);
  await net.del(container);
  expect({ ...await linkOf(machine, "dev5"), ifindex: 0 }).toEqual({ ...device, ifindex: 0 } as Device);
  expect(await leftSince(attachment.moment, machine)).toEqual([]);
});

interface Row {
  name: string;
  spoil?: (machine: Machine, container: Container) => Promise<unknown>;
  conf?: Record<string, unknown>;
  env?: Record<string, string | undefined>;
}

const loseLedger = (machine: Machine) => machine.sh("rm -r /run/patchbay");
const inside = (script: string) => (machine: Machine, container: Container, env?: Record<string, string>) =>
  machine.sh(script, { in: container, env });
const noPrevResult = { prevResult: undefined };
const noNetns = { CNI_NETNS: undefined };
/** What a container can do to a device that it was lent. */
const disguise = "ip link set eth0 down; ip link set eth0 name lan address 02:00:00:00:00:09 mtu 1000";

const rows: Row[] = [
  { name: "nothing spoiled" },
  { name: "no prevResult", conf: noPrevResult },
  { name: "no CNI_NETNS", env: noNetns },
  { name: "another namespace in CNI_NETNS", env: { CNI_NETNS: "/var/run/netns/c2" } },
  { name: "another device configured", conf: { device: "dev9" } },
  { name: "a configuration that ADD refuses", conf: { device: "", ...noPrevResult } },
  { name: "renamed, with another MAC and MTU", spoil: inside(disguise) },
  { name: "alias cleared", spoil: inside(`ip link set eth0 alias ""`) },
  { name: "alias changed and renamed", spoil: inside("ip link set eth0 down; ip link set eth0 name lan alias x") },
  {
    name: "renamed, and another link has its name",
    spoil: inside(
      `${disguise}; ip link add eth0 type veth peer name eth1; ip link set eth0 alias dev5; ip link del eth0`,
    ),
  },
  {
    name: "renamed, with another MAC and no alias",
    spoil: inside(`${disguise}; ip link set lan alias ""`),
  },
  { name: "addresses gone", spoil: inside("ip address flush dev eth0") },
  {
    name: "back on the host already, under another name",
    spoil: (machine, { name }) => machine.sh(`ip -n ${name} link set eth0 netns ${machine.pid}`),
  },
  { name: "ledger lost", spoil: loseLedger },
  { name: "ledger lost, no prevResult", spoil: loseLedger, conf: noPrevResult },
  {
    name: "ledger lost, chosen by MAC, renamed",
    spoil: async (machine, container) => {
      await loseLedger(machine);
      await inside("ip link set eth0 down; ip link set eth0 name lan")(machine, container);
    },
    conf: { device: "", hwaddr: MAC },
  },
];

test("it comes back as it was, too, where it has its own name in the container", async () => {
  const attachment = await stage();
  const { machine, net, container } = attachment;
  await using _ = machine;
  await net.add(container, { ifName: "dev5" });
  await inside("ip link set dev5 mtu 1000; ip link set dev5 netns $HOST")(machine, container, {
    HOST: `${machine.pid}`,
  });
  await net.del(container, { ifName: "dev5" });
  await expectAllBack(attachment);
});

test("an alias that is the device's name makes nothing of others the device", async () => {
  const { machine, net, container } = await stage();
  await using _ = machine;
  await machine.sh(
    "ip link add other type veth peer name far; ip link set other up alias dev5 address 0a:00:00:00:00:07",
  );
  const moment = await quietMoment(machine);
  await net.add(container);
  const ledger = await machine.sh("cp -r /run/patchbay /run/kept; ls /run/kept/net");
  // Without a ledger, with that of an ADD whose DEL was cut off, and when the device has ended.
  for (let count = 0; count < 2; count++) await net.del(container, { conf: noPrevResult });
  await machine.sh(`mkdir -p -m 700 /run/patchbay/net; cp -p /run/kept/net/${ledger.trim()} /run/patchbay/net/`);
  await net.del(container);
  expect(await leftSince(moment, machine, /\/run\/kept/)).toEqual([]);
  const other = await linkOf(machine, "other");
  await machine.sh("ip link del far5");
  await net.del(container, { conf: noPrevResult });
  expect(await linkOf(machine, "other")).toEqual(other);
});

test.each(rows)("DEL brings the device back: $name", async ({ name, spoil, conf, env }) => {
  const attachment = await stage();
  const { machine, net, container, device } = attachment;
  await using _ = machine;
  await machine.container("c2");
  attachment.moment = await quietMoment(machine);
  await net.add(container);
  await spoil?.(machine, container);
  for (let count = 0; count < 3; count++) await net.del(container, { conf, env });
  // Only the ledger knows what the reference plugin does not write down.
  if (name.startsWith("ledger lost")) {
    expect(await linkOf(machine, "dev5")).toEqual({ ...device, ifalias: undefined });
    await machine.sh(`ip link set dev5 alias "${device.ifalias}"`);
  }
  await expectAllBack(attachment);
});

test("a link of the container's with its name and its alias is not brought back in its place", async () => {
  const { machine, net, container, device } = await stage();
  await using _ = machine;
  await net.add(container);
  await inside("ip link set eth0 down; ip link set eth0 name dev5; ip link add eth0 type veth peer name far")(
    machine,
    container,
  );
  await inside("ip link set eth0 alias dev5")(machine, container);
  const theirs = await linkOf(machine, "eth0", container);
  await net.del(container);
  expect(await linkOf(machine, "dev5")).toEqual(device);
  expect(await linkOf(machine, "eth0", container)).toEqual(theirs);
});

test("a device lent to who has the path since stays there", async () => {
  const { machine, net, container } = await stage();
  await using _ = machine;
  const as = (containerId: string) => ({ containerId, conf: noPrevResult });
  await net.add(container, as("first"));
  await machine.sh(`ip netns del c1; until ! ip link show far5; do sleep 0.01; done; ip netns add c1; ${plugIn}`);
  await net.add(container, as("second"));
  await net.del(container, { ...as("first"), env: noNetns });
  // Only the path tells of a container that another program attached there once.
  await net.del(container, as("unrecorded"));
  expect(await linkOf(machine, "eth0", container)).toMatchObject({ address: MAC, flags: ["UP"] });
  await net.del(container, as("second"));
  expect(await linkOf(machine, "dev5")).toMatchObject({ address: MAC });
});

test("GC brings it back", async () => {
  const attachment = await stage();
  const { machine, net, container } = attachment;
  await using _ = machine;
  await net.add(container);
  await inside(disguise)(machine, container);
  await net.gc([container]);
  expect(await linkOf(machine, "dev5")).toBeUndefined();
  await net.gc([]);
  await expectAllBack(attachment);
});

test("repair gives it back its name and alias in the container", async () => {
  const { machine, net, container } = await stage();
  await using _ = machine;
  await net.add(container);
  await inside(`ip link set eth0 alias ""; ip link set eth0 down; ip link set eth0 name lan`)(machine, container);
  expect((await machine.run([PATCHBAY, "repair", "net"])).code).toBe(0);
  await net.check(container);
  expect(await ping(machine, container, "10.30.0.1")).toBe(true);
  await net.del(container);
});

test("a device whose name was taken comes back under another, and gets its own when it is free", async () => {
  const { machine, net, container, device } = await stage();
  await using _ = machine;
  await net.add(container);
  await machine.sh("ip link add dev5 type ifb");
  const answer = await net.call("DEL", container);
  expect(answer).toMatchObject({ code: 0, stderr: expect.stringContaining(`"dev5" is another link's name by now`) });
  const links = JSON.parse(await machine.sh("ip -j link show")) as Device[];
  const back = links.find(({ address }) => address === MAC)!;
  expect(back).toMatchObject({ mtu: 1300, ifalias: "dev5", ifname: expect.stringMatching(/^dev\d+$/) });
  expect(await machine.sh("ip -d -j link show dev5")).toContain("ifb");
  await machine.sh("ip link del dev5");
  await net.del(container);
  expect(await linkOf(machine, "dev5")).toEqual({ ...device, ifalias: undefined });
});

test("a device that software made ends with the namespace; DEL says so, and frees the address", async () => {
  const { machine, net, container, moment } = await stage();
  await using _ = machine;
  await net.add(container);
  await machine.removeContainer(container);
  const answer = await net.call("DEL", container);
  expect(answer).toMatchObject({ code: 0, stderr: expect.stringContaining(`"dev5", a veth, ended with`) });
  await net.del(container);
  const pair = /host (link|address|route|sysctl) .*(dev5|far5|10\.30\.0)|^- c1 /;
  expect(await leftSince(moment, machine, pair)).toEqual([]);
});

test("a device that the container has removed is not said to have ended with the namespace", async () => {
  const { machine, net, container } = await stage();
  await using _ = machine;
  for (const env of [{}, noNetns]) {
    await net.add(container);
    await inside("ip link del eth0")(machine, container);
    expect(await net.call("DEL", container, { env })).toMatchObject({ code: 0, stderr: "" });
    await machine.sh(plugIn);
  }
});

test("what others have done with the name and the alias stays theirs", async () => {
  const { machine, net, container } = await stage();
  await using _ = machine;
  await machine.sh("ip link add eth0 type veth peer name eth9; ip link set eth0 alias dev7", { in: container });
  const moment = await quietMoment(machine);
  const answer = await net.call("ADD", container);
  expect(answer.json.msg).toBe(`failed to move link "dev5": "eth0" already exists in the container`);
  await net.del(container, { conf: noPrevResult });
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("a failed ADD leaves the device as it was, up if it was up", async () => {
  const { machine, net, container } = await stage();
  await using _ = machine;
  await machine.sh("ip link set dev5 up");
  const moment = await quietMoment(machine);
  const before = await linkOf(machine, "dev5");
  const refused = { ...ipam, routes: [{ dst: "192.168.0.0/16", gw: "172.31.0.1" }] };
  for (const change of [{ ipam: refused }, { ipam: { type: "nothing" } }]) {
    expect((await net.call("ADD", container, { conf: change })).code).toBe(1);
    expect(await linkOf(machine, "dev5")).toEqual(before);
  }
  expect(await leftSince(moment, machine, /last_reserved_ip|\/\.patchbay\//)).toEqual([]);
});

test.each([
  { name: "by name", device: { device: "dev5" } },
  { name: "by MAC", device: { hwaddr: MAC } },
  { name: "by MAC in capitals and with dashes", device: { hwaddr: MAC.toUpperCase().replaceAll(":", "-") } },
  { name: "by its directory in sysfs", device: { kernelpath: "/sys/devices/virtual" } },
  { name: "the name before the MAC", device: { device: "dev5", hwaddr: "02:00:00:00:00:01" } },
])("a device is found $name", async ({ device }) => {
  const attachment = await stage({ device: "", ipam: undefined, ...device });
  const { machine, net, container } = attachment;
  await using _ = machine;
  await net.add(container);
  await net.check(container);
  await net.del(container);
  await expectAllBack(attachment);
});

/** No kernel at hand has these drivers and buses: what sysfs would show of them. */
const buses = `
mount -t tmpfs tmpfs /sys/bus
device() { mkdir -p /sys/bus/$1/net/dev5; ln -s /sys/bus/pci/drivers/$2 /sys/bus/$1/driver; }
device pci/devices/0000:00:01.0 e1000
device pci/devices/0000:00:02.0/virtio7 virtio_net; ln -s ../drivers/virtio-pci /sys/bus/pci/devices/0000:00:02.0/driver
device auxiliary/devices/mlx5_core.sf.4 mlx5_core
for driver in vfio-pci uio_pci_generic igb_uio; do device pci/devices/$driver $driver; done
`;

test.each([
  { conf: { pciBusID: "0000:00:01.0" } },
  { conf: { pciBusID: "0000:00:02.0" } },
  { conf: { pciBusID: "vfio-pci", runtimeConfig: { deviceID: "0000:00:01.0" } } },
  { conf: { pciBusID: "vfio-pci", runtimeConfig: { deviceID: "mlx5_core.sf.4" } } },
])("a device is found on a bus: $conf", async ({ conf: choice }) => {
  await using machine = await openMachine();
  await machine.sh(plugIn + buses);
  const container = await machine.container();
  const net = network(machine, { type: "host-device", ...choice });
  await net.add(container);
  expect(await linkOf(machine, "eth0", container)).toMatchObject({ address: MAC, ifalias: "dev5" });
  await net.check(container);
  await net.del(container);
  expect(await linkOf(machine, "dev5")).toMatchObject({ address: MAC, ifalias: "cable to the attic" });
});

test.each(["vfio-pci", "uio_pci_generic", "igb_uio"])(
  "what %s drives is not moved, but has addresses",
  async (driver) => {
    await using machine = await openMachine();
    await machine.sh(plugIn + buses);
    const container = await machine.container();
    const net = network(machine, { type: "host-device", pciBusID: driver, ipam });
    const result = await net.add(container);
    expect(result.interfaces).toEqual([{ name: "eth0", sandbox: container.netnsPath }]);
    expect(result.ips).toMatchObject([{ address: "10.30.0.2/24", interface: 0 }, { interface: 0 }]);
    await net.check(container);
    for (const conf of [{}, noPrevResult, { pciBusID: "gone" }]) await net.del(container, { conf });
    expect(await linkOf(machine, "dev5")).toMatchObject({ address: MAC });
    expect((await network(machine, { type: "host-local", ipam }).call("CHECK", container)).code).toBe(1);
  },
);

const wrong: { name: string; conf: Record<string, unknown>; code: number; says: string }[] = [
  { name: "none", conf: {}, code: 7, says: `specify either "device", "hwaddr", "kernelpath" or "pciBusID"` },
  { name: "not there", conf: { device: "dev9" }, code: 999, says: "failed to find physical interface" },
  {
    name: "a long name",
    conf: { device: "a-name-too-long-for-a-link" },
    code: 999,
    says: "failed to find physical interface",
  },
  { name: "a number", conf: { device: 5 }, code: 7, says: `"device" must be a string, got 5` },
  { name: "loopback", conf: { device: "lo" }, code: 999, says: `failed to move link "lo"` },
];

test("a device that cannot be had is refused, and nothing changes", async () => {
  const { machine, container } = await stage();
  await using _ = machine;
  const moment = await quietMoment(machine);
  for (const { name, conf, code, says } of wrong) {
    const answer = await network(machine, { type: "host-device", ...conf }).call("ADD", container);
    const { msg, details = "" } = answer.json;
    expect({ name, code: answer.json.code, says: `${msg} ${details}` }).toEqual({
      name,
      code,
      says: expect.stringContaining(says),
    });
    await network(machine, { type: "host-device", ...conf, device: "dev5" }).call("DEL", container);
  }
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("CHECK without ledger, and with another sandbox in prevResult", async () => {
  const { machine, net, container } = await stage();
  await using _ = machine;
  const result = await net.add(container);
  await loseLedger(machine);
  await net.check(container);
  const elsewhere = { ...result, interfaces: [{ ...result.interfaces[0], sandbox: "/elsewhere" }] };
  const answer = await net.call("CHECK", container, { conf: { prevResult: elsewhere } });
  expect(answer.json.msg).toContain(
    `Sandbox in prevResult /elsewhere doesn't match configured netns: ${container.netnsPath}`,
  );
});

test("STATUS says when the hardware is not there", async () => {
  await using machine = await openMachine();
  const answer = async (choice: Record<string, unknown>) =>
    (await network(machine, { type: "host-device", ...choice }).call("STATUS", undefined)).json;
  expect(await answer({ pciBusID: "0000:ff:1f.7" })).toMatchObject({ code: 50 });
  expect(await answer({ kernelpath: "/sys/devices/none" })).toMatchObject({ code: 50 });
  expect(await answer({ device: "not-there-now" })).toBeUndefined();
  expect(await answer({ pciBusID: "../none" })).toMatchObject({ code: 7 });
});

test.each([
  { by: "Go", add: GO_PLUGINS, del: undefined },
  { by: "ours", add: undefined, del: GO_PLUGINS },
])("a device lent by one implementation is brought back by the other: ADD $by", async ({ add, del }) => {
  const attachment = await stage({ cniVersion: "1.0.0" });
  const { machine, container, device } = attachment;
  await using _ = machine;
  const plain = { ...conf, cniVersion: "1.0.0" };
  const prevResult = await network(machine, plain, add).add(container);
  await network(machine, plain, del).del(container, { conf: { prevResult } });
  // Debian's release leaves the alias.
  await machine.sh(`ip link set dev5 alias ""`);
  expect(await linkOf(machine, "dev5")).toEqual({ ...device, ifalias: undefined });
  expect(await linkOf(machine, "eth0", container)).toBeUndefined();
  // What is left in the ledger does no harm to the next attachment, nor to the device.
  const net = network(machine, plain);
  await net.del(container);
  await net.add(container);
  await net.del(container);
  expect(await linkOf(machine, "dev5")).toEqual({ ...device, ifalias: undefined });
});
