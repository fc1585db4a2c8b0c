/**
 * What single engines that use go-cni look at, or do themselves, beside the calls that all of them make
 * (go-cni.test.ts): iptables chains, lease files, namespaces of processes, bridges of their own.
 *
 * Longer than 300 lines: a test or two for each engine, which share what comes first.
 */
import { expect, test } from "bun:test";
import { type Attached, GoEngine } from "../support/engines/go-engine.ts";
import {
  buildkit,
  concourse,
  containerd,
  faasd,
  HOST_IP,
  hostPortOf,
  k3s,
  kindnet,
  nerdctl,
  nerdctlsBoth,
  nerdctlsSecond,
  nomad,
} from "../support/engines/go-networks.ts";
import { fine, GoNode, PLUGINS } from "../support/engines/go-node.ts";
import { leftSince } from "../support/leftovers.ts";
import type { Container, Machine } from "../support/machine.ts";
import { startInOwnNetns } from "../support/own-netns.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { ping, serve } from "../support/traffic.ts";

async function expectNothingLeft(node: GoNode, except?: RegExp): Promise<void> {
  await node.endContainers();
  expect(await leftSince(node.moment, node.machine, except)).toEqual([]);
}

const lines = async (machine: Machine, script: string) => (await machine.sh(script)).trimEnd().split("\n");

test("Nomad finds a container's rule by its comment, and removing it by itself does no harm", async () => {
  await using node = await GoNode.open(nomad);
  const { machine } = node, [container] = await node.containers(1) as [Container], id = node.idOf(container);
  await node.attached([container]);
  const rules = await lines(machine, "iptables -t nat -S POSTROUTING");
  const found = rules.map((rule) =>
    /^-A POSTROUTING -s (\S+) -m comment --comment "name: \\"nomad\\" id: \\"([0-9a-f-]+)\\"" -j (CNI-[0-9a-f]+)$/
      .exec(rule)
  ).filter((match) => match?.[2] === id);
  expect(found).toHaveLength(1);
  const [, source, , chain] = found[0]!;
  await machine.sh(`
    iptables -t nat -D POSTROUTING -s ${source} -m comment --comment 'name: "nomad" id: "${id}"' -j ${chain}
    iptables -t nat -F ${chain}; iptables -t nat -X ${chain}`);
  expect(await node.all("remove", [container])).toEqual(fine(1));
  await expectNothingLeft(node);
});

test("Nomad's ports are those of one address, for TCP and UDP, and its admin chain is asked first", async () => {
  await using node = await GoNode.open(nomad);
  const { machine } = node, [container] = await node.containers(1) as [Container];
  await machine.sh("ip addr add 192.0.2.2/32 dev lo");
  await node.attached([container]);
  const port = hostPortOf(node.numberOf(container));
  for (const protocol of ["tcp", "udp"] as const) {
    await using server = await serve(machine, container, protocol, 8080);
    expect(await server.ask(undefined, HOST_IP, port)).toBeDefined();
    expect(await server.ask(undefined, "192.0.2.2", port)).toBeUndefined();
  }
  const forward = await lines(machine, "iptables -S CNI-FORWARD");
  expect(forward.filter((rule) => rule.startsWith("-A"))[0]).toEndWith("-j NOMAD-ADMIN");
  expect(await node.all("remove", [container])).toEqual(fine(1));
  await machine.sh("ip addr del 192.0.2.2/32 dev lo");
  await expectNothingLeft(node);
});

test("Nomad tries three times when a foreign plugin at the end fails, and removes the container once", async () => {
  const [network] = nomad.networks as { plugins: object[] }[];
  const plugins = [...network!.plugins, { type: "consul-cni", log_level: "debug" }];
  await using node = await GoNode.open({ ...nomad, networks: [{ ...network, plugins }] }, {
    "consul-cni": `#!/bin/sh
[ $CNI_COMMAND = ADD ] || exit 0
[ ! -e /run/consul-is-down ] || { echo '{"cniVersion":"0.4.0","code":101,"msg":"consul is down"}'; exit 1; }
sed -E 's/.*"prevResult":(.*\\}),"type".*/\\1/'
`,
  });
  const { machine } = node, [container] = await node.containers(1) as [Container];
  await machine.sh("touch /run/consul-is-down");
  for (let attempt = 1; attempt <= 3; attempt++) {
    const [{ error } = {}] = await node.attach([container]);
    expect(error).toMatch(attempt === 1 ? /consul is down/ : /consul is down|eth0|duplicate allocation/);
  }
  await machine.sh("rm /run/consul-is-down");
  expect(await node.all("remove", [container])).toEqual(fine(1));
  const [result] = await node.attached([container]);
  expect(result!.Interfaces["eth0"]!.IPConfigs).toHaveLength(1);
  expect(await node.all("remove", [container])).toEqual(fine(1));
  await expectNothingLeft(node);
});

test("nerdctl finds the ports that are taken, and its networks do not reach one another", async () => {
  await using node = await GoNode.open(nerdctlsBoth);
  const { machine } = node, [both, one, other] = await node.containers(3) as [Container, Container, Container];
  const plugins = [PLUGINS];
  await using first = new GoEngine(machine, { plugins, networks: nerdctl.networks });
  await using second = new GoEngine(machine, { plugins, networks: nerdctlsSecond.networks });
  await node.attached([both]);
  const setUp = async (engine: GoEngine, container: Container) => {
    const { error, result } = await engine.one(node.callsOf("setup", [container])[0]!);
    expect(error).toBeUndefined();
    return (result as Attached).Interfaces["eth0"]!.IPConfigs![0]!.IP;
  };
  await setUp(first, one);
  const address = await setUp(second, other);
  expect([await ping(machine, both, address), await ping(machine, one, address)]).toEqual([true, false]);

  const dnat = await lines(machine, "iptables -t nat -S CNI-HOSTPORT-DNAT");
  const ports = dnat.flatMap((rule) => /--dports ((,?\d+)+)/.exec(rule)?.[1]?.split(",") ?? []);
  const expected = [both, one, other].map((container) => String(hostPortOf(node.numberOf(container))));
  expect(new Set(ports)).toEqual(new Set(expected));
  // When a container has stopped, it names no namespace, which may still be there.
  expect(await node.all("remove", [both], "")).toEqual(fine(1));
  expect(await first.one(node.callsOf("remove", [one], "")[0]!)).toEqual({});
  expect(await second.one(node.callsOf("remove", [other], "")[0]!)).toEqual({});
  await expectNothingLeft(node);
});

test("nerdctl's --ip and --mac-address are arguments of CNI, and --ip6 is a capability", async () => {
  await using node = await GoNode.open(nerdctl);
  const [container] = await node.containers(1) as [Container], mac = "92:d0:c6:0a:29:33";
  const [call] = node.callsOf("setup", [container]);
  const labels = { ...call!.labels, IP: "10.4.0.77", MAC: mac };
  const { error, result } = await node.go.one({ ...call!, labels });
  expect([error, result.Interfaces["eth0"]]).toEqual([
    undefined,
    expect.objectContaining({ Mac: mac, IPConfigs: [expect.objectContaining({ IP: "10.4.0.77" })] }),
  ]);
  expect(await node.all("remove", [container], "")).toEqual(fine(1));
  const refused = await node.go.one({ ...call!, capabilities: { ips: ["fd00:4::77"] } });
  expect(refused.error).toContain("fd00:4::77");
  expect(await node.all("remove", [container], "")).toEqual(fine(1));
  await expectNothingLeft(node);
});

test("faasd finds an address in the lease files, by the name and the number of a process", async () => {
  await using node = await GoNode.open(faasd);
  const functions = [];
  for (const name of ["figlet", "nodeinfo"]) {
    const process = await startInOwnNetns(node.machine), { pid } = process;
    const call = { id: `${name}-${pid}`, netns: `/proc/${pid}/ns/net`, labels: {} };
    functions.push({ process, call });
  }
  for (const { call } of functions) {
    const { error, result } = await node.go.one({ call: "setup", ...call });
    expect(error).toBeUndefined();
    const lease = { call: "lease", directory: faasd.leases[0]!, owner: call.id };
    expect(await node.go.one(lease)).toEqual({ result: result.Interfaces["eth1"].IPConfigs[0].IP });
  }
  // One is removed while its process runs, and the other one when its number leads nowhere.
  const [first, second] = functions as [typeof functions[0], typeof functions[0]];
  expect(await node.go.one({ call: "remove", ...first.call })).toEqual({});
  for (const { process } of functions) {
    process.kill("SIGKILL");
    await process.exited;
  }
  expect(await node.go.one({ call: "remove", ...second.call })).toEqual({});
  await expectNothingLeft(node);
});

test("buildkit: a pool of sixteen namespaces, statistics of one link each, and a bridge that it removes", async () => {
  await using node = await GoNode.open(buildkit);
  const { machine } = node, pool = await node.containers(16);
  const results = await node.attached(pool);
  const addresses = results.map(({ Interfaces }) => Interfaces["eth0"]!.IPConfigs![0]!.IP);
  expect(new Set(addresses).size).toBe(16);
  for (const { Interfaces } of results) {
    const ends = Object.keys(Interfaces).filter((name) => name.startsWith("veth"));
    expect(ends).toHaveLength(1);
    expect(await machine.sh(`cat /sys/class/net/${ends[0]}/statistics/rx_bytes`)).toMatch(/^\d+\n$/);
  }
  for (let build = 0; build < 3; build++) {
    expect(await ping(machine, pool[build], "10.10.0.1")).toBe(true);
    expect(await ping(machine, pool[15 - build], addresses[build]!)).toBe(true);
  }
  expect(await node.all("remove", pool)).toEqual(fine(16));
  await machine.sh("ip link del buildkit0");
  const [again] = await node.containers(1) as [Container];
  await node.attached([again]);
  expect(await ping(machine, again, "10.10.0.1")).toBe(true);
  expect(await node.all("remove", [again])).toEqual(fine(1));
  await expectNothingLeft(node);
});

test("buildkit after a kill and after a boot: it removes what its directory of namespaces still names", async () => {
  await using node = await GoNode.open(buildkit);
  const { machine } = node, pool = await node.containers(4);
  const [mounted, unmounted, half, never] = pool as [Container, Container, Container, Container];
  await node.attached([mounted, unmounted]);
  // It calls no Remove for what failed.
  await machine.sh(`mv ${PLUGINS}/buildkit-cni-bridge ${PLUGINS}/away`);
  expect((await node.attach([half]))[0]!.error).toContain("buildkit-cni-bridge");
  await machine.sh(`mv ${PLUGINS}/away ${PLUGINS}/buildkit-cni-bridge`);
  // A boot leaves the empty files that namespaces were mounted on.
  await machine.sh(`umount ${unmounted.netnsPath} ${never.netnsPath}; test -f ${never.netnsPath}`);
  await node.restartAgent();
  expect(await node.all("remove", pool)).toEqual(fine(4));
  expect(await machine.sh("ip -br link show type veth")).toBe("");
  await node.attached([mounted]);
  expect(await ping(machine, mounted, "10.10.0.1")).toBe(true);
  expect(await node.all("remove", [mounted])).toEqual(fine(1));
  await expectNothingLeft(node);
});

/** A network beyond the host, with two addresses of it. */
async function outside(machine: Machine, ...addresses: string[]): Promise<void> {
  await machine.sh(`
    ip netns add outside
    ip link add ext0 type veth peer name ext0 netns outside
    ip addr add 198.51.100.1/24 dev ext0; ip link set ext0 up
    ip -n outside addr add 198.51.100.2/24 dev ext0; ip -n outside link set ext0 up`);
  for (const address of addresses) {
    await machine.sh(`ip -n outside addr add ${address}/32 dev ext0; ip route add ${address} via 198.51.100.2`);
  }
}

test("Concourse: its own directory of plugins, and an operator's chain that is filled before", async () => {
  await using node = await GoNode.open(concourse);
  const { machine } = node, own = "/var/lib/concourse/bin";
  await machine.sh(`mkdir -p ${own}; ${PATCHBAY} install ${own} >/dev/null`);
  await outside(machine, "203.0.113.9");
  // As the worker does when it starts.
  await machine.sh(`
    iptables -F CONCOURSE-OPERATOR
    iptables -A CONCOURSE-OPERATOR -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
    iptables -A CONCOURSE-OPERATOR -d 203.0.113.0/24 -j REJECT
    iptables -A INPUT -i concourse0 -j REJECT --reject-with icmp-host-prohibited`);
  const ofOperator = await machine.sh("iptables -S CONCOURSE-OPERATOR; iptables -S INPUT");
  await using worker = new GoEngine(machine, { plugins: [own], networks: concourse.networks });
  const containers = await node.containers(2), [first] = containers as [Container];
  const results = await worker.all(node.callsOf("setup", containers));
  node.expectFine(results);
  const [v4, v6] = ["eth0", "eth2"].map((name) => results[1]!.result.Interfaces[name].IPConfigs[0].IP) as [
    string,
    string,
  ];
  expect(v6).toStartWith("fd9c:31a6:c759::");
  const reaches = async (address: string) => await ping(machine, first, address);
  expect([await reaches("198.51.100.2"), await reaches("203.0.113.9"), await reaches("10.80.0.1")]).toEqual([
    true,
    false,
    false,
  ]);
  expect([await reaches(v4), await reaches(v6)]).toEqual([true, true]);
  expect(await worker.all(node.callsOf("remove", containers))).toEqual(fine(2));
  expect(await machine.sh("iptables -S CONCOURSE-OPERATOR; iptables -S INPUT")).toBe(ofOperator);
  await machine.sh("iptables -F CONCOURSE-OPERATOR; iptables -F INPUT; ip link del ext0; ip netns del outside");
  await expectNothingLeft(node, /concourse\/bin/);
});

test("kindnet: a route to each pod, which goes with it", async () => {
  await using node = await GoNode.open(kindnet);
  const { machine } = node, pods = await node.containers(3), results = await node.attached(pods);
  const routes = await machine.sh("ip -4 route");
  for (const { Interfaces } of results) {
    const [host] = Object.keys(Interfaces).filter((name) => name.startsWith("veth"));
    expect(routes).toContain(`${Interfaces["eth0"]!.IPConfigs![0]!.IP} dev ${host} `);
  }
  expect(await node.all("remove", pods)).toEqual(fine(3));
  expect(await machine.sh("ip -4 route")).not.toContain("10.244.0.");
  await expectNothingLeft(node);
});

test("k3s: flannel's subnet, and limits that the pod's annotations ask for", async () => {
  await using node = await GoNode.open(k3s);
  const { machine } = node, [pod] = await node.containers(1) as [Container];
  const [{ Interfaces } = {} as Attached] = await node.attached([pod]);
  expect(Interfaces["eth0"]!.IPConfigs).toEqual([{
    IP: expect.stringMatching(/^10\.42\.0\.\d+$/),
    Gateway: "10.42.0.1",
  }]);
  expect(await machine.sh("ip link show eth0", { in: pod })).toContain("mtu 1450");
  const [end] = Object.keys(Interfaces).filter((name) => name.startsWith("veth"));
  expect(await machine.sh(`tc qdisc show dev ${end}`)).toContain("rate 8Mbit");
  const [copy] = Object.keys(Interfaces).filter((name) => name.startsWith("bwp"));
  expect(await machine.sh(`tc qdisc show dev ${copy}`)).toContain("rate 4Mbit");
  expect(await node.all("remove", [pod])).toEqual(fine(1));
  await expectNothingLeft(node);
});

test("containerd's CRI: both families, and pods that come and go at the same time", async () => {
  await using node = await GoNode.open(containerd);
  const { machine } = node, [first, ...others] = await node.containers(7) as [Container, ...Container[]];
  const [result] = await node.attached([first]);
  for (const { IP, Gateway } of result!.Interfaces["eth0"]!.IPConfigs!) {
    expect(await ping(machine, first, Gateway)).toBe(true);
    expect(await ping(machine, undefined, IP)).toBe(true);
  }
  const pairs = [others.slice(0, 2), others.slice(2, 4), others.slice(4)];
  let running: Container[] = [];
  for (const next of pairs) {
    node.expectFine(await node.go.all([...node.callsOf("remove", running), ...node.callsOf("setup", next)]));
    running = next;
    expect(await node.differences()).toBe("");
  }
  expect(await node.all("remove", [first, ...others])).toEqual(fine(7));
  await expectNothingLeft(node);
});
