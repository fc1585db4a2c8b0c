/**
 * Who reaches whom under each firewall backend, each ingress policy, and another program's FORWARD policy: two
 * containers on one bridge in subnets of their own, so that packets between them are routed, one in the first one's
 * subnet, one on another bridge, the host and the outside. Host ports lead to the first container. All in both
 * families, over TCP, UDP and SCTP.
 */
import { existsSync } from "node:fs";
import { isIP } from "node:net";
import { expect, test } from "bun:test";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { difference, settled } from "../support/snapshot.ts";
import { type Place, serve, type Server } from "../support/traffic.ts";

const addresses: Record<string, [string, string]> = {
  c1: ["10.20.0.2", "fd20::2"],
  c2: ["10.30.0.2", "fd30::2"],
  c3: ["10.40.0.2", "fd40::2"],
  c4: ["10.20.0.4", "fd20::4"],
  out: ["192.0.2.2", "2001:db8::2"],
};
const bridgeOf: Record<string, string> = { c1: "br0", c2: "br0", c3: "br1", c4: "br0" };
const gateways: Record<string, string[]> = {
  br0: ["10.20.0.1/24", "fd20::1/64", "10.30.0.1/24", "fd30::1/64"],
  br1: ["10.40.0.1/24", "fd40::1/64"],
  vout: ["192.0.2.1/24", "2001:db8::1/64"],
};

/** Everybody serves on this one, and the other one of the host leads to c1. */
const PORT = 7, PUBLISHED = 8080;
const places: Record<string, Place[]> = {
  host: [["10.20.0.1", PORT], ["fd20::1", PORT]],
  published: [["192.0.2.1", PUBLISHED], ["2001:db8::1", PUBLISHED]],
  localhost: [["127.0.0.1", PUBLISHED]],
};
for (const [name, list] of Object.entries(addresses)) places[name] = list.map((address) => [address, PORT]);

const direct = ["c1 c2", "c1 c3", "c1 c4", "c1 out", "c1 host", "c3 c1", "out c1", "out c3", "host c1"];
const mapped = ["c1 published", "c3 published", "c4 published", "out published", "host published", "host localhost"];
const ways = [...direct, ...mapped];

interface Town extends AsyncDisposable {
  machine: Machine;
  containers: Record<string, Container>;
  servers: Server[];
}

/** Nobody is told of a shorter way than over the host. */
async function openTown(): Promise<Town> {
  const machine = await openMachine();
  const containers: Record<string, Container> = {};
  for (const name of Object.keys(addresses)) containers[name] = await machine.container(name);
  await machine.sh(`
    sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
    ip link add br0 type bridge
    ip link add br1 type bridge
    for name in c1 c2 c3 c4 out; do
      ip link add v$name type veth peer name eth0 netns $name
      ip link set v$name up
      ip -n $name link set eth0 up
      ip netns exec $name sysctl -qw net.ipv4.conf.all.accept_redirects=0 \
        net.ipv4.conf.eth0.accept_redirects=0 net.ipv6.conf.eth0.accept_redirects=0
    done
    for name in c1 c2 c4; do ip link set v$name master br0; bridge link set dev v$name hairpin on; done
    ip link set vc3 master br1`);
  for (const [link, list] of Object.entries(gateways)) {
    await machine.sh(`ip link set ${link} up`);
    for (const address of list) await machine.sh(`ip address add ${address} dev ${link} nodad`);
  }
  for (const [name, [v4, v6]] of Object.entries(addresses)) {
    const gateway = (address: string) => address.replace(/\d$/, "1");
    await machine.sh(`
      ip -n ${name} address add ${v4}/24 dev eth0
      ip -n ${name} address add ${v6}/64 dev eth0 nodad
      ip -n ${name} route add default via ${gateway(v4)}
      ip -n ${name} route add default via ${gateway(v6)}`);
  }
  const servers = await Promise.all([undefined, ...machine.containers].map((on) => serve(machine, on, "all", PORT)));
  const town: Town = {
    machine,
    containers,
    servers,
    async [Symbol.asyncDispose]() {
      await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
      await machine[Symbol.asyncDispose]();
    },
  };
  expect(await settled(async () => difference(direct, await open(town, direct)))).toEqual([]);
  return town;
}

function prevResultOf({ name, netnsPath }: Container) {
  const [v4, v6] = addresses[name]!;
  const interfaces = [{ name: bridgeOf[name] }, { name: `v${name}` }, { name: "eth0", sandbox: netnsPath }];
  const ips = [{ interface: 2, address: `${v4}/24` }, { interface: 2, address: `${v6}/64` }];
  return { prevResult: { cniVersion: "1.1.0", interfaces, ips } };
}

/** The ways that are open in both families and all protocols. A way that is open only in some says in which. */
async function open({ servers: [server], containers }: Town, ways: readonly string[]): Promise<string[]> {
  const bySource = Map.groupBy(ways.map((way) => way.split(" ") as [string, string]), ([from]) => from);
  const found = await Promise.all([...bySource].map(async ([from, own]) => {
    const answers = await server!.askAll(containers[from], own.flatMap(([, to]) => places[to]!));
    return own.flatMap(([, to]) => {
      const reached = answers.splice(0, places[to]!.length);
      if (reached.every((answer) => answer === undefined)) return [];
      const isOpen = reached.every((answer) => answer !== undefined && isIP(answer) > 0);
      return [isOpen ? `${from} ${to}` : `${from} ${to}: ${reached.join(" and ")}`];
    });
  }));
  return found.flat();
}

/** What is not forwarded. */
const local = ["c1 host", "host c1", "host published", "host localhost"];

/** With a FORWARD policy of ACCEPT, and of DROP as another program's. */
const expected: Record<string, { accept: string[]; drop: string[] }> = {
  open: {
    accept: ways,
    drop: ["c1 c2", "c1 c3", "c1 c4", "c1 out", "c3 c1", "c1 published", "c3 published", "c4 published", ...local],
  },
  "same-bridge": {
    accept: ways.filter((way) => !["c1 c3", "c3 c1", "c3 published"].includes(way)),
    drop: ["c1 c2", "c1 c4", "c1 out", "c1 published", "c4 published", ...local],
  },
  isolated: {
    accept: ["c1 out", "out c1", "out c3", "out published", ...local],
    drop: ["c1 out", ...local],
  },
};

/** Without br_netfilter the host's rules are not asked about what stays on a bridge. */
const asksAboutBridged = existsSync("/proc/sys/net/bridge/bridge-nf-call-iptables");

for (const backend of ["iptables", "nftables"]) {
  test(`${backend}: who reaches whom`, async () => {
    await using town = await openTown();
    const { machine, containers: { c1, c2, c3, c4 } } = town;
    const differs = async (expected: string[]) => {
      const found = await open(town, ways);
      return difference(asksAboutBridged ? expected : [...new Set([...expected, "c1 c4"])], found);
    };
    const portMappings = ["tcp", "udp", "sctp"].map((protocol) => (
      { protocol, hostPort: PUBLISHED, containerPort: PORT }
    ));
    const portmap = { type: "portmap", backend, runtimeConfig: { portMappings } };
    const ports = network(machine, portmap, undefined, { own: prevResultOf });
    for (const ingressPolicy of ["open", "same-bridge", "isolated"]) {
      await machine.sh("nft flush ruleset");
      const net = network(machine, { type: "firewall", backend, ingressPolicy }, undefined, { own: prevResultOf });
      for (const each of [c1, c2, c3, c4]) await net.add(each!);
      await ports.add(c1!);
      const { accept, drop } = expected[ingressPolicy]!;
      expect({ ingressPolicy, accept: await differs(accept) }).toEqual({ ingressPolicy, accept: [] });
      await machine.sh("iptables -P FORWARD DROP; ip6tables -P FORWARD DROP");
      // A table of our own cannot let through what another table drops.
      const dropped = await differs(backend === "nftables" ? local : drop);
      expect({ ingressPolicy, dropped }).toEqual({ ingressPolicy, dropped: [] });
      await machine.sh("iptables -P FORWARD ACCEPT; ip6tables -P FORWARD ACCEPT");
      if (ingressPolicy === "isolated" && asksAboutBridged) {
        await machine.sh("sysctl -qw net.bridge.bridge-nf-call-iptables=0 net.bridge.bridge-nf-call-ip6tables=0");
        // What was dropped before includes the neighbours' discovery, which is repeated in its own time.
        const found = () => open(town, ["c1 c4", "c4 published"]);
        expect(await settled(async () => difference(["c1 c4"], await found()))).toEqual([]);
      }
      await ports.del(c1!);
      for (const each of [c1, c2, c3, c4]) await net.del(each!);
    }
  });
}

test("iptables: a connection the container opened goes both ways under another's DROP, and the admin's chain comes first", async () => {
  await using town = await openTown();
  const { machine, containers: { c1, out }, servers: [server] } = town;
  await machine.sh("iptables -P FORWARD DROP; ip6tables -P FORWARD DROP");
  const net = network(machine, { type: "firewall", iptablesAdminChainName: "SITE" }, undefined, {
    own: prevResultOf,
  });
  const reached = async () =>
    await Promise.all([server!.askAll(c1, places["out"]!), server!.askAll(out, places["c1"]!)]);
  const nobody = [undefined, undefined];
  expect(await reached()).toEqual([nobody, nobody]);
  await net.add(c1!);
  expect(await reached()).toEqual([["10.20.0.2", "fd20::2"], nobody]);
  await machine.sh("iptables -A SITE -d 192.0.2.2 -j DROP; ip6tables -A SITE -s 2001:db8::2 -j ACCEPT");
  expect(await reached()).toEqual([[undefined, "fd20::2"], [undefined, "2001:db8::2"]]);
  await net.del(c1!);
  expect(await reached()).toEqual([nobody, nobody]);
});
