/** A snapshot shows each kind of change, and hides what is chosen at random. */
import { expect, test } from "bun:test";
import { fingerprint } from "./fingerprint.ts";
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

test.each(changes)("a snapshot shows, and so does a fingerprint: $change", async ({ change, shows }) => {
  await using machine = await prepared();
  const before = await snapshot(machine), fingerprintBefore = fingerprint(machine);
  expect(fingerprint(machine)).toBe(fingerprintBefore!);
  await machine.sh(change);
  const shown = difference(before.lines, (await snapshot(machine)).lines);
  expect(shown.filter((line) => shows.test(line))).toHaveLength(1);
  expect(fingerprint(machine)).not.toBe(fingerprintBefore!);
});

test("a fingerprint shows every step of these, and is the same again when they are undone", async () => {
  await using machine = await prepared();
  await machine.sh("nft add table inet one; nft add chain inet one c");
  const seen = [fingerprint(machine)];
  const steps: [change: string, undo: string][] = [
    ["nft add set inet one s '{ type ipv4_addr; }'", "nft delete set inet one s"],
    ["nft add element inet one s '{ 10.0.0.1 }'", "nft delete element inet one s '{ 10.0.0.1 }'"],
    ["nft add element inet one s '{ 10.0.0.2 }'", "nft delete element inet one s '{ 10.0.0.2 }'"],
    ["nft add counter inet one n", "nft delete counter inet one n"],
    ["nft add rule inet one c counter accept", "nft flush chain inet one c"],
    ["sysctl -qw net.ipv6.conf.vethcafe0001.accept_ra=0", "sysctl -qw net.ipv6.conf.vethcafe0001.accept_ra=1"],
    [
      "ip netns exec c1 sysctl -qw net.ipv4.conf.all.arp_filter=1",
      "ip netns exec c1 sysctl -qw net.ipv4.conf.all.arp_filter=0",
    ],
    ["ip -n c1 rule add from 10.0.0.2 table 77", "ip -n c1 rule del from 10.0.0.2 table 77"],
    ["mkdir -p /run/some; touch /run/some/file", "rm -r /run/some"],
    ["ip -n c1 link add type veth", "ip -n c1 link del veth0"],
  ];
  for (const [change] of steps) {
    await machine.sh(change);
    const now = fingerprint(machine);
    expect(now).toBeDefined();
    expect(seen).not.toContain(now);
    seen.push(now);
  }
  for (const [, undo] of steps.toReversed()) await machine.sh(undo);
  expect(fingerprint(machine)).toBe(seen[0]!);
});

test("a fingerprint does not show packets and their counters", async () => {
  await using machine = await prepared();
  await machine.sh(`
    ip address add 10.0.0.1/24 dev br0
    nft add table ip one
    nft "add chain ip one out { type filter hook output priority 0; }"; nft add rule ip one out counter
    iptables -A OUTPUT -j ACCEPT; ping -qc 1 10.0.0.2`);
  const before = fingerprint(machine);
  await machine.sh("ping -qc 3 -i 0.2 10.0.0.2");
  expect(fingerprint(machine)).toBe(before!);
});

test.each([
  ["rate limits", "tc qdisc add dev br0 root handle 1: htb"],
  ["a container whose namespace is gone", "ip netns del c1"],
  ["legacy iptables", "iptables-legacy -A INPUT -j ACCEPT"],
])("a fingerprint does not tell of %s", async (_what, change) => {
  await using machine = await prepared();
  expect(fingerprint(machine)).toBeDefined();
  await machine.sh(change);
  expect(fingerprint(machine)).toBeUndefined();
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

test.each(["02:00:00:22:00:00", "02:00:11:00:33:44", "0a:00:00:22:33:00"])(
  "the link-local address of %s is named",
  async (mac) => {
    await using machine = await openMachine();
    await machine.sh(`ip link add br0 address ${mac} type bridge; ip link set br0 up; ip link add d0 type veth peer d1
    ip link set d0 master br0 up; ip link set d1 up`);
    await stable(machine);
    const { lines } = await snapshot(machine);
    expect(lines.filter((line) => line.startsWith("host address br0 "))).toEqual([
      expect.stringMatching(/^host address br0 linklocal\(host\/br0\)\/64 /),
    ]);
  },
);
