/** ptp: where packets go, what both ends have, and that nothing is left or lost. */
import { expect, test } from "bun:test";
import { leftOf, leftSince, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { GO_PLUGINS } from "../support/plugins.ts";
import { ping, serve } from "../support/traffic.ts";

const dual = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
const everywhere = [{ dst: "0.0.0.0/0" }, { dst: "::/0" }];
const ptp = { type: "ptp", ipMasq: true, ipam: { ...dual, routes: everywhere } };

/** `ip route`, the main tables without link-local routes. */
async function routesOf(machine: Machine, container?: Container): Promise<string[]> {
  const text = await machine.sh("ip -4 route; ip -6 route", { in: container });
  const lines = text.split("\n").map((line) => line.replace(" pref medium", "").trim());
  return lines.filter((line) => line !== "" && !line.startsWith("fe80")).toSorted();
}

test("containers reach the host, one another and the world; masqueraded only towards the world", async () => {
  await using machine = await openMachine();
  const [one, two, world] = [await machine.container(), await machine.container(), await machine.container("world")];
  await machine.sh(`
    ip link add uplink type veth peer name eth0 netns world
    ip address add 192.0.2.1/24 dev uplink; ip address add fd99::1/64 dev uplink nodad; ip link set uplink up
    ip -n world address add 192.0.2.9/24 dev eth0; ip -n world address add fd99::9/64 dev eth0 nodad
    ip -n world link set eth0 up
    # The kernel may notice a second late that the link has a carrier, and answers no IPv6 neighbour before.
    until ping -nqc1 -W1 fd99::9; do :; done`);
  const net = network(machine, ptp);
  const [a, b] = [await net.add(one), await net.add(two)];
  for (const { address } of [...a.ips, ...b.ips]) {
    expect(await ping(machine, undefined, address.split("/")[0])).toBe(true);
  }
  for (const address of ["10.20.0.1", "10.20.0.3", "fd20::1", "fd20::3"]) {
    expect(await ping(machine, one, address)).toBe(true);
  }
  await using outside = await serve(machine, world, "tcp");
  expect(await outside.ask(one, "192.0.2.9")).toBe("192.0.2.1");
  expect(await outside.ask(one, "fd99::9")).toBe("fd99::1");
  await using inside = await serve(machine, two, "tcp");
  expect(await inside.ask(one, "10.20.0.3")).toBe("10.20.0.2");
  expect(await inside.ask(one, "fd20::3")).toBe("fd20::2");
});

interface Layout {
  name: string;
  ipam: Record<string, unknown>;
  inside: string[];
  /** HOST stands for the link's random name. */
  outside: string[];
}

test.each([
  {
    name: "both families, with routes",
    ipam: { ...dual, routes: [...everywhere, { dst: "192.168.0.0/16", gw: "10.20.0.7" }] },
    inside: [
      "10.20.0.0/24 via 10.20.0.1 dev eth0 src 10.20.0.2",
      "10.20.0.1 dev eth0 scope link src 10.20.0.2",
      "192.168.0.0/16 via 10.20.0.7 dev eth0",
      "default via 10.20.0.1 dev eth0",
      "default via fd20::1 dev eth0 metric 1024",
      "fd20::/64 via fd20::1 dev eth0 src fd20::2 metric 1024",
      "fd20::1 dev eth0 src fd20::2 metric 1024",
    ],
    outside: [
      "10.20.0.2 dev HOST scope host",
      "fd20::1 dev HOST proto kernel metric 256",
      "fd20::2 dev HOST metric 1024",
    ],
  },
  {
    name: "an address that is a network of its own",
    ipam: {
      type: "static",
      addresses: [
        { address: "10.20.0.2/32", gateway: "169.254.1.1" },
        { address: "fd20::2/128", gateway: "fe80::1" },
      ],
      routes: everywhere,
    },
    inside: [
      "169.254.1.1 dev eth0 scope link src 10.20.0.2",
      "default via 169.254.1.1 dev eth0",
      "default via fe80::1 dev eth0 metric 1024",
    ],
    outside: ["10.20.0.2 dev HOST scope host", "fd20::2 dev HOST metric 1024"],
  },
  {
    name: "two addresses with one gateway",
    ipam: {
      type: "static",
      addresses: [
        { address: "10.20.0.2/24", gateway: "10.20.0.1" },
        { address: "10.20.0.3/24", gateway: "10.20.0.1" },
      ],
    },
    inside: [
      "10.20.0.0/24 via 10.20.0.1 dev eth0 src 10.20.0.2",
      "10.20.0.1 dev eth0 scope link src 10.20.0.2",
    ],
    outside: ["10.20.0.2 dev HOST scope host", "10.20.0.3 dev HOST scope host"],
  },
] as Layout[])("routes at both ends, which packets find: $name", async ({ ipam, inside, outside }) => {
  await using machine = await openMachine();
  const container = await machine.container();
  const net = network(machine, { ...ptp, ipam, mtu: 1400 });
  const { interfaces, ips } = await net.add(container);
  expect(await routesOf(machine, container)).toEqual(inside);
  const found = await routesOf(machine);
  expect(found.map((line) => line.replace(interfaces[0].name, "HOST"))).toEqual(outside);
  for (const { address } of ips) expect(await ping(machine, undefined, address.split("/")[0])).toBe(true);
  for (
    const [command, where] of [["ip -j link show eth0", container], [
      `ip -j link show ${interfaces[0].name}`,
      undefined,
    ]] as const
  ) {
    expect(JSON.parse(await machine.sh(command, { in: where }))[0].mtu).toBe(1400);
  }
  await net.check(container);
});

test("the result: the host's end, the container's, addresses on the second, DNS of the configuration or of IPAM", async () => {
  await using machine = await openMachine();
  const [one, two] = [await machine.container(), await machine.container()];
  const ipam = {
    type: "static",
    addresses: [{ address: "10.20.0.2/24", gateway: "10.20.0.1" }],
    dns: { domain: "ipam" },
  };
  const net = network(machine, { type: "ptp", ipam });
  const result = await net.add(one);
  expect(result).toMatchObject({
    interfaces: [{ name: expect.stringMatching(/^veth/) }, { name: "eth0", sandbox: one.netnsPath }],
    ips: [{ interface: 1, address: "10.20.0.2/24", gateway: "10.20.0.1" }],
    dns: { domain: "ipam" },
  });
  const macs = await machine.sh("cat /sys/class/net/veth*/address; ip -n c1 -br link show eth0");
  for (const { mac } of result.interfaces) expect(macs).toContain(mac);
  expect(await machine.sh("sysctl -n net.ipv4.ip_forward")).toBe("1\n");
  expect((await net.add(two, { conf: { dns: { domain: "conf" } } })).dns).toEqual({ domain: "conf" });
});

interface Row {
  name: string;
  spoil?: string;
  conf?: Record<string, unknown>;
  env?: Record<string, string | undefined>;
}

const noPrevResult = { prevResult: undefined };
const noNetns = { CNI_NETNS: undefined };
const loseLedger = "rm -r /run/patchbay";
const loseNetns = "ip netns del c1";

const rows: Row[] = [
  { name: "nothing spoiled" },
  { name: "no prevResult", conf: noPrevResult },
  { name: "no CNI_NETNS", env: noNetns },
  { name: "namespace gone", spoil: loseNetns },
  { name: "a plain file in the namespace's place", spoil: `${loseNetns}; touch /run/netns/c1` },
  { name: "interface gone", spoil: "ip -n c1 link del eth0" },
  { name: "addresses gone", spoil: "ip -n c1 address flush dev eth0" },
  { name: "no longer masquerading", conf: { ipMasq: false } },
  { name: "made another plugin's leases", conf: { ipam: { type: "static" } } },
  { name: "ledger lost", spoil: loseLedger },
  { name: "ledger lost, no longer masquerading", spoil: loseLedger, conf: { ipMasq: false } },
  { name: "ledger lost, no prevResult", spoil: loseLedger, conf: noPrevResult },
  { name: "ledger lost, no CNI_NETNS", spoil: loseLedger, env: noNetns },
  { name: "ledger lost, namespace gone, no prevResult", spoil: `${loseLedger}; ${loseNetns}`, conf: noPrevResult },
];

/** On a machine where an attachment came and went, and a container waits. */
async function openStage(conf: Parameters<typeof network>[1]) {
  const machine = await openMachine();
  const [first, container] = [await machine.container("c0"), await machine.container("c1")];
  const net = network(machine, conf);
  await net.add(first);
  await net.del(first);
  await machine.removeContainer(first);
  return { machine, net, container, moment: await quietMoment(machine) };
}

test.each(["iptables", "nftables"].flatMap((ipMasqBackend) => rows.map((row) => ({ ...row, ipMasqBackend }))))(
  "DEL leaves nothing ($ipMasqBackend): $name",
  async ({ ipMasqBackend, spoil, conf, env }) => {
    const { machine, net, container, moment } = await openStage({ ...ptp, ipMasqBackend });
    await using _ = machine;
    await net.add(container);
    if (spoil !== undefined) await machine.sh(spoil);
    for (let count = 0; count < 2; count++) await net.del(container, { conf, env });
    expect(await leftOf({ machine, container, moment })).toEqual([]);
  },
);

test.each([{ name: "with prevResult", conf: {} }, { name: "without", conf: noPrevResult }])(
  "DEL takes away what the Go plugin attached, $name",
  async ({ conf }) => {
    const plain = { ...ptp, cniVersion: "1.0.0" };
    const { machine, net, container, moment } = await openStage(plain);
    await using _ = machine;
    const prevResult = await network(machine, plain, GO_PLUGINS).add(container);
    await net.check(container, { conf: { prevResult } });
    await net.del(container, { conf: { prevResult, ...conf } });
    expect(await leftOf({ machine, container, moment }, /last_reserved_ip|networks\/net\/lock/)).toEqual([]);
  },
);

test.each([
  { name: "interface name taken", before: "ip -n c1 link add eth0 type veth peer name other", says: /eth0/ },
  { name: "IPAM plugin missing", conf: { ipam: { type: "nothing" } }, says: /nothing/ },
  { name: "no IPAM", conf: { ipam: undefined }, says: /no plugin name provided/, code: 7 },
  {
    name: "an address without gateway",
    conf: { ipam: { type: "static", addresses: [{ address: "10.20.0.2/24" }] } },
    says: /no gateway for 10\.20\.0\.2\/24/,
  },
  {
    name: "a route the kernel refuses",
    conf: { ipam: { ...dual, routes: [{ dst: "192.168.1.1/16" }] } },
    says: /192\.168\.1\.1\/16/,
  },
  { name: "mtu out of bounds", conf: { mtu: 100000 }, says: /^failed to make veth pair: .*invalid argument.*100000/ },
  { name: "mtu beyond 32 bits", conf: { mtu: 4294968696 }, says: /mtu.*4294968696 is not an MTU/, code: 7 },
  { name: "mtu as text", conf: { mtu: "1400" }, says: /mtu.*"1400"/, code: 7 },
  { name: "an unknown backend", conf: { ipMasqBackend: "ipfw" }, says: /unknown ipmasq backend "ipfw"/, code: 2 },
])("a failed ADD leaves nothing: $name", async ({ conf, before, says, code = 999 }) => {
  const { machine, net, container } = await openStage(ptp);
  await using _ = machine;
  if (before !== undefined) await machine.sh(before);
  const moment = await quietMoment(machine);
  const answer = await net.call("ADD", container, { conf });
  expect(`${answer.json.msg} ${answer.json.details}`).toMatch(says);
  expect(answer.json.code).toBe(code);
  expect(await leftSince(moment, machine, /file \/var\/lib\/cni\/networks/)).toEqual([]);
});

test("GC removes what is not valid, and nothing else", async () => {
  const { machine, net, container } = await openStage(ptp);
  await using _ = machine;
  const stale = await machine.container("c2");
  await net.add(container);
  const moment = await quietMoment(machine);
  await net.add(stale);
  await net.gc([container]);
  expect(await leftSince(moment, machine)).toEqual([]);
  await net.check(container);
});

test.each(["bridge", "ptp", "macvlan"])("%s: mtu and advmss of a route are the kernel's", async (type) => {
  await using machine = await openMachine();
  await machine.sh("ip link add master0 type veth peer name peer0; ip link set master0 up");
  const container = await machine.container(),
    routes = [{ dst: "192.0.2.0/24", gw: "10.1.0.1", mtu: 1300, advmss: 1200 }];
  const ipam = { type: "host-local", ranges: [[{ subnet: "10.1.0.0/24" }]], routes };
  const net = network(machine, {
    type,
    ipam,
    ...type === "bridge" && { isGateway: true },
    ...type === "macvlan" && { master: "master0" },
  });
  await net.add(container);
  const [route] = JSON.parse(await machine.sh("ip -j route show 192.0.2.0/24", { in: container }));
  expect(route.metrics).toEqual([{ mtu: 1300, advmss: 1200 }]);
  await net.check(container);
  await net.del(container);
});
