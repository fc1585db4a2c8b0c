/** Rules as nft lists them; and names and comments that would disturb a terminal. */
import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { openMachine } from "../../support/machine.ts";
import type { Judgement } from "./judge.ts";

const JUDGE = resolve(import.meta.dir, "judge.ts"), HOSTILE = resolve(import.meta.dir, "hostile-rules.ts");

/** As nft 1.0.6 lists them, too. */
const same = [
  "ip saddr 10.1.0.0/16 tcp dport 53 drop",
  "ip saddr 10.1.0.0/20 ip daddr 1.2.3.4 udp sport 53 accept",
  'iifname "eth0" ct state established,related accept',
  'iifname "veth*" oifname != "eth0" drop',
  "ip saddr @addresses drop",
  "ip saddr != @addresses drop",
  "oifname vmap @ways",
  "meta mark & 0x00002000 == 0x00002000 accept",
  "meta mark 0x00000001 drop",
  "ct mark 0x00000001 drop",
  "ip6 saddr fe80::/10 icmpv6 type echo-request accept",
  "ip6 daddr 2001:db8::1 drop",
  "fib daddr type local jump other",
  "fib saddr type != unicast drop",
  "fib saddr . iif oif missing drop",
  "fib daddr oif exists accept",
  "tcp dport 1000-2000 drop",
  "udp dport != 1000-2000 drop",
  "ip saddr 10.0.0.1-10.0.0.9 drop",
  'tcp dport 80 ct state new accept comment "web"',
  "ct state invalid drop",
  "ct status dnat accept",
  "ct direction original drop",
  "meta nfproto ipv4 drop",
  "meta l4proto tcp drop",
  "ip protocol icmp drop",
  'iifname "x" ether saddr 02:00:00:00:00:01 drop',
  "ip daddr != 224.0.0.0/4 drop",
  "ip saddr & 255.0.255.0 == 10.0.1.0 drop",
  "tcp dport != 22 goto other",
  "tcp flags syn drop",
  "meta skuid 0 drop",
  "ip saddr . tcp dport @pairs return",
  "notrack",
  "notrack accept",
  "meta mark set 0x00000001",
  "ct mark set 0x0000002a",
];

/** What nft says in more words, or knows more of. */
const shorter: Record<string, string> = {
  "counter packets 0 bytes 0 drop": "drop",
  "reject with icmpx admin-prohibited": "reject",
  "meta l4proto tcp reject with tcp reset": "meta l4proto tcp reject",
  "icmp type echo-request limit rate 3/second accept": "meta nfproto ipv4 icmp type echo-request limit … accept",
  'log prefix "x: " drop': "log drop",
  "tcp dport { 80, 443 } accept": "tcp dport { … } accept",
  "meta l4proto { tcp, udp } th dport 53 accept": "meta l4proto { … } th dport 53 accept",
  "ip ttl 3 drop": "@nh,64,8 0x03 drop",
  "tcp sport 1 tcp dport 2 drop": "@th,0,32 0x00010002 drop",
  "numgen random mod 2 vmap { 0 : drop, 1 : accept }": "numgen … vmap { … }",
  'ip saddr 10.1.0.0/16 ip daddr 203.0.113.128/25 iifname "interface000001" oifname "interface000002" tcp dport 8080 jump other':
    'ip saddr 10.1.0.0/16 ip daddr 203.0.113.128/25 iifname "inte… jump other',
};

test("lines are those of nft where everything is understood", async () => {
  await using machine = await openMachine();
  const rules = [...new Set([...same, ...Object.keys(shorter)])];
  const table = `table inet t {
    set addresses { type ipv4_addr; }
    set pairs { type ipv4_addr . inet_service; }
    map ways { type ifname : verdict; }
    chain other { }
    chain c { type filter hook prerouting priority raw; policy accept;
      ${rules.join("\n")}
    }
  }`;
  await machine.sh("nft -f -", { stdin: table });
  const listed = (await machine.sh("nft list chain inet t c")).split("\n").slice(3, -3).map((line) => line.trim());
  expect(listed).toEqual(rules);
  const { said } = JSON.parse(await machine.sh(`${process.execPath} ${JUDGE} '[]'`)) as Judgement;
  expect(said.flatMap(({ line }) => line === "" ? [] : [line])).toEqual(rules.map((rule) => shorter[rule] ?? rule));
});

test("where rules lead, by nft and by iptables", async () => {
  await using machine = await openMachine();
  await machine.sh("nft -f -", {
    stdin: `table ip t {
      map ways { type inet_service : ipv4_addr . inet_service; }
      chain c { type nat hook prerouting priority -90; policy accept;
        tcp dport 99 dnat to 10.40.0.2:80
        dnat to 10.40.0.2
        dnat to tcp dport map @ways
        dnat to 10.40.0.2-10.40.0.9
        udp dport 99 redirect to :8080
        redirect
      }
    }
    table ip6 t { chain c { type nat hook postrouting priority 90; policy accept;
        meta l4proto tcp snat to [fd40::2]:80
        snat to fd40::2
        masquerade
      }
    }`,
  });
  await machine.sh(`iptables -t nat -A PREROUTING -p tcp -j DNAT --to-destination 10.40.0.2:80
    iptables -t nat -A PREROUTING -p tcp -j DNAT --to-destination 10.40.0.2-10.40.0.9
    iptables -t nat -A PREROUTING -p tcp -j REDIRECT --to-ports 81
    iptables -t nat -A POSTROUTING -j SNAT --to-source 10.40.0.7
    ip6tables -t nat -A PREROUTING -p udp -j DNAT --to-destination [fd40::2]:53`);
  const { said } = JSON.parse(await machine.sh(`${process.execPath} ${JUDGE} '[]'`)) as Judgement;
  expect(said.flatMap(({ line }) => line === "" ? [] : [line])).toEqual([
    "tcp dport 99 dnat to 10.40.0.2:80",
    "dnat to 10.40.0.2",
    "dnat to tcp dport map @ways",
    "dnat to 10.40.0.2-…",
    "udp dport 99 redirect to :8080",
    "redirect",
    "meta l4proto tcp snat to [fd40::2]:80",
    "snat to fd40::2",
    "masquerade",
    "meta l4proto tcp xt DNAT to 10.40.0.2:80",
    "meta l4proto tcp xt DNAT to …",
    "meta l4proto tcp xt REDIRECT to :81",
    "xt SNAT to 10.40.0.7",
    "meta l4proto udp xt DNAT to [fd40::2]:53",
  ]);
});

test("matches and targets of iptables", async () => {
  await using machine = await openMachine();
  const rules: Record<string, string> = {
    "-s 10.0.0.0/8 ! -d 10.1.2.3/32 -i eth0 -o br+ -p tcp -m tcp --dport 80 -j DROP":
      'iifname "eth0" oifname "br*" ip saddr 10.0.0.0/8 ip daddr != 10.1.… drop',
    "-p udp -m multiport --dports 53,67:68 -j REJECT": "meta l4proto udp udp dport { 53, 67-68 } reject",
    "-p tcp -m multiport ! --ports 53 -j REJECT": "meta l4proto tcp tcp port != { 53 } reject",
    "-m conntrack ! --ctstate RELATED,ESTABLISHED -j ACCEPT": "ct state != established,related accept",
    "-m conntrack --ctstate DNAT -j ACCEPT": "xt conntrack … accept",
    "-m addrtype ! --dst-type LOCAL,BROADCAST -j RETURN": "fib daddr type != local,broadcast return",
    "-p icmp -m icmp --icmp-type 8 -j ACCEPT": "icmp type echo-request accept",
    '-m comment --comment "why not" -j DROP': 'drop comment "why not"',
    "-m statistic --mode random --probability 0.5 -g X": "xt statistic … goto X",
    "-m limit --limit 3/min -j LOG": "limit … log",
    "-j MARK --set-xmark 0x40000/0xff0000": "xt MARK set 0x40000/0xff0000",
  };
  const text = ["*filter", ":X - [0:0]", ...Object.keys(rules).map((rule) => `-A FORWARD ${rule}`), "COMMIT", ""];
  await machine.sh("iptables-nft-restore", { stdin: text.join("\n") });
  const { said } = JSON.parse(await machine.sh(`${process.execPath} ${JUDGE} '[]'`)) as Judgement;
  expect(said.flatMap(({ line }) => line === "" ? [] : [line])).toEqual(Object.values(rules));
});

/** What a terminal obeys, or shows as something else. */
const DISTURBS = /[\p{C}\p{Zl}\p{Zp}]/u;

describe("names and comments of others", () => {
  test("reach no terminal as they are", async () => {
    await using machine = await openMachine();
    const { said, judged: [judged] } = JSON.parse(
      await machine.sh(
        `${process.execPath} ${HOSTILE} && ${process.execPath} ${JUDGE} '${
          JSON.stringify([{ from: "10.40.0.2", to: "198.51.100.9", port: 443, input: "a", output: "b" }])
        }'`,
      ),
    ) as Judgement;
    expect(said.length).toBe(11);
    const unlike = said.filter(({ chain }) => /^inet x [^y]/.test(chain)).map(({ place, line }) =>
      `${place}: ${line}`
    );
    expect(unlike).toEqual([
      'a rule of inet x "\\udcff\\udc9b" (handle 4): drop',
      'a rule of inet x "\\udcfe\\udc9b" (handle 6): accept',
    ]);
    for (const { place, line, maker } of [...said, ...judged!.by]) {
      for (const text of [place, line, ...Object.values(maker)]) expect(text).not.toMatch(DISTURBS);
      expect([...line].length).toBeLessThanOrEqual(72);
      expect(place.length).toBeLessThan(700);
    }
    expect(said.map(({ line }) => line)).toContain('drop comment "\\u001b[2J\\nroot"');
    expect(said.map(({ maker }) => maker)).toContainEqual({
      name: "CNI plugins",
      network: '"\\u001b[31m"',
      containerId: '"\\u0007\\u009b"',
      remark: "patchbay, too, writes such rules",
    });
    // A table "x y" with a chain "z" is not a table "x" with a chain "y z".
    expect(judged).toMatchObject({ fate: "is dropped" });
    expect(judged!.by.map(({ place }) => place)).toEqual(['a rule of inet "x y" z (handle 2)']);
  });
});
