/** What lets a packet pass where a rule stops it, as a line that can be run. */
import { isKnown } from "../net/netfilter/known-bytes.ts";
import { addressOfEnd, type PacketFacts } from "../net/netfilter/packet.ts";
import type { HookName, RuleChain } from "../net/netfilter/ruleset.ts";
import type { Place } from "../net/netfilter/traversal.ts";
import { formatAddress, isSameBytes } from "../net/address.ts";
import { shellWord } from "../process/shell-word.ts";
import type { NetnsFacts } from "./facts.ts";
import { type Remedy, STRANGERS } from "./walk/traveller.ts";

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
  const inside = at.netns.container === undefined ? "" : `nsenter --net=${shellWord(at.netns.container.netnsPath)} `;
  const ends = endsAsText(packet);
  const isIptables = (chain.family === "ip" || chain.family === "ip6") && HOOKS_OF_IPTABLES.has(only.name);
  if (chain.family === "bridge") return [{ run: nftByPorts(only, packet).map((line) => inside + line).join("; ") }];
  const lines = isIptables ? iptables(only, ends, packet) : nft(only, ends, packet);
  const more: Remedy[] = hook === "forward" && isIptables && rule === undefined
    ? [{
      advice:
        'or put { "type": "firewall", "backend": "iptables" } into the network, which does it for each container',
    }]
    : [];
  return [{ run: lines.map((line) => `${inside}${line}`).join("; ") }, ...more];
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

function iptables(chain: RuleChain, { source, destination }: EndsText, { family }: PacketFacts): string[] {
  const program = `iptables${chain.isLegacy ? "-legacy" : ""}`.replace(/^ip/, family === 4 ? "ip" : "ip6");
  const table = chain.table === "filter" ? "" : ` -t ${chain.table}`;
  const line = (from?: string, to?: string) =>
    `${program}${table} -I ${shellWord(chain.name)}${from ? ` -s ${from}` : ""}${to ? ` -d ${to}` : ""} -j ACCEPT`;
  return [line(source, destination), line(destination, source)];
}

function nft(chain: RuleChain, { source, destination }: EndsText, { family }: PacketFacts): string[] {
  const ip = family === 4 ? "ip" : "ip6", name = [chain.family, chain.table, chain.name].map(shellWord).join(" ");
  const line = (from?: string, to?: string) =>
    `nft insert rule ${name}${from ? ` ${ip} saddr ${from}` : ""}${to ? ` ${ip} daddr ${to}` : ""} accept`;
  return [line(source, destination), line(destination, source)];
}

/** With ARP and whatever else belongs to it. */
function nftByPorts(chain: RuleChain, { input, output }: PacketFacts): string[] {
  const name = [chain.family, chain.table, chain.name].map(shellWord).join(" ");
  const match = (key: string, link: PacketFacts["input"]) =>
    link === undefined || link === "any" ? "" : ` ${key} ${shellWord(`"${link.name}"`)}`;
  const line = (from: PacketFacts["input"], to: PacketFacts["input"]) =>
    `nft insert rule ${name}${match("iifname", from)}${match("oifname", to)} accept`;
  return [
    ...new Set(
      output === undefined || input === undefined
        ? [line(input, undefined)]
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
