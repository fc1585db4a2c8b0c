/** A packet at a hook of netfilter: the ways on, and where rules end it. */
import { isKnown, textOf, unknown } from "../../net/netfilter/known-bytes.ts";
import type { PacketFacts, PacketLink } from "../../net/netfilter/packet.ts";
import { placeText } from "../../net/netfilter/text.ts";
import {
  type Doubt,
  type Passage,
  type Place,
  type Traversal,
  traverse,
  type WayOut,
} from "../../net/netfilter/traversal.ts";
import { contains, formatAddress, parseAddress } from "../../net/address.ts";
import { nameWithPorts } from "../../net/ip-protocol.ts";
import type { Link } from "../../ffi/netlink/route/link.ts";
import type { Code } from "../codes.ts";
import { globalAddresses, type NetnsFacts } from "../facts.ts";
import { optionBehind } from "../intended.ts";
import { remediesFor } from "../remedy.ts";
import { destinationOf, endsOf, knownOr, type Move, noted, portIn, stopped, type Traveller } from "./traveller.ts";

export interface HookPassage extends Passage {
  input?: Link;
  output?: Link;
}

/** Whether a frame has a connection depends on modules of the kernel. */
const UNTRACKED = { state: undefined, status: unknown(4), connectionMark: unknown(4) };

const CODES: Partial<Record<Passage["hook"], Code>> = {
  prerouting: "prerouting-drop",
  input: "input-drop",
  forward: "forward-drop",
  output: "output-drop",
  postrouting: "postrouting-drop",
};

export function throughHook(
  traveller: Traveller,
  passage: HookPassage,
  onward: (traveller: Traveller) => Move[],
): Move[] {
  const { netns } = traveller, rules = netns.rules(), what = nameOf(passage);
  if (rules === undefined) {
    const text = "its rules cannot be read, or do not stand still";
    return stopped(traveller, { code: "rules-unread", what, text }, "unknown");
  }
  const { packet: own, budget } = traveller, isFrame = passage.isBridge || passage.device !== undefined;
  const addressOf: PacketFacts["addressOf"] = (link) => ownAddress(traveller, link, passage.hook);
  const packet = { ...own, ...isFrame && UNTRACKED, addressOf, input: passage.input, output: passage.output };
  const traversal = traverse(rules, packet, { ...passage, budget }), { endings, doubts } = traversal;
  const passing = distinctWays(endings.filter(({ fate }) => fate === "passes"));
  const ended = endings.filter(({ fate }) => fate !== "passes");
  if (passing.length === 0 && ended.every(isStop)) return stopBy(traveller, passage, ended[0]!);
  const isMixed = passing.length + Math.min(1, ended.length) > 1,
    byChance = isMixed && doubts.length > 0 && doubts.every(isChance);
  const branch: Traveller = { ...traveller, ...isMixed && !byChance && { isOpen: true } };
  const { state, status, connectionMark } = own, connection = { state, status, connectionMark };
  const ways = passing.flatMap((way) =>
    isLostTrack(own, way.packet)
      ? lostTrack(branch, what, way)
      : onward(passed(branch, what, isFrame ? { ...way, packet: { ...way.packet, ...connection } } : way))
  );
  if (ended.length === 0) return ways;
  if (byChance && ended.every(isStop)) return [...ways, ...stopBy(branch, passage, ended[0]!)];
  return [...ways, ...doubtful(branch, what, traversal)];
}

function passed(traveller: Traveller, what: string, { packet, by }: WayOut): Traveller {
  const { input: _, output: __, ...rest } = packet, changed = changeText(traveller.packet, packet);
  const next = { ...traveller, packet: rest };
  if (changed !== undefined) return noted(next, what, changed, { place: by });
  return by?.rule === undefined ? next : noted(next, what, `accepted: ${placeText(by)}`, { place: by });
}

/** One of several addresses, which only the kernel knows. */
function isLostTrack(before: PacketFacts, after: PacketFacts): boolean {
  if (after.network === before.network) return false;
  const { destination } = endsOf(after);
  return !isKnown(destination) && textOf(destination) !== textOf(endsOf(before).destination);
}

function lostTrack(traveller: Traveller, what: string, { by }: WayOut): Move[] {
  const text = `${by === undefined ? "a rule" : placeText(by)} sends it to one of several addresses`;
  return stopped(traveller, { code: "undecided", what, text, place: by }, "unknown");
}

/** What a masquerade or a redirection takes. */
function ownAddress(traveller: Traveller, link: PacketLink | undefined, hook: Passage["hook"]) {
  const { netns, nextHop, packet: { family } } = traveller;
  if (link === "any") return undefined;
  if (link === undefined) return parseAddress(family === 4 ? "127.0.0.1" : "::1");
  // A redirection takes the first address; for IPv6, a masquerade takes what the kernel itself would send with.
  if (hook === "prerouting") return addressOn(netns, link, undefined, family);
  const chosen = family === 6 ? netns.sourceFor(destinationOf(traveller), link) : undefined;
  return chosen ?? addressOn(netns, link, nextHop, family);
}

/** As the kernel chooses: the address in the next hop's subnet, or the first one. */
export function addressOn(
  netns: NetnsFacts,
  { index }: Pick<Link, "index">,
  nextHop: Uint8Array | undefined,
  family: 4 | 6,
): Uint8Array | undefined {
  const own = globalAddresses(netns, family, index);
  return (own.find((prefix) => nextHop !== undefined && contains(prefix, nextHop)) ?? own[0])?.bytes;
}

/** Undefined where nothing is translated. */
function changeText(before: PacketFacts, after: PacketFacts): string | undefined {
  if (after.network === before.network && after.transport === before.transport) return undefined;
  const [old, now] = [endsOf(before), endsOf(after)];
  const texts = (["source", "destination"] as const).flatMap((end) => {
    const port = `${end}Port` as const;
    if (textOf(old[end]) === textOf(now[end]) && textOf(old[port]) === textOf(now[port])) return [];
    const address = knownOr(now[end], undefined);
    const number = nameWithPorts(after.protocol) === undefined ? undefined : portIn(now[port]);
    const to = address === undefined ? "an address of the host" : formatAddress(address);
    return [`${end} becomes ${to}${number === undefined ? "" : `, port ${number}`}`];
  });
  return texts.length === 0 ? undefined : texts.join("; ");
}

function stopBy(traveller: Traveller, passage: HookPassage, { fate, by, packet }: WayOut): Move[] {
  const what = nameOf(passage), code = codeOf(passage);
  // In a container anybody may have made a table of such a name.
  const option = by && traveller.netns.container === undefined ? optionBehind(by) : undefined;
  if (option !== undefined) return stopped(traveller, { code: "kept-apart", what, text: option, place: by });
  const text = `${by === undefined ? "a rule" : placeText(by)} ${fate === "is rejected" ? "rejects" : "drops"} it`;
  const mend = by && remediesFor(by, passage.hook, packet, traveller);
  return stopped(traveller, { code, what, text, place: by, mend });
}

function doubtful(traveller: Traveller, what: string, { doubts, endings }: Traversal): Move[] {
  const doubt = doubts.find((each) => !isChance(each)), ended = endings.find(({ fate }) => fate !== "passes");
  const place: Place | undefined = doubt ?? ended?.by, where = place === undefined ? "a rule" : placeText(place);
  const text = doubt !== undefined
    ? `cannot tell what ${where} does: ${doubt.about}`
    : ended !== undefined && isStop(ended)
    ? `cannot tell whether ${where} stops it: a map decides, or which table is called first`
    : `${where} decides it elsewhere`;
  return stopped(traveller, { code: "undecided", what, text, place }, "unknown");
}

function isStop({ fate }: WayOut): boolean {
  return fate === "is dropped" || fate === "is rejected";
}

/** The kernel throws a die for each new connection, so each way is taken by some. */
function isChance({ about }: Doubt): boolean {
  return about === "numgen" || about === "match statistic";
}

function nameOf({ hook, isBridge, device }: HookPassage): string {
  return isBridge ? `bridge ${hook}` : device === undefined ? hook : `${hook} of ${device}`;
}

function codeOf({ hook, isBridge, device }: HookPassage): Code {
  return isBridge ? "bridge-drop" : device !== undefined ? "device-drop" : CODES[hook] ?? "device-drop";
}

/** Ways that differ in marks alone are one, of which the mark is not known. */
function distinctWays(endings: readonly WayOut[]): WayOut[] {
  if (endings.length < 2) return [...endings];
  const ways = new Map<string, WayOut>();
  for (const ending of endings) {
    const ends = endsOf(ending.packet);
    const key = [ends.source, ends.destination, ends.sourcePort, ends.destinationPort].map(textOf).join();
    const known = ways.get(key);
    ways.set(
      key,
      known === undefined ? ending : { ...known, packet: withoutDifference(known.packet, ending.packet) },
    );
  }
  return [...ways.values()];
}

function withoutDifference(one: PacketFacts, other: PacketFacts): PacketFacts {
  const mark = textOf(one.mark) === textOf(other.mark) ? one.mark : unknown(4);
  return { ...one, mark, state: one.state === other.state ? one.state : undefined };
}
