/**
 * macvlan: attached, seen in the kernel, pinged through, checked, and deleted whatever changed since. The
 * code that ipvlan and vlan share with it is tested here, because every kernel has macvlan.
 *
 * Longer than 300 lines: one master and its container serve all tests.
 */
import { expect, test } from "bun:test";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, momentOf, quietMoment } from "../support/leftovers.ts";
import { network } from "../support/network.ts";
import { GO_PLUGINS, PATCHBAY } from "../support/plugins.ts";
import { ping } from "../support/traffic.ts";
import { linkIn, openWire, wireIpam } from "../support/wire.ts";

const MAC = "c2:11:22:33:44:55";
const ipam = wireIpam;
const macvlan = { type: "macvlan", master: "m0", ipam };
const macvlanTest = test.skipIf(lacks("macvlan links"));

/** A wire on which an attachment came and went: what is shared, and the leases' files, are there. */
async function stage() {
  const wire = await openWire();
  const { machine } = wire;
  const container = await machine.container("c1");
  const net = network(machine, macvlan);
  await net.add(container);
  await net.del(container);
  return { ...wire, net, container };
}

macvlanTest("born in the container, and packets at once", async () => {
  await using attachment = await stage();
  const { machine, container, net } = attachment;
  const dns = { nameservers: ["10.20.0.53"] };
  const before = await quietMoment(machine);
  const result = await net.add(container, { conf: { dns } });
  const link = await linkIn(machine, container);
  expect(result).toEqual({
    cniVersion: "1.1.0",
    interfaces: [{ name: "eth0", mac: link.address, sandbox: container.netnsPath }],
    ips: [
      { address: "10.20.0.2/24", gateway: "10.20.0.254", interface: 0 },
      { address: "fd20::2/64", gateway: "fd20::fe", interface: 0 },
    ],
    routes: [{ dst: "192.168.0.0/16" }],
    dns,
  });
  expect(link).toMatchObject({ mtu: 1500, linkinfo: { info_kind: "macvlan" } });
  // First packets: nothing waits for duplicate address detection.
  expect(await Promise.all(["10.20.0.254", "fd20::fe"].map((to) => ping(machine, container, to)))).toEqual([
    true,
    true,
  ]);
  const other = await machine.container();
  const { ips } = await net.add(other);
  expect(await ping(machine, other, "10.20.0.2")).toBe(true);
  expect(ips[0].address).toBe("10.20.0.3/24");
  await net.del(other);
  await machine.removeContainer(other);

  expect((await net.call("ADD", container)).json.msg).toContain('"eth0" already exists in the container');
  await net.check(container);
  for (let count = 0; count < 2; count++) await net.del(container);
  expect(await leftSince(before, machine)).toEqual([]);
});

const noPrevResult = { prevResult: undefined };
const loseLedger = "rm -r /run/patchbay";
const changed = { master: undefined, mtu: 9999, mode: "nonesuch", linkInContainer: true };
const deletions: { spoil?: string; conf?: Record<string, unknown> }[] = [
  {},
  { conf: noPrevResult },
  { conf: { ...noPrevResult, ...changed } },
  { conf: { ipam: {} } },
  { spoil: loseLedger },
  { spoil: loseLedger, conf: noPrevResult },
  { spoil: loseLedger, conf: { ...noPrevResult, ...changed } },
  { spoil: loseLedger, conf: { ...noPrevResult, master: "gone" } },
  { spoil: "ip link del eth0" },
  { spoil: "ip address flush dev eth0; ip link set eth0 down address 02:00:00:00:00:07" },
  { spoil: "nsenter --net=$HOST ip link set m0 down; nsenter --net=$HOST ip link set m0 up" },
];

macvlanTest("DEL leaves nothing, whatever became of everything", async () => {
  await using attachment = await stage();
  const { machine, container, net } = attachment;
  const leases = network(machine, { type: "host-local", ipam });
  const before = await quietMoment(machine);
  for (const { spoil = "true", conf } of deletions) {
    await net.add(container);
    await machine.sh(spoil, { in: container, env: { HOST: `/proc/${machine.pid}/ns/net` } });
    for (let count = 0; count < 2; count++) await net.del(container, { conf });
    expect({ spoil, conf, link: await linkIn(machine, container) }).toEqual({ spoil, conf, link: undefined });
    expect((await leases.call("CHECK", container)).code).toBe(1);
  }
  expect(await leftSince(before, machine)).toEqual([]);

  // A DEL that does not name the namespace cannot reach a link in it. The link goes with the namespace.
  for (const way of ["no CNI_NETNS", "the namespace is gone", "a plain file is in its place"]) {
    const victim = await machine.container();
    await net.add(victim);
    if (way !== "no CNI_NETNS") await machine.sh(`ip netns del ${victim.name}`);
    if (way === "a plain file is in its place") await machine.sh(`touch /run/netns/${victim.name}`);
    await net.del(victim, way === "no CNI_NETNS" ? { env: { CNI_NETNS: undefined } } : {});
    await machine.removeContainer(victim);
  }
  expect(await leftSince(before, machine)).toEqual([]);

  // The master takes what stands on it along.
  await net.add(container);
  await machine.sh("ip link del m0");
  expect(await linkIn(machine, container)).toBeUndefined();
  for (let count = 0; count < 2; count++) await net.del(container);
  expect((await leases.call("CHECK", container)).code).toBe(1);
  expect(await leftSince(before, machine, /^- (host|out) /)).toEqual([]);
});

macvlanTest("DEL finds the link of an ADD that was killed before it had its name", async () => {
  await using attachment = await stage();
  const { machine, container, net } = attachment;
  await machine.sh("ip link add eth0 type veth peer name eth1");
  await net.add(container);
  // Before Linux 6.15 it is born under this name, because the host has an eth0.
  const ledger = await machine.sh("cat $(find /run/patchbay -type f ! -name 'serve~*')");
  const birthName = ledger.match(/"birthName":"(veth[0-9a-f]{8})"/)?.[1];
  await machine.sh(`ip link set eth0 down; ip link set eth0 name ${birthName}`, { in: container });
  await net.del(container);
  expect(await machine.sh("ip link show type macvlan", { in: container })).toBe("");
});

macvlanTest("repair puts back what is altered, and not what is another's", async () => {
  await using attachment = await stage();
  const { machine, container, net } = attachment;
  await net.add(container);
  await machine.sh("ip link set eth0 type macvlan mode vepa; ip address flush dev eth0", { in: container });
  const repair = async () => (await machine.run([PATCHBAY, "repair", "net"])).code;
  expect(await repair()).toBe(0);
  await net.check(container);
  await machine.sh("ip link del eth0; ip link add eth0 type veth peer name other", { in: container });
  expect(await repair()).toBe(1);
  expect(await machine.sh("ip address show dev eth0", { in: container })).not.toContain("10.20");
});

macvlanTest("DEL leaves a link of another kind alone, and GC what is valid", async () => {
  await using attachment = await stage();
  const { machine, container, net } = attachment;
  const others = await machine.container();
  await machine.sh("ip link add eth0 type veth peer name other", { in: others });
  await net.del(others);
  expect((await linkIn(machine, others)).linkinfo.info_kind).toBe("veth");

  const before = await quietMoment(machine);
  await net.add(container);
  await net.gc([container]);
  await net.check(container);
  await net.gc([]);
  expect(await leftSince(before, machine)).toEqual([]);
});

macvlanTest("CHECK and DEL know what the Go plugins attached", async () => {
  await using attachment = await stage();
  const { machine, container, net } = attachment;
  const before = await quietMoment(machine);
  const prevResult = await network(machine, { ...macvlan, cniVersion: "1.0.0" }, GO_PLUGINS).add(container);
  const change = { conf: { cniVersion: "1.0.0", prevResult } };
  await net.check(container, change);
  await net.del(container, change);
  expect(await leftSince(before, machine, /last_reserved_ip|networks\/net\/lock/)).toEqual([]);
});

interface Option {
  name: string;
  conf?: Record<string, unknown>;
  args?: string;
  before?: string;
  after?: string;
  link?: Record<string, unknown>;
  /** What it stands on, unless m0. */
  master?: string;
}

const info = (data: Record<string, unknown>) => ({ linkinfo: { info_data: data } });
const oneMac = "c2:00:00:00:00:01";
const byArgs = (mac: string) => `MAC=${mac};IgnoreUnknown=1`;
const noMaster = {
  conf: { master: undefined },
  after: "ip address flush dev m0 scope global; ip route flush exact 0/0; ip -6 route flush default",
};

const options: Option[] = [
  { name: "no mode", link: info({ mode: "bridge" }) },
  ...["bridge", "private", "vepa"].map((mode) => ({ name: mode, conf: { mode }, link: info({ mode }) })),
  {
    name: "passthru has its master's MAC",
    conf: { mode: "passthru", master: "x0", mac: MAC },
    link: { ...info({ mode: "passthru" }), address: "02:00:00:00:00:99" },
    master: "x0",
  },
  { name: "mtu", conf: { mtu: 1400 }, link: { mtu: 1400 } },
  { name: "bcqueuelen", conf: { bcqueuelen: 50 }, link: info({ bcqueuelen: 50 }) },
  { name: "mac", conf: { mac: MAC.toUpperCase() }, link: { address: MAC } },
  { name: "mac with dashes", conf: { mac: MAC.replaceAll(":", "-") }, link: { address: MAC } },
  { name: "mac by CNI_ARGS", conf: { mac: oneMac }, args: byArgs(MAC), link: { address: MAC } },
  { name: "mac by capability", conf: { runtimeConfig: { mac: MAC } }, args: byArgs(oneMac), link: { address: MAC } },
  { name: "layer 2 only", conf: { ipam: undefined } },
  {
    name: "the default route's link",
    before: "ip address add 10.20.0.99/24 dev m0; ip route add default via 10.20.0.254",
    ...noMaster,
  },
  {
    name: "the link of the IPv6 default route, beside one that leads nowhere",
    before:
      "ip route add blackhole default; ip -6 route add unreachable default metric 1; ip -6 route add default via fe80::1 dev m0",
    ...noMaster,
  },
  {
    name: "the first of several next hops",
    before: `ip address add 10.20.0.99/24 dev m0; ip address add 10.9.0.1/24 dev x0
      ip route add default nexthop via 10.20.0.254 nexthop via 10.9.0.2`,
    ...noMaster,
  },
  {
    name: "a master by a long name it has besides",
    conf: { master: "another-name-of-m0" },
    before: "ip link property add dev m0 altname another-name-of-m0",
  },
  {
    name: "a link of the host has the same name",
    before: "ip link add eth0 type veth peer name eth1",
    after: "ip link del eth0",
  },
  {
    name: "a master in the container",
    conf: { master: "in0", linkInContainer: true },
    before: "ip link add in0 netns c1 type veth peer name in1 netns c1; ip -n c1 link set in0 up",
    master: "in0",
  },
];

macvlanTest("its options, as the kernel has them", async () => {
  await using wire = await openWire();
  const { machine } = wire;
  const container = await machine.container("c1");
  await machine.sh(
    "ip link add x0 address 02:00:00:00:00:99 type veth peer name x1; ip link set x1 up; ip link set x0 up",
  );
  const net = network(machine, macvlan);
  for (const { name, args, conf, before = "true", after = "true", link: wanted = {}, master = "m0" } of options) {
    await machine.sh(before);
    const { interfaces, ips = [] } = await net.add(container, { args, conf });
    const link = await linkIn(machine, container);
    expect({ name, link }).toMatchObject({ name, link: { ...wanted, address: interfaces[0].mac } });
    expect({ name, up: link.flags.includes("UP") }).toEqual({ name, up: true });
    // A master in the same namespace is told by its name, one elsewhere by its number there.
    const under = await linkIn(machine, container, master) === undefined
      ? JSON.parse(await machine.sh(`ip -j link show ${master}`))[0].ifindex
      : master;
    expect({ name, master: link.link_index ?? link.link }).toEqual({ name, master: under });

    const shown = await machine.sh("ip -o address show dev eth0 scope global", { in: container });
    const present = [...shown.matchAll(/ inet6? (\S+) /g)].map(([, address]) => address);
    expect({ name, present }).toEqual({ name, present: ips.map(({ address }: { address: string }) => address) });
    const told = await machine.sh("cd /proc/sys/net; cat ipv4/conf/eth0/arp_notify ipv6/conf/eth0/ndisc_notify", {
      in: container,
    });
    expect({ name, told }).toEqual({ name, told: ips.length > 0 ? "1\n1\n" : "0\n0\n" });
    await net.check(container, { args, conf });
    await machine.sh("mv /run/patchbay /run/away");
    await net.check(container, { args, conf });
    await machine.sh("mv /run/away /run/patchbay");
    await net.del(container, { args, conf });
    expect({ name, link: await linkIn(machine, container) }).toEqual({ name, link: undefined });
    await machine.sh(after);
  }
});

const refused: { conf: Record<string, unknown>; says: RegExp; before?: string; after?: string }[] = [
  { conf: { master: "lo" }, says: /failed to create macvlan on "lo"/ },
  { conf: { ipam: { type: "nothing" } }, says: /nothing/ },
  { conf: { ipam: { ...ipam, routes: [{ dst: "10.0.0.1/8" }] } }, says: /10\.0\.0\.1\/8/ },
  {
    conf: {},
    before: "ip -n c1 link add eth0 type veth peer name other",
    says: /"eth0" already exists in the container/,
    after: "ip -n c1 link show other; ip -n c1 link del eth0",
  },
  {
    conf: {},
    before: "ip link add br0 type bridge; ip link set m0 master br0",
    says: /failed to create macvlan on "m0": .*busy.*belongs to a bridge/,
    after: "ip link del br0",
  },
  {
    conf: { mode: "passthru" },
    before: "ip link add link m0 name other type macvlan mode bridge",
    says: /failed to create macvlan on "m0": .*invalid argument.*passthru/,
    after: "ip link del other",
  },
];

macvlanTest("a failed ADD leaves nothing", async () => {
  await using attachment = await stage();
  const { machine, container, net } = attachment;
  const wrong: string[] = [];
  for (const { conf, says, before = "true", after = "true" } of refused) {
    await machine.sh(before);
    const moment = await momentOf(machine);
    const answer = await net.call("ADD", container, { conf });
    const text = `${answer.json?.msg} ${answer.json?.details ?? ""}`;
    if (!says.test(text)) wrong.push(`${JSON.stringify(conf)}: ${answer.stdout}`);
    wrong.push(...await leftSince(moment, machine, /promiscuity/));
    await machine.sh(after);
  }
  expect(wrong).toEqual([]);
});
