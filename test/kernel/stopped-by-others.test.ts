/** Rules of other programs that stop a container's packets: traffic fails, `inspect` names the rule; it goes, and both are well. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { commandsOn } from "../support/commands.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { untilTrue } from "../support/until-true.ts";
import { BOTH_FAMILIES, isAnswered, UPLINK } from "../support/way-out.ts";

let machine: Machine;
const directory = mkdtempSync(`${tmpdir()}/stopped-`);
const { patchbay, must } = commandsOn(() => machine, () => directory);

beforeAll(async () => {
  machine = await openMachine();
  const plugins = [{ type: "bridge", bridge: "shop0", isGateway: true, ipMasq: true, ipam: BOTH_FAMILIES }];
  writeFileSync(`${directory}/shop.conflist`, JSON.stringify({ cniVersion: "1.1.0", name: "shop", plugins }));
  await machine.container("web");
  await machine.container("outside");
  await machine.sh(UPLINK);
  await must("add", "shop", "web");
});
afterAll(async () => {
  await machine[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

interface Rules {
  how: string;
  says: string;
  /** What lets the packets pass again. */
  mend: string;
  families?: (4 | 6)[];
}

const FOREIGN =
  "nft add table inet other; nft 'add chain inet other through { type filter hook forward priority 5; policy ";

const stopping: Rules[] = [
  {
    how: "iptables -P FORWARD DROP",
    says: "the policy of ip filter FORWARD",
    mend: "iptables -I FORWARD -i shop0 -j ACCEPT; iptables -I FORWARD -o shop0 -j ACCEPT",
    families: [4],
  },
  {
    how: "iptables -P FORWARD DROP; iptables -A FORWARD -s 10.99.0.0/16 -i docker0 -j ACCEPT; " +
      "iptables -A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
    says: "the policy of ip filter FORWARD",
    mend: "iptables -I FORWARD -s 10.40.0.0/24 -j ACCEPT",
    families: [4],
  },
  {
    how: `${FOREIGN} drop; }'; nft add rule inet other through ct state established,related accept`,
    says: "the policy of inet other through",
    mend: "nft add rule inet other through iifname shop0 accept",
  },
  {
    how: `${FOREIGN} accept; }'; nft add rule inet other through iifname '"shop*"' oifname eth1 reject`,
    says: "a rule of inet other through (handle 2)",
    mend: "nft delete rule inet other through handle 2",
  },
  {
    how: "ip6tables -t raw -A PREROUTING -i shop0 -m comment --comment 'not by me' -j DROP",
    says: "a rule of ip6 raw PREROUTING",
    mend: "ip6tables -t raw -F PREROUTING",
    families: [6],
  },
  {
    how: "iptables-legacy -N JUDGE; iptables-legacy -A JUDGE -i docker0 -j RETURN; " +
      "iptables-legacy -A JUDGE -m conntrack --ctstate NEW -j REJECT; iptables-legacy -A FORWARD -i shop+ -j JUDGE",
    says: "rule 2 of ip filter JUDGE (iptables-legacy)",
    mend: "iptables-legacy -F JUDGE",
    families: [4],
  },
  {
    how:
      "ip6tables-legacy -P FORWARD DROP; ip6tables-legacy -A FORWARD -o eth1 -p icmpv6 -m icmp6 --icmpv6-type 135 -j ACCEPT",
    says: "the policy of ip6 filter FORWARD (iptables-legacy)",
    mend: "ip6tables-legacy -P FORWARD ACCEPT",
    families: [6],
  },
  {
    how: "ip neighbour replace 10.40.0.2 lladdr 02:00:00:00:00:77 dev shop0 nud permanent",
    says: "the host sends what is for 10.40.0.2 to 02:00:00:00:00:77, not to ",
    mend: "ip neighbour del 10.40.0.2 dev shop0",
    families: [4],
  },
  {
    how: "iptables -N JUDGE; iptables -A JUDGE -j DROP; iptables -A FORWARD -m conntrack --ctstate NEW -j JUDGE",
    says: "a rule of ip filter JUDGE",
    mend: "iptables -F JUDGE",
    families: [4],
  },
];

test.each(stopping)("$how: $says", async ({ how, says, mend, families = [4, 6] }) => {
  for (const family of [4, 6] as const) {
    expect(await untilTrue(() => isAnswered(machine, family), Boolean)).toBe(true);
  }
  expect(await patchbay(["inspect"])).toMatchObject({ code: 0 });
  await machine.sh(how);
  for (const family of families) expect(await isAnswered(machine, family)).toBe(false);
  const { code, stdout } = await patchbay(["inspect", "shop", "web"]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining(says) });
  if (!how.startsWith("ip neighbour")) {
    expect(stdout).toContain("drops new TCP and UDP connections that come in by shop0 and would leave by eth1");
  }
  // Nothing of ours differs, so `repair` is not advised.
  expect(stdout).not.toContain("patchbay repair");
  await machine.sh(mend);
  for (const family of families) expect(await untilTrue(() => isAnswered(machine, family), Boolean)).toBe(true);
  expect(await patchbay(["inspect"])).toMatchObject({ code: 0 });
  await machine.sh("nft delete table inet other 2>/dev/null || true");
  for (const tables of ["iptables", "ip6tables"]) {
    await machine.sh(`${tables} -P FORWARD ACCEPT; ${tables} -F FORWARD; ${tables} -t raw -F`);
  }
});

/** In nft's language, in a table `other` with a chain that drops what nothing accepts. */
const accepting: [what: string, before: string, rules: string][] = [
  [
    "two of many marks",
    `map m { type ipv4_addr : mark; elements = { ${
      Array.from({ length: 80 }, (_, index) => `203.0.113.${index} : ${index + 1}`).join(", ")
    } }; }
    chain early { type filter hook prerouting priority -150; meta mark set ip daddr map @m; }`,
    "meta mark 0x10 accept",
  ],
  [
    "addresses that a rule learns",
    "set ok { type ipv4_addr; flags dynamic; size 9; }",
    "udp dport 22 add @ok { ip saddr }; ip saddr @ok accept",
  ],
  ["addresses that run out of time", "set ok { type ipv4_addr; flags timeout; }", "ip saddr @ok accept"],
  [
    "a mark that a chain of the same time sets",
    "chain later { type filter hook forward priority 5; meta mark set 0x10; }",
    "meta mark 0x10 accept",
  ],
  [
    "a mark of the connection, before conntrack",
    "chain early { type filter hook prerouting priority -300; ct mark set 0x10; }",
    "ct mark != 0x10 accept",
  ],
  ["a verdict that lets the rule go on", "", "udp dport vmap { 9 : continue } accept"],
  [
    "a limit for each address",
    `limit few { rate 5/second; }
    map m { type ipv4_addr : limit; elements = { 10.40.0.2 : "few" }; }`,
    "limit name ip saddr map @m accept",
  ],
  ["the mark of another family", "", "meta mark 0x10 accept"],
  [
    "a key longer than the registers that follow",
    `set s { typeof iifname . oifname . ip saddr . ip daddr . udp sport . udp dport . meta cpu . meta iifgroup; elements = { "a" . "b" . 10.1.1.1 . 10.1.1.2 . 1 . 2 . 0 . 0 }; }`,
    "iifname . oifname . ip saddr . ip daddr . udp sport . udp dport . meta cpu . meta iifgroup @s accept; udp dport 9 accept",
  ],
];

test.each(accepting)("what may pass is not told: %s", async (_, before, rules) => {
  const lines = rules.split("; ").join("\n");
  const dropping =
    `chain through { type filter hook forward priority 5; policy drop; meta nfproto ipv6 accept\n${lines}\n}`;
  await machine.sh("nft -f -", { stdin: `table inet other {\n${before}\n${dropping}\n}` });
  const { stdout } = await patchbay(["inspect", "shop", "web"]);
  await machine.sh("nft delete table inet other");
  expect(stdout).not.toMatch(/drops new|unknown IPv/);
});

test.each([
  "iptables -A FORWARD -p udp -j DROP",
  "iptables -A FORWARD -d 203.0.113.0/24 -j DROP",
  "iptables -A FORWARD -i docker0 -j DROP",
  "iptables -A FORWARD -m limit --limit 1/hour -j ACCEPT; iptables -A FORWARD -j DROP",
  `${FOREIGN} drop; }'; nft add rule inet other through ip saddr 10.0.0.0/8 accept; ` +
  "nft add rule inet other through ip6 saddr fd00::/8 accept",
  "iptables -t raw -A PREROUTING -m conntrack --ctstate NEW -j DROP",
  "iptables-legacy -P FORWARD DROP; iptables-legacy -A FORWARD -m recent --name known --rcheck -j ACCEPT",
  "iptables -t nat -A PREROUTING -i shop0 -p tcp -j REDIRECT --to-ports 15001; iptables -P FORWARD DROP",
  "iptables -P FORWARD DROP; iptables -A FORWARD -o eth2 -j ACCEPT; ip rule add iif shop0 lookup 100",
  "iptables -P FORWARD DROP; iptables -A FORWARD -o eth2 -j ACCEPT; ip route append default via 198.18.0.2 dev eth1 metric 9",
  // The container itself has no way out.
  "iptables -P FORWARD DROP; ip -n web route del default",
])("what may pass is not told: %s", async (how) => {
  await machine.sh(how);
  const { stdout } = await patchbay(["inspect", "shop", "web"]);
  await machine.sh(`
    iptables -F FORWARD; iptables -P FORWARD ACCEPT; iptables -t raw -F; iptables -t nat -F PREROUTING
    iptables-legacy -F FORWARD; iptables-legacy -P FORWARD ACCEPT
    nft delete table inet other 2>/dev/null || true
    ip rule del iif shop0 2>/dev/null || true; ip route del default metric 9 2>/dev/null || true
    ip -n web route replace default via 10.40.0.1
  `);
  expect(stdout).not.toMatch(/drops new|unknown IPv/);
});

test("a ruleset with more ways than are followed is not judged, and takes neither long nor much", async () => {
  const layers = 7, jumps = Array.from({ length: 10 }, (_, index) => `tcp dport ${index} jump`);
  const chains = Array.from({ length: layers }, (_, layer) => {
    const rules = layer === layers - 1 ? ["tcp dport 80 accept"] : jumps.map((jump) => `${jump} c${layer + 1}`);
    return `chain c${layer} {\n${rules.join("\n")}\n}`;
  }).reverse();
  const base =
    "chain through { type filter hook forward priority 5; policy drop; meta nfproto ipv4 jump c0\naccept\n}";
  await machine.sh("nft -f -", { stdin: `table inet other {\n${chains.join("\n")}\n${base}\n}` });
  const { code, stdout } = await patchbay(["inspect", "shop", "web"]);
  await machine.sh("nft delete table inet other");
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.not.stringMatching(/drops|unknown IPv/) });
});

test("a container with two links on one bridge answers by either: neither entry of the host is wrong", async () => {
  await must("add", "shop", "web", "-i", "eth1");
  await machine.sh(
    "ip neighbour flush dev shop0; ping -nqc1 -W1 10.40.0.2 >/dev/null; ping -nqc1 -W1 10.40.0.3 >/dev/null || true",
  );
  expect((await patchbay(["inspect", "shop", "web"])).stdout).not.toContain("the host sends");
  await must("del", "shop", "web", "-i", "eth1");
});
