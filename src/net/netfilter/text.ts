/** Rules as nft(8) lists them, for people to see: what is not understood is an ellipsis. Not for nft to read. */
import { cutTo, foreignName, quotedText } from "./foreign-name.ts";
import type { Comparison, Operation, Register, Rule, RuleChain, RulesFamily, Verdict } from "./ruleset.ts";
import {
  endText,
  type Field,
  fieldAt,
  fieldOf,
  matchText,
  protocolName,
  shownAddress,
  shownHex,
  shownPort,
  targetText,
} from "./text-fields.ts";
import type { Place } from "./traversal.ts";

export function placeText({ chain, rule }: Place): string {
  const name = chainText(chain);
  if (rule === undefined) return `the policy of ${name}`;
  return chain.isLegacy ? `rule ${rule.handle} of ${name}` : `a rule of ${name} (handle ${rule.handle})`;
}

export function chainText({ family, table, name, isLegacy }: RuleChain): string {
  return `${[family, table, name].map(foreignName).join(" ")}${isLegacy ? " (iptables-legacy)" : ""}`;
}

/** One line. What becomes of the packet stays when the line is too long, a comment does not. */
export function ruleLine(rule: Rule, family: RulesFamily, characters = 72): string {
  const words = new RuleWords(family);
  for (const operation of rule.operations) words.add(operation);
  const conditions = words.conditions.map(({ text }) => text).join(" "), end = cutTo(words.end, characters);
  const line = `${conditions} ${end}`.trim();
  const commented = rule.comment === undefined ? line : `${line} comment ${quotedText(rule.comment)}`.trim();
  if ([...commented].length <= characters) return commented;
  if ([...line].length <= characters) return line;
  const room = characters - [...end].length - 1;
  return end === "" ? cutTo(line, characters) : room < 1 ? end : `${cutTo(conditions, room)} ${end}`;
}

interface Loaded extends Field {
  mask?: Uint8Array;
  /** What the rule itself put there. */
  value?: Uint8Array;
}

/** A comparison with one of these goes without saying where a header of that layer is named. */
const SAYS_LAYER: Record<string, string> = {
  "meta l4proto": "transport",
  "meta nfproto": "network",
  "meta protocol": "network",
  iiftype: "link",
};
const UNKNOWN: Field = { name: "…", length: 0, shown: shownHex };

class RuleWords {
  conditions: { text: string; layer?: string }[] = [];
  end = "";
  private readonly registers = new Map<Register, Loaded>();
  private family: 4 | 6 | undefined;
  private protocol: string | undefined;

  constructor(family: RulesFamily) {
    this.family = family === "ip" ? 4 : family === "ip6" ? 6 : undefined;
  }

  add(operation: Operation): void {
    switch (operation.does) {
      case "payload":
        this.forget(operation.base);
        return this.load(operation.into, fieldAt(operation, this.family, this.protocol));
      case "meta":
      case "ct":
      case "fib":
        return this.load(operation.into, fieldOf(operation));
      case "swap":
        return this.load(operation.into, this.at(operation.from));
      case "mask": {
        const before = this.at(operation.from),
          isPlain = before.mask === undefined && operation.xor.every((byte) => byte === 0);
        return this.load(operation.into, isPlain ? { ...before, mask: operation.mask } : UNKNOWN);
      }
      case "put":
        return this.load(operation.into, { ...UNKNOWN, value: operation.value });
      case "guess":
        if (operation.into !== undefined) {
          return this.load(operation.into, { ...UNKNOWN, name: `${operation.name} …` });
        }
        return this.say(`${operation.name} …`);
      case "compare":
        return this.compare(operation);
      case "range": {
        const { name, shown } = this.at(operation.register), { first, last, isInside } = operation;
        return this.say(`${name} ${isInside ? "" : "!= "}${shown(first)}-${shown(last)}`);
      }
      case "lookup":
        return this.lookUp(operation);
      case "match":
        if (/^(tcp|udp|icmp6?)$/.test(operation.name)) this.forget("transport");
        return this.say(matchText(operation, this.protocol));
      case "nothing":
        return this.say(operation.name === "log" ? "log" : "");
      case "something":
        return this.say(`${foreignName(operation.name)} …`);
      case "set payload":
        return this.say("payload … set …");
      case "set meta":
      case "set ct": {
        const does = operation.does === "set ct" ? "ct" : "meta", { key, from } = operation;
        return this.say(`${does} ${key} set ${this.shownAt(from, fieldOf({ does, key, into: from }).shown)}`);
      }
      case "nat":
        return this.finish(`${operation.changes === "source" ? "snat" : "dnat"} to ${this.target(operation)}`);
      case "redirect":
        return this.finish(operation.port === undefined ? "redirect" : `redirect to ${this.target(operation)}`);
      case "target":
        return this.finish(targetText(operation, this.family));
      case "verdict":
        return this.finish(verdictText(operation.verdict));
      default:
        this.finish(operation.does);
    }
  }

  private finish(end: string): void {
    this.say(this.end);
    this.end = end;
  }

  /** What is loaded of the packet has a name instead. */
  private shownAt(register: Register, shown: Field["shown"]): string {
    const { name, value, mask } = this.at(register);
    return value !== undefined ? shown(value) : mask === undefined ? name : "…";
  }

  /** A map may yield the address and the port together. */
  private target({ address, port, isFirm }: { address?: Register; port?: Register; isFirm: boolean }): string {
    const host = address === undefined ? undefined : this.shownAt(address, shownAddress);
    const isMapped = host !== undefined && port !== undefined && !this.registers.has(port);
    const shown = port === undefined || isMapped ? undefined : this.shownAt(port, shownPort);
    return `${endText(host, shown)}${isFirm ? "" : "-…"}`;
  }

  private say(text: string, layer?: string): void {
    if (text !== "") this.conditions.push({ text, layer });
  }

  private forget(layer: string): void {
    this.conditions = this.conditions.filter((condition) => condition.layer !== layer);
  }

  private load(into: Register, loaded: Loaded): void {
    this.registers.set(into, loaded);
  }

  private at(register: Register): Loaded {
    return this.registers.get(register) ?? UNKNOWN;
  }

  private compare({ register, how, value }: Extract<Operation, { does: "compare" }>): void {
    const loaded = this.at(register), { name } = loaded, isFirm = how === "==" && loaded.mask === undefined;
    if (isFirm && ["meta l4proto", "ip protocol", "ip6 nexthdr"].includes(name)) this.protocol = protocolName(value);
    const NFPROTO_IPV4 = 2, IPV4 = [`${NFPROTO_IPV4}`, "8,0"];
    if (isFirm && SAYS_LAYER[name] === "network") this.family = IPV4.includes(value.join()) ? 4 : 6;
    const last = this.conditions.at(-1), start = `${name} >= `;
    if (how === "<=" && last?.text.startsWith(start)) {
      last.text = `${name} ${last.text.slice(start.length)}-${loaded.shown(value)}`;
      return;
    }
    this.say(comparisonText(loaded, how, value), isFirm ? SAYS_LAYER[name] : undefined);
  }

  /** The parts of a key stand one behind the other. */
  private lookUp({ register, set, isInverted, into }: Extract<Operation, { does: "lookup" }>): void {
    const parts: string[] = [], shownSet = /^__(set|map)\d+$/.test(set) ? "{ … }" : `@${foreignName(set)}`;
    for (let at = register, part = this.registers.get(at); part !== undefined; part = this.registers.get(at)) {
      parts.push(part.mask === undefined ? part.name : `${part.name} & ${part.shown(part.mask)}`);
      this.registers.delete(at);
      at += part.length === 0 ? 64 : (part.length + 3) & ~3;
    }
    const key = parts.length === 0 ? "…" : parts.join(" . ");
    if (into === "verdict") this.end = `${key} vmap ${shownSet}`;
    else if (into === undefined) this.say(`${key} ${isInverted ? "!= " : ""}${shownSet}`);
    else this.load(into, { ...UNKNOWN, name: `${key} map ${shownSet}` });
  }
}

function comparisonText({ name, length, shown, isOfBits, mask }: Loaded, how: Comparison, value: Uint8Array): string {
  const sign = how === "==" ? "" : `${how} `, isAddress = shown === shownAddress;
  if (mask === undefined) {
    return `${name} ${sign}${
      isAddress && value.length < length ? prefixText(value, length, value.length * 8) : shown(value)
    }`;
  }
  if (isOfBits && how === "!=" && value.every((byte) => byte === 0)) return `${name} ${shown(mask)}`;
  const bits = isAddress
    ? /^1*(?=0*$)/.exec([...mask].map((byte) => byte.toString(2).padStart(8, "0")).join(""))?.[0].length
    : undefined;
  if (bits !== undefined) return `${name} ${sign}${prefixText(value, length, bits)}`;
  return `${name} & ${shown(mask)} ${how} ${shown(value)}`;
}

function prefixText(value: Uint8Array, length: number, bits: number): string {
  const whole = new Uint8Array(length);
  whole.set(value.subarray(0, length));
  return `${shownAddress(whole)}/${bits}`;
}

export function verdictText(verdict: Verdict): string {
  return "chain" in verdict ? `${verdict.kind} ${foreignName(verdict.chain)}` : verdict.kind;
}
