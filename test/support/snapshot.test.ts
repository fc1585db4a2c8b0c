/** A snapshot shows each kind of change, and hides what is chosen at random. */
import { expect, test } from "bun:test";
import { type Machine, openMachine } from "./machine.ts";
import { difference, settled, snapshot } from "./snapshot.ts";

const prepare = `
ip link add br0 type bridge
ip link add vethcafe0001 type veth peer name eth0 netns c1
ip link set vethcafe0001 master br0 up
ip link set br0 up
ip -n c1 link set eth0 up
ip -n c1 address add 10.0.0.2/24 dev eth0
ip -n c1 -6 address add fd00::2/64 dev eth0 nodad
`;

async function prepared(): Promise<Machine> {
  const machine = await openMachine();
  await machine.container("c1");
  await machine.sh(prepare);
  await stable(machine);
  return machine;
}

/** Waits until two looks agree: links take a moment to come up. */
async function stable(machine: Machine) {
  let last = await snapshot(machine);
  await settled(async () => {
    await Bun.sleep(50);
    const now = await snapshot(machine);
    const changed = difference(last.lines, now.lines);
    last = now;
    return changed;
  });
}

const changes: { change: string; shows: RegExp }[] = [
  { change: "ip link add br1 type bridge", shows: /^\+ host link br1 ifname="br1"/ },
  { change: "ip -n c1 address add 10.0.0.3/24 dev eth0", shows: /^\+ c1 address eth0 10\.0\.0\.3\/24 / },
  { change: "ip -n c1 address del fd00::2/64 dev eth0", shows: /^- c1 address eth0 fd00::2\/64 / },
  { change: "ip -n c1 route add 10.9.0.0/16 via 10.0.0.1", shows: /^\+ c1 route .*10\.9\.0\.0\/16/ },
  { change: "ip route add blackhole 10.9.0.0/16 table 77", shows: /^\+ host route .*"table":"77"/ },
  { change: "ip -6 rule add from fd00::/64 table 77", shows: /^\+ host rule .*fd00::/ },
  { change: "ip neigh add 10.0.0.9 lladdr 02:00:00:00:00:01 dev br0", shows: /^\+ host neighbour .*10\.0\.0\.9/ },
  { change: "nft add table inet one", shows: /^\+ host nft table inet {2}one/ },
  { change: "iptables -t nat -A POSTROUTING -s 10.0.0.2 -j MASQUERADE", shows: /^\+ host iptables nat .*MASQUERADE/ },
  { change: "ip6tables -A INPUT -s fd00::2 -j DROP", shows: /^\+ host ip6tables filter .*DROP/ },
  { change: "sysctl -qw net.ipv4.ip_forward=1", shows: /^\+ host sysctl ipv4\/ip_forward=1/ },
  { change: "bridge link set dev vethcafe0001 hairpin on", shows: /^\+ host link veth>c1\/eth0 .*hairpin=true/ },
  { change: "ip link set br0 promisc on", shows: /^\+ host link br0 promiscuity=1/ },
  { change: "ip link set br0 mtu 1400", shows: /^\+ host link br0 mtu=1400/ },
  { change: "ip link set br0 address 02:00:00:00:00:07", shows: /^\+ host link br0 addr_assign_type=3/ },
];

test.each(changes)("a snapshot shows: $change", async ({ change, shows }) => {
  await using machine = await prepared();
  const before = await snapshot(machine);
  await machine.sh(change);
  const shown = difference(before.lines, (await snapshot(machine)).lines);
  expect(shown.filter((line) => shows.test(line))).toHaveLength(1);
});

test("machines that differ only in random names and MACs are equal", async () => {
  await using one = await prepared();
  await using other = await openMachine();
  await other.container("c1");
  await other.sh(prepare.replaceAll("vethcafe0001", "vethbeef0002"));
  await stable(other);
  expect(difference((await snapshot(one)).lines, (await snapshot(other)).lines)).toEqual([]);
});

test("a MAC that was asked for is compared as it is", async () => {
  await using machine = await prepared();
  await machine.sh("ip -n c1 link set eth0 address 02:00:00:00:00:07");
  const { lines } = await snapshot(machine, { macs: ["02:00:00:00:00:07"] });
  expect(lines).toContain(`c1 link eth0 address="02:00:00:00:00:07"`);
});
