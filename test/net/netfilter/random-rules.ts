/** Random rulesets in nft's language, and random packets: of each, what rules can ask is known, and the rest is chance. */
import { random, randomBelow } from "../../support/random.ts";

export const LINK = "tun0", OWN = { 4: "10.9.0.1", 6: "fd09::1" } as const;
const ADDRESSES = {
  4: [OWN[4], "10.9.0.2", "10.9.1.7", "10.40.0.2", "10.40.255.1", "192.0.2.9", "172.16.3.4"],
  6: [OWN[6], "fd09::2", "fd09:1::7", "fd40::2", "fd40:ffff::1", "2001:db8::9"],
} as const;
const PREFIXES = {
  4: ["10.9.0.0/24", "10.0.0.0/8", "10.40.0.0/16", "10.40.0.0/17", "192.0.2.8/29", "0.0.0.0/1", "172.16.0.0/13"],
  6: ["fd09::/64", "fd00::/8", "fd40::/16", "2001:db8::/33", "::/1"],
} as const;
const PORTS = [22, 53, 80, 443, 1023, 1024, 8080, 30000, 65535];

export interface RandomPacket {
  family: 4 | 6;
  source: string;
  destination: string;
  protocol: "tcp" | "udp" | "icmp";
  sourcePort: number;
  destinationPort: number;
}

export class RuleWriter {
  /** `withUnknown`: rules also ask for what an evaluation is not told. */
  constructor(private readonly withUnknown: boolean) {}

  packet(): RandomPacket {
    const family = this.one([4, 6] as const);
    return {
      family,
      source: this.one(ADDRESSES[family].slice(1)),
      destination: this.one(ADDRESSES[family]),
      protocol: this.one(["tcp", "tcp", "udp", "udp", "icmp"]),
      sourcePort: this.one(PORTS),
      destinationPort: this.one(PORTS),
    };
  }

  /** Base chains, of which one may drop what no rule of its takes, and some that they jump to. */
  ruleset(): string {
    const chains = ["a", "b", "c", "d"], lines = [`table inet drawn {`, ...this.sets()];
    for (const [index, chain] of chains.entries()) {
      const inner = chains.slice(index + 1);
      lines.push(`chain ${chain} {`, ...this.rules(2 + randomBelow(4), inner), "}");
    }
    // Before conntrack, twice at the same time, and behind.
    for (const [index, priority] of [-300, -150, -150, 10].entries()) {
      const policy = randomBelow(8) === 0 ? "drop" : "accept";
      lines.push(`chain base${index} { type filter hook prerouting priority ${priority}; policy ${policy};`);
      lines.push(...this.rules(3 + randomBelow(8), chains), "}");
    }
    return [...lines, "}"].join("\n");
  }

  /** For iptables-restore, with matches and targets of xtables. */
  xtables(family: 4 | 6, table = "mangle", policy = "ACCEPT"): string {
    const chains = ["A", "B", "C"],
      lines = [`*${table}`, `:PREROUTING ${policy}`, ...chains.map((chain) => `:${chain} -`)];
    for (const [index, chain] of ["PREROUTING", ...chains].entries()) {
      for (let count = 3 + randomBelow(8); count > 0; count--) {
        lines.push(`-A ${chain} ${this.match(family)} ${this.target(chains.slice(index))}`);
      }
    }
    return [...lines, "COMMIT", ""].join("\n");
  }

  /** For the older tables: before conntrack, behind it, and where the destination is translated. */
  legacy(family: 4 | 6): string {
    const policy = () => randomBelow(8) === 0 ? "DROP" : "ACCEPT", nat: string[] = [], host = OWN[family];
    for (let count = 1 + randomBelow(5); count > 0; count--) {
      const to = family === 4 ? `10.9.0.2:${this.one(PORTS)}` : `[fd09::2]:${this.one(PORTS)}`;
      const translation = this.one([
        `DNAT --to-destination ${to}`,
        `REDIRECT --to-ports ${this.one(PORTS)}`,
        "RETURN",
      ]);
      nat.push(
        `-A PREROUTING -p ${this.one(["tcp", "udp"])} -d ${this.one([...PREFIXES[family], host])} -j ${translation}`,
      );
    }
    return [
      this.xtables(family, "raw", policy()),
      this.xtables(family, "mangle", policy()),
      ["*nat", ":PREROUTING ACCEPT", ...nat, "COMMIT", ""].join("\n"),
    ].join("");
  }

  private match(family: 4 | 6): string {
    const protocol = this.one(["tcp", "udp"]), not = this.one(["", "", "! "]), end = this.one(["s", "d"]);
    const port = this.one(["--sport", "--dport"]), ports = this.one(["--sports", "--dports", "--ports"]);
    const list = this.some(PORTS).slice(0, 6).join(), first = this.one(ADDRESSES[family]);
    const choices = [
      () => `${not}-${end} ${this.one(PREFIXES[family])}`,
      () => `-m iprange ${not}--${this.one(["src", "dst"])}-range ${first}-${first}`,
      () => `-p ${protocol} -m ${protocol} ${not}${port} ${this.one(PORTS)}`,
      () => `-p ${protocol} -m ${protocol} ${not}${port} ${this.one(["22:443", ":1023", "1024:"])}`,
      () => `-p ${protocol} -m multiport ${not}${ports} ${list}`,
      () => `-p ${protocol} -m multiport ${ports} 22:80,${this.one(PORTS)},8080:65535`,
      () => `-p tcp -m tcp ${this.one(["--syn", "! --syn", "--tcp-flags SYN,ACK ACK"])}`,
      () => `${not}-i ${this.one([LINK, "tu+", "eth0"])}`,
      () => `-m conntrack ${not}--ctstate ${this.one(["NEW", "ESTABLISHED,RELATED", "INVALID", "NEW,DNAT"])}`,
      () => `-m addrtype ${not}--${this.one(["src", "dst"])}-type ${this.one(["LOCAL", "UNICAST", "LOCAL,UNICAST"])}`,
      () => `${not}-p ${this.one(["tcp", "udp", family === 4 ? "icmp" : "icmpv6", "132"])}`,
      () => family === 4 ? this.one(["-f", "! -f"]) : "-p all",
      () => `-m connmark ${not}--mark ${randomBelow(4)}/0x${this.one(["1", "3", "ffffffff"])}`,
      () => `-m mark ${not}--mark ${randomBelow(4)}/0x${this.one(["1", "3", "ffffffff"])}`,
      () => `-m comment --comment "some words"`,
      () => family === 4 ? `-p icmp -m icmp ${not}--icmp-type 8` : `-p icmpv6 -m icmp6 ${not}--icmpv6-type 128`,
    ];
    const unknown = [
      () => `-m statistic --mode random --probability 0.5`,
      () => `-m limit --limit 5/second`,
      () => `-m length --length 28:${44 + randomBelow(20)}`,
      () => family === 4 ? "-m ttl --ttl-lt 100" : "-m hl --hl-lt 100",
      () => "-m pkttype --pkt-type unicast",
      () => "-p tcp -m tcp --tcp-option 5",
    ];
    const asked = this.one(this.withUnknown && randomBelow(6) === 0 ? unknown : choices)();
    return `${asked} ${randomBelow(3) === 0 ? "-m comment --comment x" : ""}`;
  }

  private target(chains: readonly string[]): string {
    const below = chains.slice(1),
      masks = `--nfmask 0x${this.one(["1", "ffffffff"])} --ctmask 0x${this.one(["1", "ff"])}`;
    const into = below.length === 0 ? "-j RETURN" : `${this.one(["-j", "-j", "-g"])} ${this.one(below)}`;
    return this.one([
      "-j ACCEPT",
      "-j DROP",
      "-j RETURN",
      "",
      `-j MARK --set-xmark ${randomBelow(8)}/0x${this.one(["3", "ffffffff"])}`,
      `-j MARK --or-mark ${randomBelow(8)}`,
      `-j CONNMARK --set-xmark ${randomBelow(8)}/0x${this.one(["3", "ffffffff"])}`,
      `-j CONNMARK ${this.one(["--save-mark", "--restore-mark"])} ${masks}`,
      into,
      into,
    ]);
  }

  private sets(): string[] {
    return [
      `set addresses4 { type ipv4_addr; flags interval; elements = { ${
        this.some(PREFIXES[4].slice(2, 5)).join(", ")
      }, 1.1.1.1-1.1.1.9 }; auto-merge; }`,
      `set addresses6 { type ipv6_addr; elements = { ${this.some(ADDRESSES[6]).join(", ")} }; }`,
      `set ports { type inet_service; flags interval; elements = { ${
        this.one(["22-80", "53, 80, 443", "1000-2000, 8080-65535"])
      } }; }`,
      `set pairs { type inet_proto . inet_service; elements = { tcp . ${this.one(PORTS)}, udp . ${
        this.one(PORTS)
      } }; }`,
      `set ranges { type ipv4_addr . inet_service; flags interval; elements = { 10.9.0.0-10.9.0.200 . 22-443, ${
        this.one(PREFIXES[4].slice(4))
      } . ${this.one(PORTS)} }; }`,
      `set learned { type ipv4_addr; flags ${this.one(["dynamic", "timeout"])}; size 100; }`,
      `map marks { type inet_service : mark; elements = { ${
        this.some(PORTS).map((port) => `${port} : ${port & 7}`).join(", ")
      } }; }`,
    ];
  }

  private rules(count: number, chains: readonly string[]): string[] {
    return Array.from({ length: count }, () => {
      // nft refuses a rule for two families or protocols.
      const family = this.one([4, 6] as const), protocol = this.one(["tcp", "udp"]);
      const conditions = Array.from({ length: 1 + randomBelow(3) }, () => this.condition(family, protocol));
      return [...conditions, this.statement(chains, family, protocol)].join(" ");
    });
  }

  private condition(family: 4 | 6, protocol: string): string {
    const ip = family === 4 ? "ip" : "ip6", not = this.one(["", "", "!= "]);
    const end = this.one(["saddr", "daddr"]), port = this.one(["sport", "dport"]);
    const choices = [
      () => `${ip} ${end} ${not}${this.one(ADDRESSES[family])}`,
      () => `${ip} ${end} ${not}${this.one(PREFIXES[family])}`,
      () => `${ip} ${end} ${not}{ ${this.some(ADDRESSES[family]).join(", ")} }`,
      () => `${ip} ${end} ${not}@addresses${family}`,
      () => `${protocol} ${port} ${not}${this.one(PORTS)}`,
      () => `${protocol} ${port} ${this.one(["<", "<=", ">", ">=", ""])} ${this.one(PORTS)}`,
      () => `${protocol} ${port} ${not}${this.one(["22-443", "1000-8080", "0-1023"])}`,
      () => `${protocol} ${port} ${not}@ports`,
      () => `${protocol} ${port} ${not}{ ${this.some(PORTS).join(", ")} }`,
      () => `meta l4proto ${not}${this.one(["tcp", "udp", "icmp", "{ tcp, udp }"])}`,
      () => `meta l4proto . th dport ${not}@pairs`,
      () => family === 4 ? `ip ${end} . ${protocol} dport ${not}@ranges` : `ip6 nexthdr ${protocol}`,
      () => `meta nfproto ${this.one(["ipv4", "ipv6"])}`,
      () => `iifname ${not}${this.one(['"tun0"', '"tu*"', '"eth0"', '{ "tun0", "eth0" }'])}`,
      () => `iif ${not}${LINK}`,
      () => `oifname ${not}"${LINK}"`,
      () => `meta mark ${not}${randomBelow(4)}`,
      () => `meta mark & 0x${(1 + randomBelow(7)).toString(16)} ${this.one(["==", "!="])} ${randomBelow(4)}`,
      () => `meta mark ${not}${this.one(["1-2", "2-5", "0-3"])}`,
      () => `ct mark ${not}${randomBelow(3)}`,
      () => `ct state ${not}${this.one(["new", "established,related", "invalid", "new,untracked"])}`,
      () => `ct direction original`,
      () => `fib ${end} type ${this.one(["local", "!= local", "{ local, unicast }"])}`,
      () => `fib ${end}${this.one([" . iif", " . mark . iif", ""])} oif ${this.one(["exists", "missing"])}`,
      () => `fib ${end}${this.one([" . iif", ""])} oifname "${LINK}"`,
      () => `tcp flags ${this.one(["syn / syn,ack", "& (fin|rst) == 0", "& (syn|ack) == ack"])}`,
      () => `${family === 4 ? "icmp" : "icmpv6"} type ${not}${this.one(["echo-request", "echo-reply"])}`,
      () => `ip protocol ${this.one(["tcp", "udp", "icmp"])}`,
      () => `ip frag-off & 0x1fff ${this.one(["!=", "=="])} 0`,
    ];
    const unknown = [
      () => `${family === 4 ? "ip ttl" : "ip6 hoplimit"} ${this.one(["< 64", "> 128", "!= 1"])}`,
      () => `meta length ${this.one(["< 40", "> 47", "28-50"])}`,
      () => `ip dscp ${not}${randomBelow(64)}`,
      () => `tcp sequence ${this.one(["<", ">="])} ${2 ** 31}`,
      () => family === 4 ? `ip ${end} ${not}@learned` : `meta cpu 0`,
      () => `meta skuid ${not}0`,
      () => `limit rate ${1 + randomBelow(20)}/second`,
      () => `numgen random mod 2 ${randomBelow(2)}`,
    ];
    return this.one(this.withUnknown && randomBelow(6) === 0 ? unknown : choices)();
  }

  private statement(chains: readonly string[], family: 4 | 6, protocol: string): string {
    const verdict = this.one(["accept", "drop", "return", "continue"]), ip = family === 4 ? "ip" : "ip6";
    const target = chains.length === 0 ? "accept" : `${this.one(["jump", "jump", "goto"])} ${this.one(chains)}`;
    const choices = [
      () => `counter ${verdict}`,
      () => target,
      () => target,
      () => `meta mark set ${randomBelow(8)}`,
      () => `meta mark set ${randomBelow(4)}`,
      () => `meta mark set meta mark | 0x${(1 + randomBelow(3)).toString(16)}`,
      () => `meta mark set ${protocol} dport map @marks`,
      () => `ct mark set ${randomBelow(3)}`,
      () => this.withUnknown && family === 4 ? "add @learned { ip saddr }" : "counter",
      () => "notrack",
      () =>
        `${protocol} dport vmap { ${this.one(PORTS)} : continue, 3001-4000 : drop } meta mark set ${randomBelow(8)}`,
      () => `${protocol} dport vmap { ${this.one(PORTS)} : drop, 2000-3000 : accept, 443 : ${target} }`,
      () => `meta l4proto vmap { tcp : ${target}, udp : ${verdict} }`,
      () =>
        `${ip} saddr . ${ip} daddr vmap { ${this.one(ADDRESSES[family])} . ${
          this.one(ADDRESSES[family])
        } : ${verdict}, * : ${target} }`,
    ];
    return this.one(choices)();
  }

  private one<T>(list: readonly T[]): T {
    return list[randomBelow(list.length)]!;
  }

  /** At least one of them, none twice. */
  private some<T>(list: readonly T[]): T[] {
    const chosen = list.filter(() => random() < 0.4);
    return chosen.length > 0 ? chosen : [list[0]!];
  }
}
