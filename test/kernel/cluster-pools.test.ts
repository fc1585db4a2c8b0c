/**
 * patchbay-cluster under the plugins that make links, ours and Debian's: addresses of blocks, two networks on one pool, DEL
 * without the file, and what its calls ask of the kernel.
 */
import { describe, expect, test } from "bun:test";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { type Call, environmentOf, GO_PLUGINS, patchbayPlugins, stdinOf } from "../support/plugins.ts";
import { type GivenPool, POOLS, serve, STATE } from "../support/served-pool.ts";
import { ping } from "../support/traffic.ts";

const ipam = { type: "patchbay-cluster", pool: "lan" };
const both = [
  { cidr: "10.50.0.0/24", gateway: "10.50.0.254", from: "10.50.0.0", to: "10.50.0.255", blockSize: 16 },
  { cidr: "fd50::/64", gateway: "fd50::fffe", from: "fd50::100", blockSize: 16 },
];
const flat: GivenPool = { ranges: both, routes: [{ dst: "192.0.2.0/24", gw: "10.50.0.254" }] };
const routed: GivenPool = {
  layout: "routed",
  ranges: [{ cidr: "10.64.0.0/16", blockLength: 26 }, { cidr: "fd64::/48", blockLength: 64 }],
  routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }],
  blocks: [2, 7],
};

async function addressesIn(machine: Machine, container: Container): Promise<string[]> {
  const shown = await machine.sh("ip -o address show dev eth0 scope global", { in: container });
  return [...shown.matchAll(/ inet6? (\S+) /g)].map(([, address]) => address!);
}

async function leases(machine: Machine, pool = "lan"): Promise<string[]> {
  return (await machine.sh(`cd ${POOLS}/${pool}; grep -H . [0-9f]* | tr -d '\\r' || true`)).split("\n").slice(0, -1);
}

/** The gateway stays on the bridge, as do the pool's index and the wish of an ADD that was refused. */
const OF_THE_HOST = /file \/(var\/lib\/patchbay|run\/patchbay\/wish~)|address br0 .*"tentative":true/;
const master = "ip link add m0 type veth peer name m1; ip link set m1 up; ip link set m0 up";

interface Kind {
  conf: Record<string, unknown> & { type: string };
  pool: GivenPool;
  addresses: string[];
  /** Debian's build of the plugin; ours is its IPAM plugin. */
  isGo?: true;
  prepare?: string;
  needs?: Parameters<typeof lacks>[0];
}

const flatAddresses = ["10.50.0.16/24", "fd50::110/64"], routedAddresses = ["10.64.0.130/26", "fd64:0:0:2::2/64"];
const bridge = { type: "bridge", bridge: "br0", isGateway: true, ipam };
const kinds: Record<string, Kind> = {
  "bridge, flat": { conf: { ...bridge, isGateway: false }, pool: flat, addresses: flatAddresses },
  "bridge, routed": { conf: { ...bridge, ipMasq: true }, pool: routed, addresses: routedAddresses },
  "Go's bridge, flat": { conf: { ...bridge, isGateway: false }, pool: flat, addresses: flatAddresses, isGo: true },
  "Go's bridge, routed": { conf: bridge, pool: routed, addresses: routedAddresses, isGo: true },
  "ptp, routed": { conf: { type: "ptp", ipam }, pool: routed, addresses: routedAddresses },
  "Go's ptp, routed": { conf: { type: "ptp", ipam }, pool: routed, addresses: routedAddresses, isGo: true },
  "macvlan, flat": {
    conf: { type: "macvlan", master: "m0", ipam },
    pool: flat,
    addresses: flatAddresses,
    prepare: master,
    needs: "macvlan links",
  },
};

describe.each(Object.entries(kinds))("%s", (_, { conf, pool, addresses, isGo, prepare = "true", needs }) => {
  test.skipIf(lacks(needs))("gets addresses of a block, and gives them back without the file", async () => {
    await using machine = await openMachine();
    await machine.sh(prepare);
    await serve(machine, pool);
    const env = { CNI_PATH: `${GO_PLUGINS}:${patchbayPlugins()}` };
    const net = network(machine, { cniVersion: "1.0.0", ...conf }, isGo ? GO_PLUGINS : patchbayPlugins(), { env });
    const first = await machine.container("c0"), container = await machine.container("c1");
    await net.once(first);
    await machine.sh(`rm -r ${POOLS}`);
    const moment = await quietMoment(machine);

    const { ips, routes } = await net.add(container);
    expect(ips.map(({ address }: { address: string }) => address)).toEqual(addresses);
    expect(routes.map(({ dst }: { dst: string }) => dst)).toEqual(
      pool.routes!.map((route) => (route as { dst: string }).dst),
    );
    expect(await addressesIn(machine, container)).toEqual(addresses);
    expect(await leases(machine)).toEqual(
      addresses.flatMap((address) => ["ctr-c1", "eth0", "net"].map((line) => `${address.split("/")[0]}:${line}`)),
    );
    await net.check(container);
    if (pool === routed) expect(await ping(machine, container, ips[0].gateway)).toBe(true);

    await machine.sh(`mv ${STATE}/pool~lan /run/kept`);
    expect((await net.call("ADD", first)).json).toMatchObject({ code: 11 });
    // Go's plugins leave it to DEL to take back what a failed ADD has made.
    await net.del(first);
    await net.check(container);
    await net.del(container);
    await net.del(container);
    await machine.sh(`mv /run/kept ${STATE}/pool~lan`);
    expect(await leases(machine)).toEqual([]);
    expect(await leftSince(moment, machine, OF_THE_HOST)).toEqual([]);
  });
});

test("two networks on one pool: containers of both reach one another, and GC of one leaves the other's", async () => {
  await using machine = await openMachine();
  await serve(machine, { blocks: [1, 2] });
  const nets = ["one", "two"].map((name) => network(machine, { name, type: "bridge", bridge: "br0", ipam }));
  const containers: Container[] = [];
  for (let count = 0; count < 24; count++) containers.push(await machine.container());
  const added = await Promise.all(containers.map((container, index) => nets[index % 2]!.add(container)));
  const given: string[] = added.map(({ ips }) => ips[0].address.split("/")[0]);
  expect(new Set(given).size).toBe(containers.length);
  expect(await ping(machine, containers[0]!, given[23]!)).toBe(true);
  await nets[0]!.gc(containers.filter((_, index) => index % 2 === 0 && index > 0));
  const owners = (await leases(machine)).filter((line) => /:(ctr-|one|two)/.test(line)).map((line) =>
    line.split(":")[1]!
  );
  expect(owners.filter((line) => line === "one")).toHaveLength(11);
  expect(owners.filter((line) => line === "two")).toHaveLength(12);
  for (const [index, container] of containers.entries()) await nets[index % 2]!.del(container);
  expect(await leases(machine)).toEqual([]);
});

test("the container's route leads by the pool's gateway, unless the configuration says otherwise", async () => {
  await using machine = await openMachine();
  await serve(machine, { routes: [{ dst: "0.0.0.0/0" }, { dst: "198.51.100.0/24", gw: "10.50.0.9" }] });
  const routes = [{ dst: "198.51.100.0/24", gw: "10.50.0.7" }];
  const net = network(machine, { type: "bridge", bridge: "br0", ipam: { ...ipam, routes } });
  const container = await machine.container();
  await net.add(container);
  expect(await machine.sh("ip route | sed 's/ *$//'", { in: container })).toBe(
    "default via 10.50.0.254 dev eth0\n10.50.0.0/24 dev eth0 proto kernel scope link src 10.50.0.16\n" +
      "198.51.100.0/24 via 10.50.0.7 dev eth0\n",
  );
});

/** What the calls of a program ask the kernel for, from its configuration on, by name. */
async function asked(machine: Machine, call: Call): Promise<string[]> {
  const env = { ...environmentOf(patchbayPlugins(), call), PATCHBAY_RESIDENT: "off" };
  const words = ["strace", "-f", "-qq", "-o", "/run/trace", `${patchbayPlugins()}/${call.plugin}`];
  const { code, stdout } = await machine.run(words, { env, stdin: stdinOf(call) });
  expect([call.plugin, call.command, code, code === 0 ? "" : stdout]).toEqual([call.plugin, call.command, 0, ""]);
  const lines = (await machine.sh("cat /run/trace")).split("\n");
  const begin = lines.findIndex((line) => line.includes('read(0, "{'));
  return lines.slice(begin).flatMap((line) => /^\d+ +(\w+)\(/.exec(line)?.[1] ?? []);
}

/** The runtime's own, of which there are more or fewer from run to run. */
const OF_RUNTIME =
  /^(futex|madvise|mprotect|mmap|munmap|sched_yield|membarrier|rt_sig\w+|getrandom|brk|gettid|clock_nanosleep|ioctl|exit\w*|clone3?|rseq|set_robust_list|prctl|sched_getaffinity|newfstatat|fstatfs|getrusage|tgkill)$/;

test("ADD asks the kernel for five things more than host-local does, DEL for one less, and neither for a socket", async () => {
  await using machine = await openMachine();
  await serve(machine);
  const container = await machine.container();
  const hostLocal = { type: "host-local", subnet: "10.50.0.0/24" };
  const callOf = (command: string, { type, ...rest }: { type: string }, containerId: string): Call => ({
    plugin: type,
    command,
    container,
    containerId,
    conf: { cniVersion: "1.1.0", name: "net", ipam: { type, ...rest } },
  });
  const counts: Record<string, number> = {};
  for (const [name, conf] of [["host-local", hostLocal], ["patchbay-cluster", ipam]] as const) {
    await network(machine, { type: name, ipam: conf }).add(container);
    // The runtime's threads may make more calls now and then, never fewer.
    for (let round = 0; round < 4; round++) {
      for (const command of ["ADD", "DEL"]) {
        const calls = await asked(machine, callOf(command, conf, "other")), what = `${name} ${command}`;
        expect(calls.filter((call) => /socket|connect/.test(call))).toEqual([]);
        const count = calls.filter((call) => !OF_RUNTIME.test(call)).length;
        counts[what] = Math.min(count, counts[what] ?? count);
      }
    }
  }
  const more = (command: string) => counts[`patchbay-cluster ${command}`]! - counts[`host-local ${command}`]!;
  expect(more("ADD")).toBe(5);
  // One less: it has no leases that have moved elsewhere.
  expect(more("DEL")).toBe(-1);
});

test("what somebody else has written is not believed", async () => {
  await using machine = await openMachine();
  await serve(machine);
  const net = network(machine, { type: "patchbay-cluster", ipam }), container = await machine.container();
  await machine.sh(`chown 1000 ${STATE}/pool~lan`);
  for (const command of ["ADD", "STATUS"]) {
    const { json } = await net.call(command, command === "ADD" ? container : undefined);
    const text =
      "it belongs to uid 1000 with mode 0600; remove it, or run chown 0 /run/patchbay/pool~lan if what it says is right";
    expect(json).toMatchObject({ code: command === "ADD" ? 5 : 50, msg: expect.stringContaining(text) });
  }
  await net.del(container);
});

test("leases of an earlier boot end with the first ADD of this one", async () => {
  await using machine = await openMachine();
  await serve(machine);
  const net = network(machine, { type: "patchbay-cluster", ipam });
  const [before, after] = [await machine.container(), await machine.container()] as const;
  await net.add(before);
  // The index names its boot.
  const index = `${POOLS}/lan/.patchbay/10.50.0.0-24`;
  await machine.sh(`printf 0123456789abcdef | dd of=${index} bs=1 seek=48 conv=notrunc 2>/dev/null; rm -r ${STATE}`);
  expect((await net.call("ADD", after)).json).toMatchObject({ code: 11 });
  await serve(machine);
  const { ips } = await net.add(after);
  expect(ips[0].address).toBe("10.50.0.17/24");
  expect((await leases(machine)).filter((line) => line.includes("ctr-"))).toEqual(["10.50.0.17:ctr-c2"]);
});
