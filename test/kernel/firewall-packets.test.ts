/**
 * Who reaches whom under each backend, each ingress policy, and another program's FORWARD policy: two containers on one
 * bridge in subnets of their own, so that what goes between them is routed, a third on another bridge, and the outside.
 */
import { expect, test } from "bun:test";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { difference, settled } from "../support/snapshot.ts";
import { ping, serve } from "../support/traffic.ts";

const addresses: Record<string, [string, string]> = {
  c1: ["10.20.0.2", "fd20::2"],
  c2: ["10.30.0.2", "fd30::2"],
  c3: ["10.40.0.2", "fd40::2"],
  out: ["192.0.2.2", "2001:db8::2"],
};
const bridgeOf: Record<string, string> = { c1: "br0", c2: "br0", c3: "br1" };
const gateways: Record<string, string[]> = {
  br0: ["10.20.0.1/24", "fd20::1/64", "10.30.0.1/24", "fd30::1/64"],
  br1: ["10.40.0.1/24", "fd40::1/64"],
  vout: ["192.0.2.1/24", "2001:db8::1/64"],
};

/** Nobody is told of a shorter way than over the host. */
async function topology(machine: Machine): Promise<Record<string, Container>> {
  const containers: Record<string, Container> = {};
  for (const name of Object.keys(addresses)) containers[name] = await machine.container(name);
  await machine.sh(`
    sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
    ip link add br0 type bridge
    ip link add br1 type bridge
    for name in c1 c2 c3 out; do
      ip link add v$name type veth peer name eth0 netns $name
      ip link set v$name up
      ip -n $name link set eth0 up
      ip netns exec $name sysctl -qw net.ipv4.conf.all.accept_redirects=0 \
        net.ipv4.conf.eth0.accept_redirects=0 net.ipv6.conf.eth0.accept_redirects=0
    done
    ip link set vc1 master br0; ip link set vc2 master br0; ip link set vc3 master br1`);
  for (const [link, list] of Object.entries(gateways)) {
    await machine.sh(`ip link set ${link} up`);
    for (const address of list) await machine.sh(`ip address add ${address} dev ${link} nodad`);
  }
  for (const [name, [v4, v6]] of Object.entries(addresses)) {
    const gateway = (address: string) => address.replace(/2$/, "1");
    await machine.sh(`
      ip -n ${name} address add ${v4}/24 dev eth0
      ip -n ${name} address add ${v6}/64 dev eth0 nodad
      ip -n ${name} route add default via ${gateway(v4)}
      ip -n ${name} route add default via ${gateway(v6)}`);
  }
  expect(await settled(async () => difference(ways, await open(machine, containers)))).toEqual([]);
  return containers;
}

function prevResultOf({ name, netnsPath }: Container) {
  const [v4, v6] = addresses[name]!;
  const interfaces = [{ name: bridgeOf[name] }, { name: `v${name}` }, { name: "eth0", sandbox: netnsPath }];
  const ips = [{ interface: 2, address: `${v4}/24` }, { interface: 2, address: `${v6}/64` }];
  return { prevResult: { cniVersion: "1.1.0", interfaces, ips } };
}

const ways = ["c1 c2", "c1 c3", "c3 c1", "c1 out", "out c1", "out c3"];

/** The ways that are open in both families; one that is open in one alone is told apart. */
async function open(machine: Machine, containers: Record<string, Container>): Promise<string[]> {
  const reached = await Promise.all(ways.map(async (way) => {
    const [from, to] = way.split(" ") as [string, string];
    const answers = await Promise.all(addresses[to]!.map((address) => ping(machine, containers[from], address)));
    return answers[0] === answers[1] ? answers[0] : "one family";
  }));
  return ways.flatMap((way, index) => reached[index] === true ? [way] : reached[index] ? [`${way}: one family`] : []);
}

/** With a FORWARD policy of ACCEPT, and of DROP as another program's. */
const expected: Record<string, { accept: string[]; drop: string[] }> = {
  "iptables open": { accept: ways, drop: ["c1 c2", "c1 c3", "c3 c1", "c1 out"] },
  "iptables same-bridge": { accept: ["c1 c2", "c1 out", "out c1", "out c3"], drop: ["c1 c2", "c1 out"] },
  "iptables isolated": { accept: ["c1 out", "out c1", "out c3"], drop: ["c1 out"] },
  // A table of our own cannot let through what another table drops.
  "nftables open": { accept: ways, drop: [] },
  "nftables same-bridge": { accept: ["c1 c2", "c1 out", "out c1", "out c3"], drop: [] },
  "nftables isolated": { accept: ["c1 out", "out c1", "out c3"], drop: [] },
};

for (const backend of ["iptables", "nftables"]) {
  test(`${backend}: who reaches whom`, async () => {
    await using machine = await openMachine();
    const containers = await topology(machine);
    for (const ingressPolicy of ["open", "same-bridge", "isolated"]) {
      await machine.sh("nft flush ruleset");
      const net = network(machine, { type: "firewall", backend, ingressPolicy }, undefined, { own: prevResultOf });
      for (const name of ["c1", "c2", "c3"]) await net.add(containers[name]!);
      const { accept, drop } = expected[`${backend} ${ingressPolicy}`]!;
      expect({ ingressPolicy, open: await open(machine, containers) }).toEqual({ ingressPolicy, open: accept });
      await machine.sh("iptables -P FORWARD DROP; ip6tables -P FORWARD DROP");
      expect({ ingressPolicy, open: await open(machine, containers) }).toEqual({ ingressPolicy, open: drop });
      await machine.sh("iptables -P FORWARD ACCEPT; ip6tables -P FORWARD ACCEPT");
      for (const name of ["c1", "c2", "c3"]) await net.del(containers[name]!);
    }
  });
}

test("iptables: a connection the container opened goes both ways under another's DROP, and the admin's chain comes first", async () => {
  await using machine = await openMachine();
  const { c1, out } = await topology(machine);
  await machine.sh("iptables -P FORWARD DROP; ip6tables -P FORWARD DROP");
  const net = network(machine, { type: "firewall", iptablesAdminChainName: "SITE" }, undefined, {
    own: prevResultOf,
  });
  await using server = await serve(machine, out, "tcp");
  await using inside = await serve(machine, c1, "tcp");
  expect(await server.ask(c1, "192.0.2.2")).toBeUndefined();
  await net.add(c1!);
  expect(await server.ask(c1, "192.0.2.2")).toBe("10.20.0.2");
  expect(await server.ask(c1, "2001:db8::2")).toBe("fd20::2");
  expect(await inside.ask(out, "10.20.0.2")).toBeUndefined();
  await machine.sh("iptables -A SITE -d 192.0.2.2 -j DROP; ip6tables -A SITE -s 2001:db8::2 -j ACCEPT");
  expect(await server.ask(c1, "192.0.2.2")).toBeUndefined();
  expect(await inside.ask(out, "fd20::2")).toBe("2001:db8::2");
  await net.del(c1!);
  expect(await server.ask(c1, "2001:db8::2")).toBeUndefined();
});
