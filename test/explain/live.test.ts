/** `explain --live` and `--watch`: the kernel's trace of real packets, beside what the walk says; nothing of ours is left. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ExplanationDocument } from "../../src/explain/explanation.schema.ts";
import { traceIn } from "../../src/ffi/netlink/nftables/trace.ts";
import type { NetlinkSocket } from "../../src/ffi/netlink/socket.ts";
import { openTown, type Town } from "./town.ts";

type LiveDocument = NonNullable<ExplanationDocument["live"]>;

let town: Town;
beforeAll(async () => {
  town = await openTown();
});
afterAll(() => town[Symbol.asyncDispose]());

const OUT = ["web", "198.18.0.2", "tcp/7000"] as const;
const other = (hook: string, priority: string, rules: string, policy = "accept") =>
  `nft 'table ip other {\nchain c {\ntype filter hook ${hook} priority ${priority}; policy ${policy};\n${rules}\n}\n}'`;

interface Case {
  what: string;
  script?: string;
  ask: readonly string[];
  agrees: LiveDocument["agrees"];
  code: number;
  text?: RegExp;
  /** One of what was seen. */
  seen?: { where?: string; direction?: string; hook?: string; verdict?: string; rule?: object };
  undo?: string;
}

const XFRM = "ip xfrm policy add src 10.40.0.2 dst 198.18.0.2 dir fwd action block";

const cases: Case[] = [
  {
    what: "a connection to outside",
    ask: OUT,
    agrees: "yes",
    code: 0,
    text: /^it was answered$/,
    seen: { where: "this host", direction: "answer", hook: "prerouting", verdict: "accept" },
  },
  { what: "a datagram", ask: ["web", "198.18.0.2", "udp/7000"], agrees: "yes", code: 0, text: /answered/ },
  { what: "an echo", ask: ["web", "198.18.0.2", "icmp"], agrees: "yes", code: 0, text: /answered/ },
  {
    what: "an echo of IPv6",
    ask: ["web", "jug", "icmp", "--ipv6"],
    agrees: "yes",
    code: 0,
    seen: { where: "jug", direction: "going", hook: "prerouting" },
  },
  {
    what: "refused outside, by RST",
    ask: ["web", "198.18.0.2", "tcp/7001"],
    agrees: "yes",
    code: 0,
    text: /told: connection refused/,
  },
  {
    what: "refused outside, by an error of ICMP",
    ask: ["web", "198.18.0.2", "udp/7001"],
    agrees: "yes",
    code: 0,
    text: /told: connection refused; it was seen last in this host, postrouting/,
  },
  {
    what: "nobody outside says anything",
    ask: ["web", "192.0.2.9", "icmp"],
    agrees: "yes",
    code: 0,
    text: /last in this host, postrouting/,
  },
  {
    what: "a route that leads away from the container",
    script: "ip link set farm0 down",
    ask: ["web", "far", "tcp/80"],
    agrees: "yes",
    code: 1,
    undo: "ip link set farm0 up",
  },
  {
    what: "the frame is for another one, and dropped where it gets to",
    script: "ip -n web neighbour replace 10.40.0.3 lladdr 02:00:00:00:00:77 dev eth0 nud permanent\n" +
      "nft 'table bridge other {\nchain c {\ntype filter hook forward priority 0;\ndrop\n}\n}'",
    ask: ["web", "jug", "tcp/80"],
    agrees: "open",
    code: 1,
    undo: "ip -n web neighbour del 10.40.0.3 dev eth0",
  },
  { what: "nobody has the address", ask: ["web", "10.40.0.77", "tcp/80"], agrees: "open", code: 2 },
  { what: "from the host", ask: ["host", "web", "tcp/80"], agrees: "yes", code: 0, text: /answered/ },
  {
    what: "the policy of FORWARD",
    script: "iptables -P FORWARD DROP",
    ask: OUT,
    agrees: "yes",
    code: 1,
    seen: { hook: "forward", verdict: "drop", rule: { family: "ip", table: "filter", chain: "FORWARD" } },
  },
  {
    what: "a rule in raw",
    script: other("prerouting", "raw", "ip saddr 10.40.0.2 drop"),
    ask: OUT,
    agrees: "yes",
    code: 1,
    text: /dropped in this host, prerouting, by a rule of ip other c \(handle \d+\)/,
  },
  {
    what: "INPUT drops names",
    script: "iptables -A INPUT -i shop0 -p udp --dport 53 -j DROP",
    ask: ["web", "10.40.0.1", "udp/53"],
    agrees: "yes",
    code: 1,
    seen: { hook: "input", verdict: "drop" },
  },
  {
    what: "the older tables, which are in no trace",
    script: "iptables-legacy -P FORWARD DROP",
    ask: OUT,
    agrees: "yes",
    code: 1,
    text:
      /last in this host, forward, and ended there between the priorities -99 and 1: ip filter FORWARD \(iptables-l/,
    undo: "iptables-legacy -P FORWARD ACCEPT",
  },
  {
    what: "the reverse-path filter, which drops in silence",
    script: `ip link add vpn0 type veth peer name vpn1; ip link set vpn0 up; ip link set vpn1 up
      ip route add 10.40.0.2 dev vpn0; sysctl -qw net.ipv4.conf.shop0.rp_filter=1`,
    ask: OUT,
    agrees: "yes",
    code: 1,
    text: /last in this host, prerouting, which it passed: behind it are routes, rp_filter/,
    undo: "ip link delete vpn0",
  },
  {
    what: "nobody listens",
    ask: ["web", "10.40.0.1", "tcp/5353"],
    agrees: "yes",
    code: 1,
    text: /told: connection refused/,
    seen: { where: "this host", direction: "answer", hook: "output" },
  },
  {
    what: "nobody listens to datagrams in a container",
    ask: ["web", "jug", "udp/81"],
    agrees: "yes",
    code: 1,
    text: /told: connection refused/,
  },
  {
    what: "the answer is dropped",
    script: other("forward", "5", "iifname eth1 oifname shop0 drop"),
    ask: OUT,
    agrees: "yes",
    code: 1,
    text: /^the answer was dropped in this host, forward/,
  },
  {
    what: "a translated destination",
    script: "nft 'table ip other {\nchain c {\ntype nat hook prerouting priority -150;\n" +
      "ip daddr 198.18.0.9 tcp dport 9000 dnat to 10.41.0.2:80\n}\n}'",
    ask: ["web", "198.18.0.9", "tcp/9000"],
    agrees: "yes",
    code: 0,
    text: /answered/,
  },
  {
    what: "a limit, which the walk cannot tell",
    script: other("forward", "5", "limit rate 100/second accept", "drop"),
    ask: OUT,
    agrees: "decides",
    code: 0,
  },
  {
    what: "a mark of the container's, which the walk cannot tell: dropped",
    script: other("forward", "5", "limit rate over 1/hour burst 1 packets drop") + "\nping -nc1 -W1 10.40.0.2; " +
      "ip netns exec web ping -nc3 -i.2 -W1 198.18.0.2 || true",
    ask: OUT,
    agrees: "decides",
    code: 1,
    seen: { hook: "forward", verdict: "drop" },
  },
  {
    what: "what neither walk nor trace sees is no agreement",
    script: XFRM,
    ask: OUT,
    agrees: "contradiction",
    code: 2,
    text: /last in this host, prerouting, which it passed/,
    undo: XFRM.replace("add", "delete").replace(" action block", ""),
  },
  {
    what: "root of the container hides it from the trace; the host shows it",
    script: `ip netns exec web ${other("output", "-1999", "meta nftrace set 0")}`,
    ask: OUT,
    agrees: "yes",
    code: 0,
    seen: { where: "this host", direction: "going", hook: "prerouting" },
    undo: "ip netns exec web nft flush ruleset",
  },
  { what: "nobody outside can be asked to send", ask: ["outside", "host:8080", "tcp"], agrees: "open", code: 3 },
  { what: "a connection without a port", ask: ["web", "jug", "tcp"], agrees: "open", code: 3, text: /port/ },
];

async function live(ask: readonly string[]): Promise<{ code: number; said: LiveDocument }> {
  const { code, said } = await town.explain(ask);
  return { code, said: said.live! };
}

const TABLES = "nft list tables; for each in web jug far outside; do ip netns exec $each nft list tables; done";

async function expectNothingLeft(): Promise<void> {
  expect(await town.machine.sh(TABLES)).not.toContain("patchbay-live");
}

test.each(cases)(
  "$what: $agrees",
  async ({ script = "true", ask, agrees, code, text = /./, seen = {}, undo = "true" }) => {
    await town.machine.sh(script);
    try {
      const { said, code: status } = await live([...ask, "--live"]);
      expect(said).toMatchObject({ agrees, text: expect.stringMatching(text) });
      expect(status).toBe(code);
      if (code !== 3) expect(said.seen).toContainEqual(expect.objectContaining(seen));
      if (agrees === "contradiction") expect(said.kernel).toBe((await town.machine.sh("uname -r")).trim());
      await expectNothingLeft();
    } finally {
      await town.machine.sh(undo);
      await town.reset();
    }
  },
);

test("root of a container who has all of its packets traced keeps nobody from an answer", async () => {
  await town.machine.sh(`ip netns exec web ${other("output", "-2500", "meta nftrace set 1")}`);
  const flood = town.machine.start(["ip", "netns", "exec", "web", "ping", "-qf", "198.18.0.2"]);
  try {
    const { said } = await live([...OUT, "--live"]);
    expect(said.agrees).toBeOneOf(["yes", "open"]);
    await expectNothingLeft();
  } finally {
    flood.kill();
    await flood.exited;
    await town.machine.sh("ip netns exec web nft flush ruleset");
    await town.reset();
  }
});

describe("--watch", () => {
  test("sends nothing, and says that nothing came", async () => {
    const { said } = await live([...OUT, "--watch=1"]);
    expect(said).toMatchObject({ sent: "no packet of it came in 1 s", seen: [], agrees: "open" });
    await expectNothingLeft();
  });

  test("sees a packet that somebody else sends, from outside to a published port", async () => {
    const [{ said, code }] = await Promise.all([live(["outside", "host:8080", "tcp", "--watch=60"]), untilSeen()]);
    expect({ ...said, code }).toMatchObject({ code: 0 });
    expect(said).toMatchObject({ sent: expect.stringMatching(/^a packet came from port \d+$/), agrees: "yes" });
    expect(said.seen).toContainEqual(
      expect.objectContaining({ where: "web", direction: "going", hook: "input", verdict: "accept" }),
    );
  });

  test("sees anybody's packet, too, where the walk cannot tell", async () => {
    await town.machine.sh("iptables -I FORWARD -p tcp --dport 80 -m limit --limit 99/second -j ACCEPT");
    const [{ said }] = await Promise.all([live(["outside", "host:8080", "tcp", "--watch=60"]), untilSeen()]);
    expect(said).toMatchObject({ sent: expect.stringMatching(/^a packet came from port \d+$/) });
    await town.machine.sh("iptables -D FORWARD 1");
  });

  /** Somebody outside asks once it is waited for. */
  async function untilSeen(): Promise<void> {
    while (!(await town.machine.sh("nft list tables")).includes("patchbay-live")) await Bun.sleep(20);
    expect(await town.isAnswered(["outside", "198.18.0.1:8080", "tcp"])).toBe(true);
  }
});

test("a kernel that has no tables with owners is refused, with the reason", () => {
  const EINVAL = 22, refused = [{ index: 1, errno: EINVAL, text: undefined, offset: 0 }];
  const socket = { transact: () => refused } as unknown as NetlinkSocket;
  const order = { protocol: 6, packets: [[]], signs: [] };
  expect(() => traceIn(socket, { family: 2, name: "ours" }, order)).toThrow("(Linux 5.12), so nothing is traced");
});
