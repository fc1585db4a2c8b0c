/** vrf: where packets go, what a link keeps, who may share a VRF, and that nothing is left or lost. */
import { expect, test } from "bun:test";
import { lacks } from "../../support/kernel-features.ts";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../../support/machine.ts";
import { type Network, network } from "../../support/network.ts";
import { GO_PLUGINS } from "../../support/plugins.ts";

const vrfTest = test.skipIf(lacks("VRF links"));

const red = { type: "vrf", vrfname: "red" };

interface Stage extends AsyncDisposable {
  machine: Machine;
  container: Container;
  net: Network;
  /** For each of the container's links that has one: its master. */
  masters(): Promise<Record<string, string>>;
  vrfs(): Promise<string[]>;
  /** Lines of `ip route show`, without the kernel's own and link-local ones. */
  routes(where: string): Promise<string[]>;
}

const prevResult = (ifName: string) => ({
  cniVersion: "1.1.0",
  interfaces: [{ name: ifName, sandbox: "/var/run/netns/c1" }],
});

/** For ip(8): what a link of the container has. */
const belongings = (number: number, name: string) => `
  link set ${name} addrgenmode none up
  address add 10.${number}.0.2/24 dev ${name}
  address add fd0${number}::2/64 dev ${name} nodad
  route append default via 10.${number}.0.1
  route append default via fd0${number}::1 metric ${number}
  route add 192.168.${number}.0/24 dev ${name} mtu 1400
  route add 172.16.${number}.0/24 via 10.${number}.0.7`;

/** The other end of the link. */
const peer = (number: number, name: string) => `
  link add peer${number} type veth peer name ${name} netns c1
  link set peer${number} addrgenmode none up
  address add 10.${number}.0.1/24 dev peer${number}
  address add fd0${number}::1/64 dev peer${number} nodad`;

/** The container has the links eth0 and net1. */
async function openStage(): Promise<Stage> {
  const machine = await openMachine();
  const container = await machine.container("c1");
  await machine.sh(`
ip -batch - <<END${peer(1, "eth0")}${peer(2, "net1")}
END
ip -n c1 -batch - <<END
link set lo up${belongings(1, "eth0")}${belongings(2, "net1")}
END`);
  const net = network(machine, { ...red, prevResult: prevResult("eth0") });
  const links = async (of = ""): Promise<{ ifname: string; master?: string }[]> => {
    const text = await machine.sh(`ip -j link show ${of}`, { in: container });
    return text.trim() === "" ? [] : JSON.parse(text);
  };
  return {
    machine,
    container,
    net,
    masters: async () =>
      Object.fromEntries((await links()).flatMap(({ ifname, master }) => master ? [[ifname, master]] : [])),
    vrfs: async () => (await links("type vrf")).map(({ ifname }) => ifname),
    async routes(where) {
      const text = await machine.sh(`ip -4 route show ${where}; ip -6 route show ${where}`, { in: container });
      const lines = text.split("\n").map((line) => line.replace(" pref medium", "").trim());
      return lines.filter((line) => !/^(local|broadcast|anycast|multicast|fe80|$)/.test(line)).toSorted();
    },
    [Symbol.asyncDispose]: () => machine[Symbol.asyncDispose](),
  };
}

/** What a link has in the main table, and then in that of its VRF. */
const routesOf = (number: number) => [
  `10.${number}.0.0/24 proto kernel scope link src 10.${number}.0.2`,
  `172.16.${number}.0/24 via 10.${number}.0.7`,
  `192.168.${number}.0/24 scope link mtu 1400`,
  `default via 10.${number}.0.1`,
  `default via fd0${number}::1 metric ${number}`,
  `fd0${number}::/64 proto kernel metric 256`,
];

vrfTest("a link keeps its addresses and routes, whatever keep_addr_on_down is", async () => {
  await using stage = await openStage();
  const { machine, container, net, masters, routes } = stage;
  const links = [{ ifName: "eth0", number: 1, keep: 0 }, { ifName: "net1", number: 2, keep: 1 }];
  for (const { ifName, number, keep } of links) {
    await machine.sh(`sysctl -qw net.ipv6.conf.${ifName}.keep_addr_on_down=${keep}`, { in: container });
    expect(await routes(`dev ${ifName}`)).toEqual(routesOf(number));
    const conf = { prevResult: prevResult(ifName), vrfname: `vrf-${ifName}` };
    expect(await net.add(container, { ifName, conf })).toEqual(conf.prevResult);
    expect(await masters()).toHaveProperty(ifName, conf.vrfname);
    const inVrf = await routes(`vrf ${conf.vrfname}`);
    expect(inVrf.map((line) => line.replace(` dev ${ifName}`, ""))).toEqual(routesOf(number));
    const inwards = `ping -nc1 -W9 10.${number}.0.2; ping -nc1 -W9 fd0${number}::2`;
    await machine.sh(`${inwards}; ip netns exec c1 ping -nc1 -W9 -I ${conf.vrfname} fd0${number}::1`);
    await net.check(container, { ifName, conf: { vrfname: conf.vrfname } });
  }
  for (const { ifName } of [...links, ...links]) {
    await net.del(container, { ifName, conf: { vrfname: `vrf-${ifName}` } });
  }
  expect([await masters(), await stage.vrfs(), await machine.sh("ls /run/patchbay")]).toEqual([{}, [], ""]);
});

vrfTest("tables: the first that nobody uses, or the one that is asked for", async () => {
  await using stage = await openStage();
  const { machine, container, net } = stage;
  const tables: number[] = [];
  for (const conf of [{}, {}, { table: 0 }, { table: 4294967295 }]) {
    await net.add(container, { conf });
    const [{ linkinfo }] = JSON.parse(await machine.sh("ip -j -d link show red", { in: container }));
    tables.push(linkinfo.info_data.table);
    await net.del(container);
    if (tables.length > 1) continue;
    await machine.sh(`ip -n c1 -batch - <<END
route add 10.99.0.0/16 dev net1 table 1
rule add from 10.99.0.1 lookup 2
link add other type vrf table 3
END`);
  }
  expect(tables).toEqual([1, 4, 4, 4294967295]);
});

vrfTest("a VRF is shared by attachments, which may come at once, and goes with its last member", async () => {
  await using stage = await openStage();
  const { machine, container, net, masters, vrfs } = stage;
  const attach = (ifName: string) => net.add(container, { ifName, conf: { prevResult: prevResult(ifName) } });
  await Promise.all(["eth0", "net1"].map(attach));
  expect(await masters()).toEqual({ eth0: "red", net1: "red" });
  await net.check(container);
  await net.del(container);
  expect(await masters()).toEqual({ net1: "red" });
  await net.check(container, { ifName: "net1" });
  await machine.sh("ping -nc1 -W9 fd02::2");
  await net.del(container, { ifName: "net1" });
  expect(await vrfs()).toEqual([]);
});

vrfTest("a VRF that no plugin made is used, and stays", async () => {
  await using stage = await openStage();
  const { machine, container, net, masters, vrfs } = stage;
  await machine.sh("ip -n c1 link add red type vrf table 77; ip -n c1 link set red up");
  await net.add(container);
  expect(await masters()).toEqual({ eth0: "red" });
  await net.check(container);
  await net.del(container);
  expect([await masters(), await vrfs()]).toEqual([{}, ["red"]]);
});

interface Refusal {
  what: string;
  conf?: Record<string, unknown>;
  ifName?: string;
  code: number;
  says: RegExp;
}

/** Beside a VRF blue that net1 is in. */
const refusals: Refusal[] = [
  { what: "a name with a slash", conf: { vrfname: "a/b" }, code: 7, says: /vrfname.*a\/b/ },
  {
    what: "no prevResult",
    conf: { prevResult: undefined },
    code: 7,
    says: /^missing prevResult from earlier plugin/,
  },
  { what: "no such link", ifName: "net9", code: 999, says: /^cmdAdd failed: could not get link by name net9/ },
  { what: "not a VRF", conf: { vrfname: "lo" }, code: 999, says: /^cmdAdd failed: Netlink lo is not a VRF/ },
  {
    what: "a VRF with another table",
    conf: { vrfname: "blue", table: 78 },
    code: 999,
    says: /^cmdAdd failed: VRF blue already exist with different routing table 77/,
  },
  {
    what: "a link with a master",
    ifName: "net1",
    code: 999,
    says: /^cmdAdd failed: interface net1 has already a master set: blue/,
  },
  {
    what: "a link that cannot be in a VRF",
    ifName: "lo",
    code: 999,
    says: /^cmdAdd failed: could not set vrf red as master of lo/,
  },
];

vrfTest("a failed ADD says why, and leaves all as it was", async () => {
  await using stage = await openStage();
  const { machine, container, net } = stage;
  await machine.sh("ip -n c1 link add blue type vrf table 77; ip -n c1 link set net1 master blue");
  const moment = await quietMoment(machine);
  for (const { what, conf, ifName = "eth0", code, says } of refusals) {
    const { json } = await net.call("ADD", container, { ifName, conf });
    const text = `${json.msg} ${json.details}`;
    expect({ what, code: json.code, text }).toEqual({ what, code, text: expect.stringMatching(says) });
  }
  expect(await leftSince(moment, machine)).toEqual([]);
});

const loseLedger = "rm -r /run/patchbay";

interface Spoiling {
  what: string;
  ifName?: string;
  how?: string;
  conf?: Record<string, unknown>;
}

const spoilings: Spoiling[] = [
  { what: "no prevResult", conf: { prevResult: undefined } },
  { what: "no ledger", how: loseLedger },
  { what: "no ledger, no prevResult", how: loseLedger, conf: { prevResult: undefined } },
  { what: "no ledger, another VRF configured", how: loseLedger, conf: { vrfname: "blue" } },
  { what: "the VRF gone", how: "ip -n c1 link del red" },
  { what: "the link gone", how: "ip -n c1 link del eth0" },
  { what: "no ledger, the link gone", ifName: "net1", how: `${loseLedger}; ip -n c1 link del net1` },
];

vrfTest("DEL leaves nothing, whatever was spoiled", async () => {
  await using stage = await openStage();
  const { machine, container, net, masters, vrfs } = stage;
  for (const { what, ifName = "eth0", how = "true", conf } of spoilings) {
    await net.add(container, { ifName, conf: { prevResult: prevResult(ifName) } });
    await machine.sh(how);
    for (let count = 0; count < 2; count++) await net.del(container, { ifName, conf });
    const ledgers = await machine.sh("mkdir -p /run/patchbay; ls /run/patchbay");
    expect({ what, left: [await masters(), await vrfs(), ledgers] }).toEqual({ what, left: [{}, [], ""] });
  }
});

vrfTest("DEL succeeds without the namespace", async () => {
  await using stage = await openStage();
  const { machine, container, net } = stage;
  for (const [ifName, path] of [["eth0", undefined], ["net1", "/var/run/netns/gone"]] as const) {
    await net.add(container, { ifName, conf: { prevResult: prevResult(ifName) } });
    for (let count = 0; count < 2; count++) await net.del(container, { ifName, env: { CNI_NETNS: path } });
  }
  expect(await machine.sh("ls /run/patchbay")).toBe("");
});

vrfTest("a chain of bridge and vrf: each CHECK holds, and DEL leaves nothing", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const ipam = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
  const first = network(machine, { type: "bridge", bridge: "br0", isDefaultGateway: true, ipam });
  const second = network(machine, red);
  const attach = async () => {
    const result = await first.add(container);
    await second.add(container, { conf: { prevResult: result } });
    return result.ips.map(({ address }: { address: string }) => address.split("/")[0]);
  };
  await attach();
  await second.del(container);
  await first.del(container);
  const moment = await quietMoment(machine);
  for (const address of await attach()) await machine.sh(`ping -nc1 -W9 ${address}`);
  await first.check(container);
  await second.check(container);
  await second.del(container);
  await first.del(container);
  expect(await leftSince(moment, machine)).toEqual([]);
});

vrfTest("what the Go plugin attached is checked and removed, and it removes ours", async () => {
  await using stage = await openStage();
  const { machine, container, net, masters, vrfs } = stage;
  const plain = { cniVersion: "1.0.0", prevResult: { ...prevResult("eth0"), cniVersion: "1.0.0" } };
  const go = network(machine, { ...red, ...plain }, GO_PLUGINS);
  await go.add(container);
  await net.check(container, { conf: plain });
  await net.del(container, { conf: plain });
  expect([await masters(), await vrfs()]).toEqual([{}, []]);
  await net.add(container);
  await go.del(container);
  expect([await masters(), await vrfs()]).toEqual([{}, []]);
  await net.del(container);
});
