/**
 * What bandwidth creates in the kernel; DEL removes that and nothing else.
 *
 * Longer than 300 lines: all tests compare what tc shows of one link, with the same helpers.
 */
import { expect, test } from "bun:test";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Network, network } from "../support/network.ts";
import { cni, GO_PLUGINS, PATCHBAY, patchbayPlugins } from "../support/plugins.ts";

const LIMITS = { ingressRate: 8_000_000, ingressBurst: 1_600_000, egressRate: 4_000_000, egressBurst: 800_000 };

function ifbName(text: string): string {
  return `bwp${new Bun.CryptoHasher("sha512").update(text).digest("hex").slice(0, 12)}`;
}

/** A veth pair as a main plugin leaves it, for `eth0` or another interface. */
async function pair(machine: Machine, container: Container, ifName = "eth0", mtu = 1500) {
  const host = `h${container.name}${ifName}`;
  // IPv6 routes come by themselves, up to a second later.
  const withoutV6 = "sysctl -qw net.ipv6.conf.default.disable_ipv6=1";
  await machine.sh(`
    ${withoutV6}; ip netns exec ${container.name} ${withoutV6}
    ip link add ${host} mtu ${mtu} type veth peer name ${ifName} mtu ${mtu} netns ${container.name}
    ip link set ${host} up; ip -n ${container.name} link set ${ifName} up`);
  const interfaces = [{ name: host }, { name: ifName, sandbox: container.netnsPath }];
  return { cniVersion: "1.1.0", interfaces };
}

// deno-lint-ignore no-explicit-any
async function qdiscs(machine: Machine, link: string): Promise<any[]> {
  return JSON.parse(await machine.sh(`tc -j qdisc show dev ${link}`));
}

async function ifbs(machine: Machine): Promise<string[]> {
  const links: { ifname: string }[] = JSON.parse(await machine.sh("ip -j link show type ifb"));
  return links.map(({ ifname }) => ifname).filter((name) => name !== undefined);
}

test("token buckets with the reference plugin's numbers, and the ifb in the result", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const net = network(machine, {
    type: "bandwidth",
    ...LIMITS,
    prevResult: await pair(machine, container, "eth0", 1300),
  });
  const { interfaces } = await net.add(container);
  const name = ifbName("netctr-c1");
  const [ifb] = JSON.parse(await machine.sh(`ip -j -d link show ${name}`));
  expect(interfaces[2]).toEqual({ name, mac: ifb.address });
  expect([ifb.mtu, ifb.flags.includes("UP"), ifb.txqlen ?? 0]).toEqual([1300, true, 0]);
  const shown = [...await qdiscs(machine, "hc1eth0"), ...await qdiscs(machine, name)];
  expect(shown.map(({ kind, handle, options }) => [kind, handle, options.rate, options.burst, options.lat])).toEqual([
    ["tbf", "1:", 1_000_000, 200_000, 25_000],
    ["ingress", "ffff:", undefined, undefined, undefined],
    ["tbf", "1:", 500_000, 100_000, 25_000],
  ]);
  const filter = await machine.sh("tc filter show dev hc1eth0 ingress");
  expect(filter).toContain(`mirred (Egress Redirect to device ${name}) stolen`);
  await net.check(container);
});

test("rates beyond 32 bits, and bursts beyond what a bucket can be told", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const conf = {
    ingressRate: 400_000_000_000,
    ingressBurst: 8_000_000_000,
    egressRate: 8_000,
    egressBurst: 2 ** 31 - 1,
    prevResult: await pair(machine, container),
  };
  const net = network(machine, { type: "bandwidth", ...conf });
  await net.add(container);
  const [ingress] = await qdiscs(machine, "hc1eth0"), [egress] = await qdiscs(machine, ifbName("netctr-c1"));
  expect(ingress.options.rate).toBe(50_000_000_000);
  // 2^32 - 1 ticks of 64 ns at 1000 bytes a second.
  expect(egress.options.burst).toBe(274_877);
  await net.check(container);
  await net.del(container);

  // The reference plugin's number for the same, wrapped around.
  const older = {
    type: "bandwidth",
    ...conf,
    cniVersion: "1.0.0",
    prevResult: { ...conf.prevResult, cniVersion: "1.0.0" },
  };
  await network(machine, older, GO_PLUGINS).add(container);
  const [wrapped] = await qdiscs(machine, ifbName("netctr-c1"));
  expect(wrapped.options.burst).toBeLessThan(274_877);
  await network(machine, older).check(container);
});

test("classes and filters for the subnets that are meant, by the other side's address", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const subnets = ["10.0.0.0/8", "192.0.2.7/32", "fd00:db8:abcd:1234:e000::/68", "0.0.0.0/0"];
  const net = network(machine, {
    type: "bandwidth",
    ...LIMITS,
    shapedSubnets: subnets,
    prevResult: await pair(machine, container),
  });
  await net.add(container);
  const matches = async (link: string) => {
    const text = await machine.sh(`tc filter show dev ${link}`);
    return [...text.matchAll(/flowid (\S+)|match (\S+) at (\d+)/g)].map(([, flow, match, at]) =>
      flow ?? `${match} ${at}`
    );
  };
  expect(await matches("hc1eth0")).toEqual([
    ...["1:30", "fd000db8/ffffffff 8", "abcd1234/ffffffff 12", "e0000000/f0000000 16"],
    ...["1:30", "0a000000/ff000000 12", "1:30", "c0000207/ffffffff 12", "1:30", "00000000/00000000 0"],
  ]);
  expect(await matches(ifbName("netctr-c1"))).toEqual([
    ...["1:30", "fd000db8/ffffffff 24", "abcd1234/ffffffff 28", "e0000000/f0000000 32"],
    ...["1:30", "0a000000/ff000000 16", "1:30", "c0000207/ffffffff 16", "1:30", "00000000/00000000 0"],
  ]);
  expect((await qdiscs(machine, "hc1eth0"))[0].options.default).toBe("0x1");
  await net.check(container);
});

test("DEL takes the limits from a link that stays, and leaves what others put there", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const prevResult = await pair(machine, container);
  const net = network(machine, { type: "bandwidth", ...LIMITS, prevResult });
  const moment = await quietMoment(machine);
  await net.add(container);
  for (const _ of [1, 2]) await net.del(container);
  expect(await leftSince(moment, machine)).toEqual([]);

  await net.add(container);
  await machine.sh("tc filter add dev hc1eth0 ingress prio 7 protocol ip u32 match ip dst 192.0.2.1 flowid 1:9");
  await machine.sh("tc qdisc replace dev hc1eth0 root handle 5: pfifo limit 7");
  await net.del(container);
  const left = await qdiscs(machine, "hc1eth0");
  expect(left.map(({ kind }) => kind)).toEqual(["pfifo", "ingress"]);
  const filters = await machine.sh("tc filter show dev hc1eth0 ingress");
  expect([filters.includes("c0000201"), filters.includes("mirred")]).toEqual([true, false]);
  expect(await ifbs(machine)).toEqual([]);
});

test("the ifb goes without namespace, prevResult or ledger, in every combination", async () => {
  await using machine = await openMachine();
  for (let loss = 0; loss < 8; loss++) {
    const container = await machine.container(`d${loss}`);
    const prevResult = await pair(machine, container);
    const net = network(machine, { type: "bandwidth", ...LIMITS, prevResult });
    const result = await net.add(container);
    if (loss & 1) await machine.sh("rm -rf /run/patchbay");
    const conf = { ...LIMITS, prevResult: loss & 2 ? undefined : result };
    const env = loss & 4 ? { CNI_NETNS: "" } : {};
    await net.del(container, { conf, env });
    expect([loss, await ifbs(machine)]).toEqual([loss, []]);
    await net.del(container, { conf, env });
    if (!(loss & 4)) expect((await qdiscs(machine, `hd${loss}eth0`)).map(({ kind }) => kind)).toEqual(["noqueue"]);
  }
});

test("a container attached twice to a network has two ifbs, and each DEL takes its own", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const one = await pair(machine, container, "eth0"), two = await pair(machine, container, "eth1");
  const net = network(machine, { type: "bandwidth", ...LIMITS });
  await net.add(container, { conf: { prevResult: one } });
  const second = await net.add(container, { ifName: "eth1", conf: { prevResult: two } });
  const name = ifbName("netctr-c1");
  const other = second.interfaces[2].name;
  expect((await ifbs(machine)).sort()).toEqual([name, other].sort());
  for (const [conf, ifName] of [[{ prevResult: second }, "eth1"]] as const) {
    await net.check(container, { conf, ifName });
  }

  // Without a ledger and prevResult, the second's DEL finds two that may be its own.
  await machine.sh("rm -rf /run/patchbay");
  await net.del(container, { ifName: "eth1", conf: { prevResult: undefined } });
  expect(await ifbs(machine)).toEqual([name]);
  for (const _ of [1, 2]) await net.del(container, { ifName: "eth1", conf: { prevResult: undefined } });
  expect(await ifbs(machine)).toEqual([name]);
  await net.del(container, { conf: { prevResult: undefined } });
  expect(await ifbs(machine)).toEqual([]);
});

test("an ifb that took the name of ours stays", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const net = network(machine, { type: "bandwidth", ...LIMITS, prevResult: await pair(machine, container) });
  await net.add(container);
  const name = ifbName("netctr-c1");
  await machine.sh(`ip link del ${name}; ip link add ${name} address 02:00:00:00:00:07 type ifb`);
  await net.del(container);
  expect(await ifbs(machine)).toEqual([name]);
});

test("ADD of what is there already fails and changes nothing", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const prevResult = await pair(machine, container);
  const net = network(machine, { type: "bandwidth", ...LIMITS, prevResult });
  await net.add(container);
  const moment = await quietMoment(machine);
  const again = await net.call("ADD", container);
  expect([again.code, again.json.msg]).toEqual([1, "create qdisc: file exists"]);
  const egress = { ...LIMITS, ingressRate: 0, ingressBurst: 0, prevResult };
  expect((await net.call("ADD", container, { conf: egress })).json.msg).toBe("create ingress qdisc: file exists");
  expect(await leftSince(moment, machine)).toEqual([]);
  await net.del(container);
  expect(await ifbs(machine)).toEqual([]);

  // A link by the ifb's name that is none stays, and does not stand in the way.
  await machine.sh(`ip link add ${ifbName("netctr-c1")} type veth peer name other`);
  await net.add(container);
  await net.del(container);
  await machine.sh(`ip link show ${ifbName("netctr-c1")}`);
});

test("DEL takes the ifb that repair has made again", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const net = network(machine, { type: "bandwidth", ...LIMITS, prevResult: await pair(machine, container) });
  await net.add(container);
  await machine.sh(`ip link del ${ifbName("netctr-c1")}`);
  expect((await machine.run([PATCHBAY, "repair", "net", "ctr-c1"])).code).toBe(0);
  await net.del(container);
  expect(await ifbs(machine)).toEqual([]);
});

test("attachments of the reference plugin: CHECK and DEL, ours and theirs", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const prevResult = { ...await pair(machine, container), cniVersion: "1.0.0" };
  const conf = { type: "bandwidth", ...LIMITS, cniVersion: "1.0.0" };
  const ours = network(machine, conf), theirs = network(machine, conf, GO_PLUGINS);
  const moment = await quietMoment(machine);
  const byGo = await theirs.add(container, { conf: { prevResult } });
  await ours.check(container, { conf: { prevResult: byGo } });
  await ours.del(container, { conf: { prevResult: byGo } });
  expect(await leftSince(moment, machine)).toEqual([]);

  const byUs = await ours.add(container, { conf: { prevResult } });
  await theirs.check(container, { conf: { prevResult: byUs } });
  await theirs.del(container, { conf: { prevResult: byUs } });
  expect(await ifbs(machine)).toEqual([]);
});

test("GC takes the ifb of an attachment that is not valid, with or without its container", async () => {
  await using machine = await openMachine();
  const containers = [];
  for (const name of ["c1", "c2", "c3"]) containers.push(await machine.container(name));
  const [kept, gone, alive] = containers as [Container, Container, Container];
  const net = network(machine, { type: "bandwidth", ...LIMITS });
  for (const container of containers) {
    await net.add(container, { conf: { prevResult: await pair(machine, container) } });
  }
  await machine.removeContainer(gone);
  await net.gc([kept]);
  expect(await ifbs(machine)).toEqual([ifbName("netctr-c1")]);
  expect((await qdiscs(machine, `h${alive.name}eth0`)).map(({ kind }) => kind)).toEqual(["noqueue"]);
});

test("GC finds an ifb whose ledger is lost by its alias, and leaves those of others and of the reference plugin", async () => {
  await using machine = await openMachine();
  const net = network(machine, { type: "bandwidth", ...LIMITS });
  const byGo = network(machine, { type: "bandwidth", ...LIMITS }, GO_PLUGINS);
  const add = async (name: string, to: Network, conf: Record<string, unknown> = {}) => {
    const container = await machine.container(name);
    await to.add(container, { conf: { prevResult: { ...await pair(machine, container), ...conf }, ...conf } });
    return container;
  };
  const kept = await add("c1", net), gone = await add("c2", net), alive = await add("c3", net);
  await add("c4", net, { name: "net2" });
  await add("c5", byGo, { cniVersion: "1.0.0" });
  const [{ ifalias }] = JSON.parse(await machine.sh(`ip -j link show ${ifbName("netctr-c1")}`));
  expect(ifalias).toBe("id: ctr-c1, if: eth0, net: net");
  await machine.sh("rm -r /run/patchbay");
  await machine.removeContainer(gone);
  await net.gc([kept]);
  const left = ["netctr-c1", "net2ctr-c4", "netctr-c5"].map(ifbName);
  expect((await ifbs(machine)).sort()).toEqual(left.sort());
  // Nothing goes on being sent to an ifb that is gone.
  expect((await qdiscs(machine, `h${alive.name}eth0`)).map(({ kind }) => kind)).toEqual(["tbf"]);
  await net.gc([kept]);
  expect((await ifbs(machine)).sort()).toEqual(left);
});

test("STATUS finds what the kernel has, without making anything", async () => {
  await using machine = await openMachine();
  const moment = await quietMoment(machine);
  const net = network(machine, { type: "bandwidth", ...LIMITS, unshapedSubnets: ["10.0.0.0/8"] });
  expect((await net.call("STATUS", undefined)).code).toBe(0);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("refusals: nothing is changed, and the reason says which key", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const prevResult = await pair(machine, container);
  const moment = await quietMoment(machine);
  const refused: [conf: Record<string, unknown>, code: number, told: RegExp][] = [
    [{ ingressRate: 1000 }, 7, /^if rate is set, burst must also be set.*"ingressRate" is 1000/],
    [{ egressBurst: 1000 }, 7, /^if burst is set, rate must also be set.*"egressBurst" is 1000/],
    [{ ingressRate: 7, ingressBurst: 1000 }, 7, /at least 8 bits.*"ingressRate" is 7/],
    [{ ingressRate: -1, ingressBurst: 1000 }, 7, /"ingressRate".*-1/],
    [{ ingressRate: "8M", ingressBurst: 1000 }, 7, /"ingressRate".*8M/],
    [{ ingressRate: 1e300, ingressBurst: 1000 }, 7, /"ingressRate"/],
    [{ ...LIMITS, shapedSubnets: ["10.0.0.0/33"] }, 7, /bad subnet "10.0.0.0\/33"/],
    [{ ...LIMITS, shapedSubnets: ["10.0.0.1"] }, 7, /bad subnet "10.0.0.1"/],
    [{ ...LIMITS, prevResult: undefined }, 7, /must be called as chained plugin/],
    [{ prevResult: undefined }, 7, /must be called as chained plugin/],
    [
      { ...LIMITS, prevResult: { cniVersion: "1.1.0", interfaces: [{ name: "lo" }] } },
      7,
      /no veth peer of container interface found/,
    ],
    [
      {
        ...LIMITS,
        prevResult: { cniVersion: "1.1.0", interfaces: [{ name: "hc1eth0", sandbox: container.netnsPath }] },
      },
      7,
      /no veth peer of container interface found/,
    ],
    [{ ...LIMITS, prevResult: { cniVersion: "1.1.0" } }, 7, /^no interfaces provided/],
  ];
  for (const [conf, code, told] of refused) {
    const answer = await cni(machine, patchbayPlugins(), {
      plugin: "bandwidth",
      command: "ADD",
      container,
      conf: { cniVersion: "1.1.0", name: "net", type: "bandwidth", prevResult, ...conf },
    });
    expect([conf, answer.code, answer.json?.code]).toEqual([conf, 1, code]);
    expect(`${answer.json.msg} ${answer.json.details ?? ""}`).toMatch(told);
  }
  const lo = { type: "bandwidth", ...LIMITS, prevResult };
  expect((await network(machine, lo).call("ADD", container, { ifName: "lo" })).json.msg).toBe(
    'container interface lo has no veth peer: interface "lo" was not a veth interface',
  );
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("what is written in the configuration goes before the capability; nothing at all passes prevResult on", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const prevResult = await pair(machine, container);
  const net = network(machine, { type: "bandwidth", prevResult });
  const runtimeConfig = { bandwidth: LIMITS };
  for (const conf of [{}, { ingressRate: 0, runtimeConfig }, { runtimeConfig: { bandwidth: {} } }]) {
    expect((await net.add(container, { conf })).interfaces).toEqual(
      prevResult.interfaces,
    );
  }
  expect((await qdiscs(machine, "hc1eth0")).map(({ kind }) => kind)).toEqual(["noqueue"]);
  const told = async (conf: Record<string, unknown>) => {
    const { code, stderr } = await net.call("ADD", container, { conf });
    await net.del(container);
    return { code, stderr };
  };
  expect(await told({ ...LIMITS, ingressRate: 2 * LIMITS.ingressRate, runtimeConfig })).toEqual({
    code: 0,
    stderr: expect.stringContaining('"ingressRate" that the container asks for: no effect'),
  });
  expect(await told({ ...LIMITS, runtimeConfig })).toEqual({ code: 0, stderr: "" });
  await net.add(container, { conf: { runtimeConfig } });
  expect(await ifbs(machine)).toEqual([ifbName("netctr-c1")]);
  await net.del(container);
});
