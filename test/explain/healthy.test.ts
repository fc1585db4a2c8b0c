/** What works is not called broken, and of two faults the first is named: mended, the other one. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ownShare } from "../support/share.ts";
import { untilTrue } from "../support/until-true.ts";
import { expectPasses } from "./judged.ts";
import { nft, openTown, type Town } from "./town.ts";

let town: Town;
beforeAll(async () => {
  town = await openTown();
});
afterAll(() => town[Symbol.asyncDispose]());

const OUT = ["web", "198.18.0.2", "tcp/7000"], PORT = ["outside", "host:8080", "tcp"];

const healthy: { what: string; how?: string; ask: string[]; verdict: "arrives" | "leaves" }[] = [
  { what: "the way out", ask: OUT, verdict: "leaves" },
  { what: "an echo", ask: ["web", "198.18.0.2"], verdict: "leaves" },
  { what: "UDP", ask: ["web", "198.18.0.2", "udp/7000"], verdict: "leaves" },
  { what: "a published port", ask: PORT, verdict: "arrives" },
  { what: "container to container", ask: ["web", "jug", "tcp/80"], verdict: "arrives" },
  { what: "from network to network", ask: ["web", "far", "tcp/80"], verdict: "arrives" },
  { what: "names of the host", ask: ["web", "10.40.0.1", "udp/53"], verdict: "arrives" },
  { what: "a container of its host", ask: ["host", "web", "tcp/80"], verdict: "arrives" },
  { what: "a container's address from outside", ask: ["outside", "far", "tcp/80"], verdict: "arrives" },
  { what: "the published port from its host", ask: ["host", "198.18.0.1", "tcp/8080"], verdict: "arrives" },
  { what: "the published port at 127.0.0.1", ask: ["host", "127.0.0.1", "tcp/8080"], verdict: "arrives" },
  {
    what: "a port that is published at 127.0.0.1 alone",
    ask: ["host", "127.0.0.1", "tcp/8090"],
    verdict: "arrives",
  },
  {
    what: "a policy with rules that accept",
    how: "iptables -P FORWARD DROP; iptables -A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT; " +
      "iptables -A FORWARD -i shop0 ! -o shop0 -j ACCEPT",
    ask: OUT,
    verdict: "leaves",
  },
  {
    what: "a rule for another port",
    how: nft("table inet other { chain c { type filter hook forward priority 5; tcp dport 25 drop; } }"),
    ask: OUT,
    verdict: "leaves",
  },
  {
    what: "a rule for another subnet, in a set of intervals",
    how: nft(
      "table inet other { set s { type ipv4_addr; flags interval; elements = { 10.41.0.0/16, 10.42.0.0/15 } }; " +
        "chain c { type filter hook forward priority 5; ip saddr @s drop; } }",
    ),
    ask: OUT,
    verdict: "leaves",
  },
  { what: "another container's published port", ask: ["jug", "198.18.0.1", "tcp/8080"], verdict: "arrives" },
  {
    what: "the same where rules of the host do not judge frames of bridges",
    how: "sysctl -qw net.bridge.bridge-nf-call-iptables=0",
    ask: ["jug", "198.18.0.1", "tcp/8080"],
    verdict: "arrives",
  },
  {
    what: "the container's own published port, where they do not: the host routes it back by the same port",
    how: "sysctl -qw net.bridge.bridge-nf-call-iptables=0",
    ask: ["web", "198.18.0.1", "tcp/8080"],
    verdict: "arrives",
  },
  {
    what: "a network that is not masqueraded, as a rule of others wants it",
    how: "ip -n outside route replace 10.40.0.0/24 via 198.18.0.1; " +
      "iptables -t nat -I POSTROUTING -s 10.40.0.0/24 -d 198.18.0.0/24 -j ACCEPT",
    ask: OUT,
    verdict: "leaves",
  },
  {
    what: "a port redirected to the host itself",
    how: nft(
      "table ip other { chain c { type nat hook prerouting priority -150; iifname shop0 tcp dport 5353 redirect to :53; } }",
    ),
    ask: ["web", "198.18.0.9", "tcp/5353"],
    verdict: "arrives",
  },
  {
    what: "a loose reverse path",
    how: "ip link add vpn0 type veth peer name vpn1; ip link set vpn0 up; ip link set vpn1 up; " +
      "sysctl -qw net.ipv4.conf.shop0.rp_filter=2",
    ask: OUT,
    verdict: "leaves",
  },
  {
    what: "firewalld's reverse-path check of IPv6",
    how: nft(
      "table inet firewalld { chain raw_PREROUTING { type filter hook prerouting priority -290; icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept; meta nfproto ipv6 fib saddr . mark . iif oif missing drop; } }",
    ),
    ask: ["web", "fd99::2", "tcp/7000"],
    verdict: "leaves",
  },
  {
    what: "IPv6 between two links alone, where the kernel knows that",
    // Where forwarding is switched off, so is this one.
    how: "cd /proc/sys/net/ipv6/conf; ! test -e shop0/force_forwarding || { echo 0 >all/forwarding; " +
      "echo 1 | tee shop0/force_forwarding eth1/force_forwarding; }",
    ask: ["web", "fd99::2", "tcp/7000"],
    verdict: "leaves",
  },
  {
    what: "a place for filters of tc that has none",
    how: "tc qdisc replace dev eth1 clsact",
    ask: OUT,
    verdict: "leaves",
  },
  {
    what: "a limit that is far away, for another protocol",
    how: nft(
      "table inet other { chain c { type filter hook forward priority 5; meta l4proto icmp limit rate over 9/second drop; } }",
    ),
    ask: OUT,
    verdict: "leaves",
  },
];

test.each(ownShare(healthy))("$what: $verdict", async ({ how = "true", ask, verdict }) => {
  await town.machine.sh(how);
  try {
    await expectPasses(town, ask, verdict);
  } finally {
    await town.machine.sh(
      "ip link delete vpn0 2>/dev/null || true; ip -n outside route delete 10.40.0.0/24 2>/dev/null || true",
    );
    await town.reset();
  }
});

const DROP_5 =
  "nft add table inet other; nft add chain inet other c '{ type filter hook forward priority 5; policy drop; }'";
const twice: {
  first: [string, code: string, mend: string];
  second: [string, code: string, mend: string];
  ask: string[];
}[] = [
  {
    first: ["ip -n web route delete default", "no-route", "ip -n web route add default via 10.40.0.1"],
    second: ["sysctl -qw net.ipv4.ip_forward=0", "forwarding-off", "sysctl -qw net.ipv4.ip_forward=1"],
    ask: OUT,
  },
  {
    first: ["sysctl -qw net.ipv4.ip_forward=0", "forwarding-off", "sysctl -qw net.ipv4.ip_forward=1"],
    second: [DROP_5, "forward-drop", "nft delete table inet other"],
    ask: OUT,
  },
  {
    first: [
      "iptables -t raw -A PREROUTING -i shop0 -j DROP",
      "prerouting-drop",
      "iptables -t raw -F PREROUTING",
    ],
    second: [
      "ip link set shop0 type bridge; ip route add prohibit 198.18.0.2",
      "route-refused",
      "ip route delete prohibit 198.18.0.2",
    ],
    ask: OUT,
  },
  {
    first: ["ip link set shop0 down", "link-down", "ip link set shop0 up"],
    second: ["iptables -P FORWARD DROP", "forward-drop", "iptables -P FORWARD ACCEPT"],
    ask: OUT,
  },
  {
    first: [
      "ip -n web neighbour replace 10.40.0.1 lladdr 02:00:00:00:00:77 dev eth0 nud permanent",
      "wrong-neighbour",
      "ip -n web neighbour delete 10.40.0.1 dev eth0",
    ],
    second: ["iptables -A FORWARD -s 10.40.0.2 -j REJECT", "forward-drop", "iptables -F FORWARD"],
    ask: OUT,
  },
  {
    first: [DROP_5, "forward-drop", "nft delete table inet other"],
    second: [
      "iptables -t mangle -A POSTROUTING -o eth1 -j DROP",
      "postrouting-drop",
      "iptables -t mangle -F POSTROUTING",
    ],
    ask: OUT,
  },
  {
    first: ["iptables -A FORWARD -i shop0 -j DROP", "forward-drop", "iptables -F FORWARD"],
    second: [
      nft(
        "table inet other { chain c { type filter hook forward priority 5; iifname eth1 ct state established drop; } }",
      ),
      "forward-drop",
      "nft delete table inet other",
    ],
    ask: OUT,
  },
  {
    first: ["iptables -A INPUT -p udp --dport 53 -j DROP", "input-drop", "iptables -F INPUT"],
    second: ["iptables -A OUTPUT -p udp --sport 53 -j DROP", "output-drop", "iptables -F OUTPUT"],
    ask: ["web", "10.40.0.1", "udp/53"],
  },
  {
    first: ["iptables -A FORWARD -d 10.40.0.2 -j DROP", "forward-drop", "iptables -F FORWARD"],
    second: [
      `ip netns exec web ${
        nft("table ip own { chain in { type filter hook input priority 0; tcp dport 80 drop; } }")
      }`,
      "input-drop",
      "ip netns exec web nft flush ruleset",
    ],
    ask: PORT,
  },
  {
    first: [
      "ip -n web link set eth0 down",
      "link-down",
      "ip -n web link set eth0 up; ip -n web route add default via 10.40.0.1",
    ],
    second: ["nft flush ruleset", "no-masquerade", "true"],
    ask: OUT,
  },
];

test.each(ownShare(twice))("first $first.1, then $second.1", async ({ first, second, ask }) => {
  for (const [how] of [second, first]) await town.machine.sh(how);
  expect(await town.isAnswered(ask)).toBe(false);
  expect((await town.explain(ask)).said).toMatchObject({ verdict: "stops", cause: { code: first[1] } });
  await town.machine.sh(first[2]);
  expect(await town.isAnswered(ask)).toBe(false);
  expect((await town.explain(ask)).said).toMatchObject({ verdict: "stops", cause: { code: second[1] } });
  await town.machine.sh(second[2]);
  await town.reset();
  expect(await untilTrue(() => town.isAnswered(ask), Boolean)).toBe(true);
});

test.each([
  [
    "between the ends of a pair",
    "ip -n jug link set eth0 mtu 1300",
    ["web", "jug", "tcp/80"],
    "eth0",
    "nobody is told",
  ],
  ["behind a router", "ip link set eth1 mtu 1300", OUT, "eth1", "the sender is told"],
])("what carries less than came is told, %s: small packets pass", async (_, script, ask, what, text) => {
  const { machine } = town,
    sized = (bytes: number) =>
      machine.run([
        "nsenter",
        "--net=/run/netns/web",
        "ping",
        "-nc1",
        "-W1",
        "-Mdo",
        `-s${bytes}`,
        TARGETS[ask[1]!]!,
      ]);
  await machine.sh(script);
  expect([(await sized(1000)).code, (await sized(1400)).code]).toEqual([0, 1]);
  const { said } = await town.explain(ask);
  expect(said.verdict).toMatch(/arrives|leaves/);
  expect(said.steps).toContainEqual(
    expect.objectContaining({ state: "note", what, text: expect.stringContaining(text) }),
  );
  await machine.sh(script.replace("1300", "1500"));
  expect((await town.explain(ask)).said.steps.filter(({ state }) => state === "note")).toEqual([]);
});

const TARGETS: Record<string, string> = { jug: "10.40.0.3", "198.18.0.2": "198.18.0.2" };
