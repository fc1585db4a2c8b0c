/**
 * sbr: which way packets go, the container's rules and tables, and that nothing is left or lost.
 *
 * The container has a link `eth0` with the default route, and a link `net1` that the calls are about. Their other
 * ends are two neighbours, `left` and `right`.
 *
 * Longer than 300 lines: all tests start from the same two neighbours and routes.
 */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { type Network, network } from "../support/network.ts";
import { GO_PLUGINS, patchbayPlugins } from "../support/plugins.ts";
import { patiently, ping } from "../support/traffic.ts";

const BOTH = ["10.2.0.2/24", "fd02::2/64"];

interface Stage extends AsyncDisposable {
  machine: Machine;
  container: Container;
  left: Container;
  right: Container;
  net: Network;
  /** The rules and routes of the container, but for those every address brings. */
  routing(): Promise<string[]>;
}

/** `addresses` are those of net1. Link-local ones take the kernel a second, so most do without. */
async function openStage(
  conf: Record<string, unknown> = {},
  addresses = BOTH,
  linkLocal: "none" | "eui64" = "none",
): Promise<Stage> {
  const machine = await openMachine();
  const [container, left, right] = [
    await machine.container("c1"),
    await machine.container("left"),
    await machine.container("right"),
  ];
  await machine.sh(`
    link() { ip link add $3 netns c1 type veth peer name end netns $1; ip -n $1 address add $2.1/24 dev end
      ip -n $1 address add $4::1/64 dev end nodad; ip -n $1 link set end up; ip -n $1 link set lo up; }
    link left 10.1.0 eth0 fd01; link right 10.2.0 net1 fd02
    ip -n c1 address add 10.1.0.2/24 dev eth0; ip -n c1 address add fd01::2/64 dev eth0 nodad
    ip -n c1 link set eth0 addrgenmode ${linkLocal}; ip -n c1 link set net1 addrgenmode ${linkLocal}
    ip -n c1 link set lo up; ip -n c1 link set eth0 up; ip -n c1 link set net1 up
    ip -n c1 route add default via 10.1.0.1; ip -n c1 route add default via fd01::1
    ${addresses.map((address) => `ip -n c1 address add ${address} dev net1 nodad`).join("\n")}
  `);
  const net = network(machine, { type: "sbr", ...conf }, patchbayPlugins(), {
    own: () => ({ prevResult: previous(addresses) }),
  });
  return {
    machine,
    container,
    left,
    right,
    net: onNet1(net),
    async routing() {
      const text = await machine.sh(
        "ip rule; ip -6 rule | sed 's/^/6 /'; ip -4 route show table all; ip -6 route show table all",
        { in: container },
      );
      const lines = text.split("\n").map((line) => line.replace("\t", " ").replace(" pref medium", "").trim());
      return lines.filter((line) =>
        line !== "" && !/^(local|broadcast|anycast|multicast) |lookup (local|main|def)/.test(line)
      );
    },
    [Symbol.asyncDispose]: () => machine[Symbol.asyncDispose](),
  };
}

/** What the plugin before it answered. */
function previous(addresses: readonly string[], ips: Record<string, unknown>[] = []) {
  const gateway = (address: string) => address.includes(":") ? "fd02::1" : "10.2.0.1";
  return {
    cniVersion: "1.1.0",
    interfaces: [{ name: "right0" }, { name: "net1", sandbox: "/var/run/netns/c1" }],
    ips: [...addresses.map((address) => ({ address, gateway: gateway(address), interface: 1 })), ...ips],
  };
}

/** The attachments are of net1 unless a call says otherwise. */
function onNet1(net: Network): Network {
  const of = <T extends object>(change?: T) => ({ ifName: "net1", ...change });
  return {
    call: (command, container, change) => net.call(command, container, of(change)),
    add: (container, change) => net.add(container, of(change)),
    check: (container, change) => net.check(container, of(change)),
    del: (container, change) => net.del(container, of(change)),
    once: (container, change) => net.once(container, of(change)),
    gc: (valid) => net.gc(valid),
  };
}

const ETH0 = [
  "default via 10.1.0.1 dev eth0",
  "10.1.0.0/24 dev eth0 proto kernel scope link src 10.1.0.2",
  "fd01::/64 dev eth0 proto kernel metric 256",
  "default via fd01::1 dev eth0 metric 1024",
];

/** The sets are compared, without the link's own. */
function expectRouting(found: string[], wanted: string[]): void {
  expect(found.toSorted()).toEqual([...ETH0, ...wanted].toSorted());
}

const TABLE_OF_V4 = (table: number) => [
  `default via 10.2.0.1 dev net1 table ${table}`,
  `10.2.0.0/24 dev net1 table ${table} proto kernel scope link src 10.2.0.2`,
];
const TABLE_OF_V6 = (table: number) => [
  `default via fd02::1 dev net1 table ${table} metric 1024`,
  `fd02::/64 dev net1 table ${table} proto kernel metric 256`,
];

test("answers leave by the link the question came in by, in both families", async () => {
  await using stage = await openStage();
  const { machine, container, left, right, net } = stage;
  await machine.sh("ip -n right address add 192.0.2.9/32 dev lo; ip -n right address add fd99::9/128 dev lo nodad");
  await machine.sh("ip -n left address add 198.51.100.1/32 dev lo");
  const fromAfar = async () => [
    (await machine.run(["ping", "-nc1", ...patiently(), "-I", "192.0.2.9", "10.2.0.2"], { in: right })).code,
    (await machine.run(["ping", "-nc1", ...patiently(), "-I", "fd99::9", "fd02::2"], { in: right })).code,
  ];
  expect(await fromAfar()).toEqual([1, 1]);
  await net.add(container);
  expect(await fromAfar()).toEqual([0, 0]);
  expect(await ping(machine, container, "198.51.100.1")).toBe(true);
  expect(await ping(machine, left, "10.1.0.2")).toBe(true);
});

test("every address has a rule and a table, and the main table has nothing of the link's", async () => {
  await using stage = await openStage();
  const { container, net, routing } = stage;
  await stage.machine.sh("ip -n c1 route add 192.168.0.0/16 via 10.2.0.7 metric 30 mtu 1400");
  const result = await net.add(container);
  expect(result).toEqual(previous(BOTH));
  const rest = ["32765: from 10.2.0.2 lookup 100", "6 32765: from fd02::2 lookup 101"];
  const kept = ["192.168.0.0/16 via 10.2.0.7 dev net1 table 100 metric 30 mtu 1400"];
  expectRouting(await routing(), [...TABLE_OF_V4(100), ...TABLE_OF_V6(101), ...kept, ...rest]);
  await net.check(container);
  for (let count = 0; count < 2; count++) {
    await net.del(container);
    expectRouting(await routing(), []);
  }
});

test("several addresses of a family have tables of their own, each with the routes of its subnet", async () => {
  await using stage = await openStage({}, ["10.2.0.2/24", "10.2.0.3/24", "10.3.0.2/24"]);
  const { container, net, routing, machine } = stage;
  await machine.sh("ip -n c1 route add 192.168.0.0/16 via 10.3.0.9; ip -n c1 route add 172.16.0.0/12 dev net1");
  const other = [{ address: "10.3.0.2/24", interface: 1 }];
  await net.add(container, { conf: { prevResult: previous(["10.2.0.2/24", "10.2.0.3/24"], other) } });
  const subnet = (table: number) => [...TABLE_OF_V4(table), `172.16.0.0/12 dev net1 table ${table} scope link`];
  expectRouting(await routing(), [
    ...subnet(100),
    ...subnet(101),
    "10.3.0.0/24 dev net1 table 102 proto kernel scope link src 10.3.0.2",
    "192.168.0.0/16 via 10.3.0.9 dev net1 table 102",
    "172.16.0.0/12 dev net1 table 102 scope link",
    "32765: from 10.2.0.2 lookup 100",
    "32764: from 10.2.0.3 lookup 101",
    "32763: from 10.3.0.2 lookup 102",
  ]);
  await net.check(container);
  await net.del(container);
  expectRouting(await routing(), []);
});

test("tables that a rule or a route uses are not taken", async () => {
  await using stage = await openStage({}, ["10.2.0.2/24"]);
  const { container, net, routing, machine } = stage;
  const theirs = ["31000: from 10.99.0.1 lookup 100", "10.98.0.0/16 dev eth0 table 101 scope link"];
  await machine.sh(
    `ip -n c1 rule add from 10.99.0.1 lookup 100 priority 31000; ip -n c1 route add 10.98.0.0/16 dev eth0 table 101
     ip -n c1 -6 route add fd98::/64 dev eth0 table 102`,
  );
  const theirV6 = "fd98::/64 dev eth0 table 102 metric 1024";
  await net.add(container);
  expectRouting(await routing(), [...TABLE_OF_V4(103), "30999: from 10.2.0.2 lookup 103", ...theirs, theirV6]);
  await net.del(container);
  expectRouting(await routing(), [...theirs, theirV6]);
});

test("table: only rules are made, and the routes stay where they are", async () => {
  await using stage = await openStage({ table: 4000000000 });
  const { container, net, routing } = stage;
  const before = await routing();
  await net.add(container);
  const rules = ["32765: from 10.2.0.2 lookup 4000000000", "6 32765: from fd02::2 lookup 4000000000"];
  expect((await routing()).toSorted()).toEqual([...before, ...rules].toSorted());
  await net.check(container);
  await net.del(container);
  expect(await routing()).toEqual(before);
});

test("gateways: come before those of the addresses and of the routes", async () => {
  await using stage = await openStage({ gateways: ["fd02::9", "10.2.0.9"] });
  const { container, net, routing, machine } = stage;
  await machine.sh(
    "ip -n c1 route append default via 10.2.0.1; ip -n c1 route append default via fd02::1 metric 1024",
  );
  await net.add(container);
  const found = (await routing()).filter((line) => line.startsWith("default"));
  expect(found.toSorted()).toEqual([
    "default via 10.1.0.1 dev eth0",
    "default via 10.2.0.9 dev net1 table 100",
    "default via fd01::1 dev eth0 metric 1024",
    "default via fd02::9 dev net1 table 101 metric 1024",
  ]);
  await net.check(container);
});

test("addSourceHints: the main table keeps the ways to the link's subnets, with their address", async () => {
  await using stage = await openStage({ addSourceHints: true });
  const { container, net, routing, machine } = stage;
  await machine.sh("ip -n c1 route add 192.168.0.0/16 via 10.2.0.7; ip -n c1 route add 172.16.0.0/12 dev net1");
  await net.add(container);
  expectRouting(await routing(), [
    ...TABLE_OF_V4(100),
    "192.168.0.0/16 via 10.2.0.7 dev net1 table 100",
    "172.16.0.0/12 dev net1 table 100 scope link",
    ...TABLE_OF_V6(101),
    "32765: from 10.2.0.2 lookup 100",
    "6 32765: from fd02::2 lookup 101",
    "10.2.0.0/24 dev net1 scope link src 10.2.0.2",
    "172.16.0.0/12 dev net1 scope link",
    "fd02::/64 dev net1 src fd02::2 metric 1024",
  ]);
  await net.check(container);
  await net.del(container);
  expectRouting(await routing(), ["172.16.0.0/12 dev net1 scope link"]);
});

test("addSourceHints: a link with one address has one way", async () => {
  await using stage = await openStage({ addSourceHints: true }, ["10.2.0.2/24"]);
  await stage.net.add(stage.container);
  expect(await stage.routing()).toContain("10.2.0.0/24 dev net1 scope link src 10.2.0.2");
});

test("ways to link-local addresses stay, and are in the address's table too", async () => {
  await using stage = await openStage({}, BOTH, "eui64");
  const { container, net, routing, machine } = stage;
  await machine.sh(`until [ "$(ip -n c1 -6 route show fe80::/64 | wc -l)" = 2 ]; do sleep 0.02; done`);
  await net.add(container);
  expect((await routing()).filter((line) => line.startsWith("fe80")).toSorted()).toEqual([
    "fe80::/64 dev eth0 proto kernel metric 256",
    "fe80::/64 dev net1 proto kernel metric 256",
    "fe80::/64 dev net1 table 101 proto kernel metric 256",
  ]);
  await net.check(container);
});

test("a default route with several gateways in IPv6 is divided among the addresses", async () => {
  await using stage = await openStage({}, ["fd02::2/64", "fd03::2/64"]);
  const { container, net, routing, machine } = stage;
  await machine.sh(
    "ip -n c1 route del default via fd01::1; ip -n c1 route add default nexthop via fd02::1 nexthop via fd03::1",
  );
  const ips = [{ address: "fd02::2/64", interface: 1 }, { address: "fd03::2/64", interface: 1 }];
  await net.add(container, { conf: { prevResult: previous([], ips) } });
  expect((await routing()).filter((line) => line.startsWith("default via fd"))).toEqual([
    "default via fd02::1 dev net1 table 100 metric 1024",
    "default via fd03::1 dev net1 table 101 metric 1024",
  ]);
  await net.check(container);
});

test("a default route through a link-local gateway is every address's", async () => {
  await using stage = await openStage({}, ["fd02::2/64"]);
  const { container, net, routing, machine } = stage;
  await machine.sh("ip -n c1 route add default via fe80::1 dev net1 metric 50");
  await net.add(container);
  expect((await routing()).filter((line) => line.includes("fe80::1"))).toEqual([
    "default via fe80::1 dev net1 table 100 metric 50",
  ]);
});

test.each([
  { name: "another interface's", ips: [{ address: "10.1.0.2/24", interface: 0 }] },
  { name: "not of this link, and of no interface", ips: [{ address: "10.1.0.2/24" }] },
] as { name: string; ips: Record<string, unknown>[] }[])(
  "addresses that are $name are left alone, and so are all routes",
  async ({ ips }) => {
    await using stage = await openStage();
    const { container, net, routing } = stage;
    const before = await routing();
    await net.add(container, { conf: { prevResult: previous([], ips) } });
    expect(await routing()).toEqual(before);
  },
);

test("addresses of no interface count where the link has them, and their family's routes move", async () => {
  await using stage = await openStage();
  const { container, net, routing } = stage;
  const prevResult = { cniVersion: "0.2.0", ip4: { ip: "10.2.0.2/24", gateway: "10.2.0.1" } };
  await net.add(container, { conf: { cniVersion: "0.2.0", prevResult } });
  const v6 = ["fd02::/64 dev net1 proto kernel metric 256"];
  expectRouting(await routing(), [...TABLE_OF_V4(100), "32765: from 10.2.0.2 lookup 100", ...v6]);
});

test("several at once in one container never choose the same table", async () => {
  await using stage = await openStage();
  const { machine, container, net, routing } = stage;
  const names = ["a0", "a1", "a2", "a3", "a4", "a5"];
  for (const [index, name] of names.entries()) {
    await machine.sh(
      `ip -n c1 link add ${name} type veth peer name ${name}x; ip -n c1 link set ${name}x up; ip -n c1 link set ${name} up
       ip -n c1 address add 10.5${index}.0.2/24 dev ${name}`,
    );
  }
  const before = (await routing()).filter((line) => !/dev a\d/.test(line));
  await Promise.all(names.map((ifName, index) => {
    const ips = [{ address: `10.5${index}.0.2/24`, interface: 0 }];
    const prevResult = { cniVersion: "1.1.0", interfaces: [{ name: ifName, sandbox: container.netnsPath }], ips };
    return net.add(container, { ifName, conf: { prevResult } });
  }));
  const rules = (await routing()).flatMap((line) =>
    line.match(/^(\d+): from (10.5\S*) lookup (\d+)/)?.slice(1) ?? []
  );
  const each = (column: number) => rules.filter((_, index) => index % 3 === column).toSorted();
  expect(each(0)).toEqual(names.map((_, index) => String(32760 + index)));
  expect(each(2)).toEqual(names.map((_, index) => String(100 + index)));
  await Promise.all(names.map((ifName) => net.del(container, { ifName })));
  expect((await routing()).filter((line) => !/dev a\d/.test(line))).toEqual(before);
});

/** The kernel makes it when it notices the carrier. */
const MULTICAST = /"dst":"ff00::\/8"/;

test.each([
  { name: "a gateway out of reach", conf: { gateways: ["172.31.0.1"] }, code: 999, says: /0\.0\.0\.0\/0/ },
  { name: "no such link", change: { ifName: "net9" }, code: 999, says: /net9/ },
  {
    name: "no prevResult",
    conf: { prevResult: undefined },
    code: 7,
    says: /This plugin must be called as chained plugin/,
  },
  {
    name: "no addresses",
    conf: { prevResult: { cniVersion: "1.1.0" } },
    code: 7,
    says: /No IP addresses supplied on interface: net1/,
  },
  { name: "a table as text", conf: { table: "100" }, code: 7, says: /table.*"100"/ },
])("a failed ADD leaves all as it was: $name", async ({ conf, change, code, says }) => {
  await using stage = await openStage();
  const { machine, container, net } = stage;
  await machine.sh(
    "ip -n c1 route append default via 10.2.0.1 metric 7; ip -n c1 route append default via fd02::1 metric 8",
  );
  const moment = await quietMoment(machine);
  const answer = await net.call("ADD", container, { conf, ...change });
  expect(answer.json).toMatchObject({ code });
  expect(`${answer.json.msg} ${answer.json.details}`).toMatch(says);
  expect(await leftSince(moment, machine, MULTICAST)).toEqual([]);
});

test("CHECK without a ledger looks at the rules", async () => {
  await using stage = await openStage();
  const { machine, container, net } = stage;
  await net.add(container);
  await machine.sh("rm -r /run/patchbay");
  await net.check(container);
  await machine.sh("ip -n c1 rule del from 10.2.0.2");
  expect((await net.call("CHECK", container)).json.msg).toContain("from 10.2.0.2");
});

const withoutLedger = "rm -r /run/patchbay";

test.each([
  { name: "no prevResult", conf: { prevResult: undefined } },
  { name: "no ledger", spoil: withoutLedger },
  { name: "no ledger, no prevResult", spoil: withoutLedger, conf: { prevResult: undefined } },
  { name: "no ledger, now with a table", spoil: withoutLedger, conf: { table: 7 } },
  { name: "no ledger, the link gone", spoil: `${withoutLedger}; ip -n c1 link del net1` },
  { name: "the link gone", spoil: "ip -n c1 link del net1" },
  { name: "the addresses gone", spoil: "ip -n c1 address flush dev net1" },
  { name: "added twice", again: true },
])("DEL removes the rules, and no other: $name", async ({ spoil, conf, again }) => {
  await using stage = await openStage({ addSourceHints: again === true });
  const { machine, container, net, routing } = stage;
  const theirs = "ip -n c1 rule add from 10.1.0.2 lookup 9; ip -n c1 rule add from 10.2.0.2 to 10.9.0.0/16 lookup 9";
  await machine.sh(theirs);
  const rules = async () => (await routing()).filter((line) => line.includes("lookup"));
  const before = await rules();
  await net.add(container);
  if (again) await net.add(container);
  expect(await rules()).toHaveLength(before.length + (again ? 4 : 2));
  if (spoil !== undefined) await machine.sh(spoil);
  for (let count = 0; count < 2; count++) await net.del(container, { conf });
  expect(await rules()).toEqual(before);
  expect((await routing()).filter((line) => /dev net1.*table/.test(line))).toEqual(
    spoil?.startsWith("rm") && !spoil.includes("link") ? expect.anything() : [],
  );
});

test.each([
  { name: "no CNI_NETNS", env: { CNI_NETNS: undefined } },
  { name: "a namespace that is gone", env: { CNI_NETNS: "/var/run/netns/gone" } },
])("DEL with $name succeeds, and makes no file", async ({ env }) => {
  await using stage = await openStage();
  const { machine, container, net } = stage;
  await net.add(container);
  await machine.sh("test -f /run/patchbay/net/*@sbr");
  for (const spoil of ["true", "mkdir -p /run/patchbay"]) {
    await machine.sh(spoil);
    await net.del(container, { env });
  }
  expect(await machine.sh("ls /run/netns; ls --ignore='serve*' /run/patchbay")).toBe("c1\nleft\nright\n");
});

test("an address that another link has by now keeps its rule when the ledger is lost", async () => {
  await using stage = await openStage({}, ["10.2.0.2/24"]);
  const { machine, container, net, routing } = stage;
  await net.add(container);
  await machine.sh(
    `${withoutLedger}; ip -n c1 address del 10.2.0.2/24 dev net1; ip -n c1 address add 10.2.0.2/24 dev eth0`,
  );
  await net.del(container);
  expect(await routing()).toContain("32765: from 10.2.0.2 lookup 100");
});

test("DEL without a ledger takes the rules away, whatever is wrong in the configuration", async () => {
  await using stage = await openStage();
  const { machine, container, net, routing } = stage;
  await net.add(container);
  const wrong = { table: -1, gateways: ["10.2.0.1", "10.2.0.7"] };
  expect((await net.call("CHECK", container, { conf: wrong })).json.code).toBe(7);
  await machine.sh(withoutLedger);
  await net.del(container, { conf: wrong });
  expect((await routing()).join()).not.toMatch(/from (10\.2|fd02)/);
});

test("the Go plugin's rules are removed, and it removes ours", async () => {
  await using stage = await openStage();
  const { machine, container, net, routing } = stage;
  const own = () => ({ cniVersion: "1.0.0", prevResult: { ...previous(BOTH), cniVersion: "1.0.0" } });
  const go = onNet1(network(machine, { type: "sbr" }, GO_PLUGINS, { own }));
  const rules = async () => (await routing()).filter((line) => line.includes("lookup"));
  await go.add(container);
  expect(await rules()).toHaveLength(2);
  await net.check(container, { conf: own() });
  await net.del(container, { conf: own() });
  expect(await rules()).toEqual([]);
  await machine.sh("ip -n c1 route flush table 100; ip -n c1 -6 route flush table 101");
  await machine.sh(
    "ip -n c1 link set net1 down; ip -n c1 link set net1 up; ip -n c1 address add fd02::2/64 dev net1 nodad || true",
  );
  await net.add(container);
  await go.del(container, { conf: own() });
  expect(await rules()).toEqual([]);
  await net.del(container);
});

test("a chain of bridge and sbr: each CHECK holds, and DEL leaves nothing", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const ipam = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
  const first = network(machine, { type: "bridge", bridge: "br0", isDefaultGateway: true, ipam });
  const second = network(machine, { type: "sbr" });
  const attach = async () => await second.add(container, { conf: { prevResult: await first.add(container) } });
  const detach = async () => (await second.del(container), await first.del(container));
  await attach();
  await detach();
  const moment = await quietMoment(machine);
  await attach();
  expect([await ping(machine, undefined, "10.20.0.3"), await ping(machine, undefined, "fd20::3")]).toEqual([
    true,
    true,
  ]);
  await first.check(container);
  await second.check(container);
  await detach();
  expect(await leftSince(moment, machine)).toEqual([]);
});
