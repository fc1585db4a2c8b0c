/**
 * Who reaches a mapped port, from where, and under which address: packets between namespaces, for each backend. What is
 * said here of the host's firewall is said without the firewall plugin.
 */
import { expect, test } from "bun:test";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { type Network, network } from "../support/network.ts";
import { serve } from "../support/traffic.ts";

const backends = ["nftables", "iptables"] as const;

/** The host's addresses: towards outside, and those of its bridges. */
const HOST4 = "192.0.2.1", HOST6 = "fd99::1";
const PORT = 8080;

interface Town {
  machine: Machine;
  /** Behind a link of the host, and behind another one: neighbours for whom the host forwards. */
  outside: Container;
  beyond: Container;
  /** On bridge br0; the first has the mapped ports. */
  server: Container;
  beside: Container;
  /** On bridge br1. */
  elsewhere: Container;
  results: Map<Container, unknown>;
}

async function openTown(): Promise<Town> {
  const machine = await openMachine();
  const [outside, beyond] = [await machine.container("outside"), await machine.container("beyond")];
  await machine.sh(`
    ip link add wire0 type veth peer name eth0 netns outside
    ip link add wire1 type veth peer name eth0 netns beyond
    ip address add ${HOST4}/24 dev wire0; ip address add ${HOST6}/64 dev wire0 nodad
    ip address add 198.51.100.1/24 dev wire1; ip address add fd98::1/64 dev wire1 nodad
    ip link set wire0 up; ip link set wire1 up
    for each in "outside 192.0.2 fd99" "beyond 198.51.100 fd98"; do
      set -- $each
      ip -n $1 link set lo up; ip -n $1 link set eth0 up
      ip -n $1 address add $2.2/24 dev eth0; ip -n $1 address add $3::2/64 dev eth0 nodad
      ip -n $1 route add default via $2.1; ip -n $1 -6 route add default via $3::1
    done`);
  const results = new Map<Container, unknown>();
  const attached = async (name: string, bridge: string, four: string, six: string) => {
    const container = await machine.container(name);
    const ipam = { type: "host-local", ranges: [[{ subnet: `${four}.0/24` }], [{ subnet: `${six}::/64` }]] };
    const conf = {
      type: "bridge",
      name: bridge,
      bridge,
      isDefaultGateway: true,
      ipMasq: true,
      hairpinMode: true,
      ipam,
    };
    results.set(container, await network(machine, conf).add(container));
    return container;
  };
  const server = await attached("server", "br0", "10.20.0", "fd20");
  const beside = await attached("beside", "br0", "10.20.0", "fd20");
  const elsewhere = await attached("elsewhere", "br1", "10.21.0", "fd21");
  // Until then a bridge answers nobody who asks for the way in version 6.
  await machine.sh("while ip -6 address show tentative | grep -q .; do sleep 0.05; done");
  return { machine, outside, beyond, server, beside, elsewhere, results };
}

function portmap({ machine, results }: Town, conf: Record<string, unknown>): Network {
  return network(machine, { type: "portmap", name: "br0", ...conf }, undefined, {
    own: (container) => ({ prevResult: results.get(container) }),
  });
}

function mapping(containerPort: number, protocol: string, more: Record<string, unknown> = {}) {
  return { runtimeConfig: { portMappings: [{ hostPort: PORT, containerPort, protocol, ...more }] } };
}

for (const backend of backends) {
  for (const protocol of ["tcp", "udp"] as const) {
    test(`${backend}, ${protocol}: from everywhere, in both families, and not when the host forwards nothing`, async () => {
      const town = await openTown();
      await using machine = town.machine;
      const { outside, server, beside, elsewhere } = town;
      await using inside = await serve(machine, server, protocol);
      await portmap(town, { backend }).add(server, { conf: mapping(inside.port, protocol) });
      const ask = (from: Container | undefined, address: string) => inside.ask(from, address, PORT);
      const all = async () => ({
        outside: [await ask(outside, HOST4), await ask(outside, HOST6)],
        host: [await ask(undefined, HOST4), await ask(undefined, HOST6)],
        localhost: [await ask(undefined, "127.0.0.1")],
        beside: [await ask(beside, HOST4), await ask(beside, HOST6)],
        elsewhere: [await ask(elsewhere, HOST4), await ask(elsewhere, HOST6)],
        itself: [await ask(server, HOST4), await ask(server, HOST6)],
      });
      const reached = {
        outside: ["192.0.2.2", "fd99::2"],
        host: ["192.0.2.1", "fd99::1"],
        localhost: ["10.20.0.1"],
        beside: ["10.20.0.1", "fd20::1"],
        elsewhere: ["10.20.0.1", "fd20::1"],
        itself: ["10.20.0.1", "fd20::1"],
      };
      expect(await all()).toEqual(reached);
      await machine.sh("iptables -P FORWARD DROP; ip6tables -P FORWARD DROP");
      const nobody = [undefined, undefined];
      expect(await all()).toEqual(
        { ...reached, outside: nobody, beside: nobody, elsewhere: nobody, itself: nobody } as never,
      );
    });
  }
}
