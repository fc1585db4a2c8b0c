/**
 * Conditions of mappings, in the reference plugin's form: words of an iptables or nft rule. They are parsed, not passed
 * on, so each backend writes them in its own way and nothing else gets into a rule.
 *
 *     iptables    [!] -s PREFIX  [!] -d PREFIX  [!] -i NAME  [!] -o NAME  -m mark [!] --mark VALUE[/MASK]
 *                 [!] -p PROTOCOL  [!] --dport PORT[:PORT]                    and their long names; -m PROTOCOL
 *     nft         ip saddr, ip daddr, ip6 saddr, ip6 daddr, iifname, oifname, iif, oif, meta mark [& MASK],
 *                 meta l4proto, ip protocol, tcp dport and the like           each [==|!=] VALUE; ports also as N-M
 *
 * Each may occur once. Protocol and port do not become matches in a rule: they select mappings.
 */
import { CniError, INVALID_CONFIG } from "../../../cni/error.ts";
import { type Protocol, protocolNumbers } from "../../../interop/iptables/rule.ts";
import { canonicalAddress, canonicalPrefix, isV6 } from "../../../net/address.ts";
import type { Conditions } from "../../../resources/packets/port-mappings/spec.ts";

/** The first word determines the syntax, like in the reference plugin. */
export function isIptablesSyntax(conditions: readonly string[]): boolean {
  return conditions[0]!.startsWith("-") || conditions[0]!.startsWith("!");
}

/** Throws a CniError of code 7 for unknown conditions. */
export function readConditions(key: "conditionsV4" | "conditionsV6", conditions: readonly string[]): Conditions {
  const words = conditions.flatMap((text) => text.split(/\s+/)).filter((word) => word !== "");
  const reader = new Reader(key, words);
  while (!reader.isDone()) {
    if (isIptablesSyntax(conditions)) readOption(reader);
    else readMatch(reader);
  }
  return reader.read;
}

class Reader {
  readonly read: Conditions = {};
  private at = 0;

  constructor(private readonly key: "conditionsV4" | "conditionsV6", private readonly words: readonly string[]) {}

  isDone(): boolean {
    return this.at >= this.words.length;
  }

  next(): string {
    return this.words[this.at++] ?? "";
  }

  skip(...words: string[]): boolean {
    const found = words.includes(this.words[this.at] ?? "");
    if (found) this.at++;
    return found;
  }

  refused(what: string): CniError {
    return new CniError(
      INVALID_CONFIG,
      `${JSON.stringify(this.key)}: ${what}`,
      `it is ${JSON.stringify(this.words.join(" "))}`,
    );
  }

  put<Name extends keyof Conditions>(name: Name, value: Conditions[Name]): void {
    if (this.read[name] !== undefined) throw this.refused(`there are two conditions on the ${names[name]}`);
    this.read[name] = value;
  }

  prefix(not: boolean): { prefix: string; not?: true } {
    const word = this.next(), v6 = this.key === "conditionsV6";
    const address = canonicalAddress(word),
      prefix = canonicalPrefix(word) ?? (address && `${address}/${v6 ? 128 : 32}`);
    if (prefix === undefined || isV6(prefix) !== v6) {
      throw this.refused(`${JSON.stringify(word)} is no address of IPv${v6 ? 6 : 4}`);
    }
    if (prefix.endsWith("/0")) throw this.refused(`${JSON.stringify(word)} is every address`);
    return { prefix, ...negation(not) };
  }

  link(not: boolean, wildcard: "+" | "*"): { name: string; not?: true } {
    const word = this.next().replace(/^"(.*)"$/, "$1");
    const isBeginning = word.endsWith(wildcard), name = isBeginning ? word.slice(0, -1) : word;
    if (!/^[\w.@:-]{1,15}$/.test(name)) throw this.refused(`${JSON.stringify(word)} is no name of an interface`);
    return { name: isBeginning ? `${name}+` : name, ...negation(not) };
  }

  number(word: string, most: number): number {
    const value = /^(0x[0-9a-f]+|\d+)$/i.test(word) ? Number(word) : NaN;
    if (!(value <= most)) throw this.refused(`${JSON.stringify(word)} is no number up to ${most}`);
    return value;
  }

  protocol(not: boolean): void {
    const value = this.next().toLowerCase();
    if (!Object.hasOwn(protocolNumbers, value)) {
      throw this.refused(`${JSON.stringify(value)} is no protocol with ports`);
    }
    this.put("protocol", { value: value as Protocol, ...negation(not) });
  }

  ports(not: boolean, between: string): void {
    const [first, last = first, ...more] = this.next().split(between);
    if (more.length > 0) throw this.refused("a range of ports has two ends");
    this.put("ports", { first: this.number(first!, 65535), last: this.number(last!, 65535), ...negation(not) });
  }
}

const MOST_MARK = 0xffffffff;
const names: Record<keyof Conditions, string> = {
  source: "source",
  destination: "destination",
  inLink: "incoming interface",
  outLink: "outgoing interface",
  mark: "mark",
  protocol: "protocol",
  ports: "port",
};

function negation(not: boolean): { not?: true } {
  return not ? { not: true } : {};
}

function readOption(reader: Reader): void {
  const not = reader.skip("!"), option = reader.next();
  switch (option) {
    case "-s":
    case "--source":
    case "--src":
      return reader.put("source", reader.prefix(not));
    case "-d":
    case "--destination":
    case "--dst":
      return reader.put("destination", reader.prefix(not));
    case "-i":
    case "--in-interface":
      return reader.put("inLink", reader.link(not, "+"));
    case "-o":
    case "--out-interface":
      return reader.put("outLink", reader.link(not, "+"));
    case "-p":
    case "--protocol":
      return reader.protocol(not);
    case "--dport":
    case "--destination-port":
      return reader.ports(not, ":");
    case "--mark": {
      const [value, mask = String(MOST_MARK)] = reader.next().split("/");
      const mark = { value: reader.number(value!, MOST_MARK), mask: reader.number(mask, MOST_MARK) };
      return reader.put("mark", { ...mark, ...negation(not) });
    }
    case "-m":
    case "--match":
      // The option that follows implies the match.
      if (!not && reader.skip("mark", "tcp", "udp", "sctp")) return;
  }
  throw reader.refused(`${JSON.stringify(not ? `! ${option}` : option)} is not a condition known here`);
}

function readMatch(reader: Reader): void {
  const word = reader.next();
  const compare = () => reader.skip("!=", "ne") || (reader.skip("==", "eq"), false);
  if (word === "ip" || word === "ip6") {
    if (reader.skip("saddr")) return reader.put("source", reader.prefix(compare()));
    if (reader.skip("daddr")) return reader.put("destination", reader.prefix(compare()));
    if (reader.skip("protocol", "nexthdr")) return reader.protocol(compare());
  }
  if (word === "meta" && reader.skip("l4proto")) return reader.protocol(compare());
  if ((word === "tcp" || word === "udp" || word === "sctp" || word === "th") && reader.skip("dport")) {
    if (word !== "th") reader.read.protocol ??= { value: word };
    if (word !== "th" && reader.read.protocol!.value !== word) throw reader.refused("there are two protocols");
    return reader.ports(compare(), "-");
  }
  const name = word === "meta" ? reader.next() : word;
  if (name === "iif" || name === "iifname") return reader.put("inLink", reader.link(compare(), "*"));
  if (name === "oif" || name === "oifname") return reader.put("outLink", reader.link(compare(), "*"));
  if (name === "mark") {
    const mask = reader.skip("&", "and") ? reader.number(reader.next(), MOST_MARK) : MOST_MARK;
    const not = compare();
    return reader.put("mark", { value: reader.number(reader.next(), MOST_MARK), mask, ...negation(not) });
  }
  throw reader.refused(`${JSON.stringify(word === name ? word : `${word} ${name}`)} is not a condition known here`);
}
