/** What lets a packet pass where a rule stops it, as a line that can be run. */
import { isKnown, slice } from "../net/netfilter/known-bytes.ts";
import { addressOfEnd, type PacketFacts } from "../net/netfilter/packet.ts";
import type { HookName, RuleChain } from "../net/netfilter/ruleset.ts";
import type { Place } from "../net/netfilter/traversal.ts";
import { ICMP, ICMPV6, nameWithPorts } from "../net/ip-protocol.ts";
import { formatAddress, isSameBytes } from "../net/address.ts";
import { shell, shellWord } from "../process/shell-word.ts";
import type { ContainerName, NetnsFacts } from "./facts.ts";
import { portIn, type Remedy, STRANGERS } from "./walk/traveller.ts";

interface At {
  netns: NetnsFacts;
  direction: "going" | "answer";
}

/** Both directions pass by it, and nobody else's packets. */
export function remediesFor({ chain, rule }: Place, hook: HookName, packet: PacketFacts, at: At): Remedy[] {
  const base = baseChains(at.netns, chain, hook), only = base.length === 1 ? base[0]! : undefined;
  if (only === undefined) {
    return [{ advice: `change ${chain.family} ${chain.table} ${chain.name}, or ask whoever wrote it` }];
  }
  const ends = endsAsText(packet);
  const isIptables = (chain.family === "ip" || chain.family === "ip6") && HOOKS_OF_IPTABLES.has(only.name);
  // What asks for no address stops ARP, too, and what else belongs to it.
  const asksAddress = rule?.operations.some((one) => one.does === "payload" && one.base !== "link") === true;
  if (chain.family === "bridge" && !asksAddress) return [linesIn(at.netns, nftByPorts(only, packet))];
  const service = serviceOf(packet, at.direction), { family } = packet;
  const line = (isIptables ? iptables : nft)(only, family, service);
  const lines = bothWays(line, ends, hook, at.direction);
  const isForward = hook === "forward" && isIptables && rule === undefined;
  return [linesIn(at.netns, lines), ...isForward ? [{ advice: WITHOUT_RULES }] : []];
}

const WITHOUT_RULES =
  "with the plugin firewall in its network, 'patchbay inspect' says whether its rules are gone, and " +
  "'patchbay repair' makes them again; without it, add it to the network: it lets each container's packets pass";

/** Lines to run in the namespace. */
export function linesIn({ container }: NetnsFacts, lines: readonly string[], because?: string): Remedy {
  const inside = container === undefined ? "" : shell`nsenter --net=${container.netnsPath} `;
  return { run: lines.map((line) => inside + line).join("; "), because };
}

export function setSysctl(netns: NetnsFacts, name: string, value: number, because?: string): Remedy {
  return linesIn(netns, [shell`sysctl -w ${name}=${String(value)}`], because);
}

export function repairOf({ container }: NetnsFacts): Remedy[] {
  return container === undefined ? [] : [{ run: repairLines(container).join("; "), because: "makes what ADD made" }];
}

function repairLines({ attached, operand }: ContainerName): string[] {
  return [...new Set(attached.map(({ network }) => shell`patchbay repair ${network} ${operand}`))];
}

const HOOKS_OF_IPTABLES = new Set(["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"]);

interface EndsText {
  source?: string;
  destination?: string;
}

/** Undefined where it is not known whose packet it is. */
function endsAsText(packet: PacketFacts): EndsText {
  const textOf = (end: "source" | "destination") => {
    const bytes = addressOfEnd(packet, end);
    return isKnown(bytes) && !isStranger(bytes.value) ? formatAddress(bytes.value) : undefined;
  };
  const isStranger = (address: Uint8Array) => STRANGERS[packet.family].some((one) => isSameBytes(one, address));
  return { source: textOf("source"), destination: textOf("destination") };
}

/** A protocol as iptables and nft know it, and the program's port: the answer comes from it. */
interface Service {
  protocol: string;
  port?: number;
}

function serviceOf({ protocol, transport }: PacketFacts, direction: At["direction"]): Service {
  const port = portIn(slice(transport, direction === "going" ? 2 : 0, 2)), name = nameWithPorts(protocol);
  if (name !== undefined) return { protocol: name, port };
  return { protocol: protocol === ICMP ? "icmp" : protocol === ICMPV6 ? "icmpv6" : String(protocol) };
}

type Line = (ends: EndsText, end: "destination" | "source") => string;

/** What stops, and the packets that go the other way there, which an input or an output never has. */
function bothWays(line: Line, ends: EndsText, hook: HookName, direction: At["direction"]): string[] {
  const { source, destination } = ends,
    [own, other] = direction === "going" ? ["destination", "source"] as const : ["source", "destination"] as const;
  const lines = [line(ends, own)];
  return hook === "input" || hook === "output"
    ? lines
    : [...lines, line({ source: destination, destination: source }, other)];
}

function iptables(chain: RuleChain, family: 4 | 6, { protocol, port }: Service): Line {
  const program = `ip${family === 4 ? "" : "6"}tables${chain.isLegacy ? "-legacy" : ""}`;
  const table = chain.table === "filter" ? "" : ` -t ${chain.table}`;
  return ({ source, destination }, end) =>
    `${program}${table} -I ${shellWord(chain.name)}${source ? ` -s ${source}` : ""}` +
    `${destination ? ` -d ${destination}` : ""}` +
    ` -p ${protocol}${port === undefined ? "" : ` --${end === "source" ? "s" : "d"}port ${port}`} -j ACCEPT`;
}

function nft(chain: RuleChain, family: 4 | 6, { protocol, port }: Service): Line {
  const ip = family === 4 ? "ip" : "ip6", name = [chain.family, chain.table, chain.name].map(shellWord).join(" ");
  return ({ source, destination }, end) =>
    `nft insert rule ${name}${source ? ` ${ip} saddr ${source}` : ""}${
      destination ? ` ${ip} daddr ${destination}` : ""
    }` +
    (port === undefined ? ` meta l4proto ${protocol}` : ` ${protocol} ${end === "source" ? "s" : "d"}port ${port}`) +
    " accept";
}

function nftByPorts(chain: RuleChain, { input, output }: PacketFacts): string[] {
  const name = [chain.family, chain.table, chain.name].map(shellWord).join(" ");
  const match = (key: string, link: PacketFacts["input"]) =>
    link === undefined || link === "any" ? "" : ` ${key} ${shellWord(`"${link.name}"`)}`;
  const line = (from: PacketFacts["input"], to: PacketFacts["input"]) =>
    `nft insert rule ${name}${match("iifname", from)}${match("oifname", to)} accept`;
  return [
    ...new Set(
      output === undefined || input === undefined
        ? [line(input, output)]
        : [line(input, output), line(output, input)],
    ),
  ];
}

/** The chains of the table that lead there. */
function baseChains(netns: NetnsFacts, { family, table, isLegacy }: RuleChain, hook: HookName): RuleChain[] {
  return netns.rules()?.chains.filter((each) =>
    each.base?.hook === hook && each.family === family && each.table === table && each.isLegacy === isLegacy
  ) ?? [];
}
