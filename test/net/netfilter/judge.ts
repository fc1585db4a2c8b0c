/**
 * In a namespace of its own, whose rules somebody has loaded: each rule and policy with what is said of it, and what is
 * said of packets that are forwarded.
 */
import { existsSync, readFileSync } from "node:fs";
import { NETLINK_NETFILTER, openNetlink } from "../../../src/ffi/netlink/socket.ts";
import { readRuleset } from "../../../src/ffi/netlink/nftables/whole-ruleset.ts";
import { parseAddress } from "../../../src/net/address.ts";
import { known } from "../../../src/net/netfilter/known-bytes.ts";
import { type Maker, makerOf } from "../../../src/net/netfilter/owner.ts";
import { firstPacket, type PacketLink } from "../../../src/net/netfilter/packet.ts";
import { placeText, ruleLine } from "../../../src/net/netfilter/text.ts";
import { certainFate, type Place, traverse } from "../../../src/net/netfilter/traversal.ts";
import { ownTableNames } from "../../../src/resources/packets/shared/own-tables.ts";

/** A new TCP connection. */
export interface Question {
  from: string;
  to: string;
  port: number;
  input: string;
  output: string;
  hook?: "prerouting" | "forward";
}

export interface Said {
  place: string;
  /** "" of a policy. */
  line: string;
  maker: Maker;
}

export interface Judged {
  /** "" when it depends. */
  fate: string;
  /** What stops it, where it does not pass. */
  by: Said[];
  doubts: string[];
}

export interface Judgement {
  said: (Said & { chain: string; handle: string })[];
  judged: Judged[];
}

const questions = JSON.parse(process.argv[2]!) as Question[];
const socket = openNetlink(NETLINK_NETFILTER);
const rules = readRuleset((ask) => ask(socket))!, own = ownTableNames(), TCP = 6;

const say = (place: Place): Said => ({
  place: placeText(place),
  line: place.rule === undefined ? "" : ruleLine(place.rule, place.chain.family),
  maker: makerOf(place, rules, own),
});

/** With the number of another one where there is none of that name. */
function link(name: string, other: number): PacketLink {
  const path = `/sys/class/net/${name}/ifindex`;
  return { name, index: existsSync(path) ? Number(readFileSync(path, "utf8")) : other };
}

function judge({ from, to, port, input, output, hook = "forward" }: Question): Judged {
  const source = parseAddress(from)!, destination = parseAddress(to)!, family = source.length === 4 ? 4 : 6;
  const flow = { family, source: known(source), destination: known(destination), protocol: TCP } as const;
  const packet = firstPacket({ ...flow, destinationPort: port }, () => 1);
  const links = hook === "forward" ? { output: link(output, 1002) } : {};
  const traversal = traverse(rules, { ...packet, input: link(input, 1001), ...links }, { hook });
  const stops = traversal.endings.filter(({ fate }) => fate !== "passes");
  return {
    fate: certainFate(traversal) ?? "",
    by: stops.map(({ by }) => say(by!)),
    doubts: traversal.doubts.map(({ about }) => about),
  };
}

const said = rules.chains.flatMap((chain) =>
  [undefined, ...chain.rules].filter((rule) => rule !== undefined || chain.base !== undefined).map((rule) => ({
    chain: `${chain.family} ${chain.table} ${chain.name}`,
    handle: `${rule?.handle ?? ""}`,
    ...say({ chain, rule }),
  }))
);
console.log(JSON.stringify({ said, judged: questions.map(judge) } satisfies Judgement));
socket.close();
