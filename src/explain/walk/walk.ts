/** The whole way of a packet and of the answer to it, on every branch that the kernel may take. */
import { known, type KnownBytes, unknown, withBytes } from "../../net/netfilter/known-bytes.ts";
import { newBudget } from "../../net/netfilter/traversal.ts";
import { firstPacket, type PacketFacts } from "../../net/netfilter/packet.ts";
import { ECHOES, nameWithPorts, TCP } from "../../net/ip-protocol.ts";
import type { Link } from "../../ffi/netlink/route/link.ts";
import { arrive } from "./arrive.ts";
import type { NetnsFacts, World } from "../facts.ts";
import { throughHook } from "./hooks.ts";
import { takeIn } from "./ip.ts";
import { endElsewhere } from "./published-end.ts";
import { receive } from "./receive.ts";
import { send } from "./send.ts";
import { transmit } from "./transmit.ts";
import {
  type End,
  endsOf,
  entering,
  type Move,
  type Step,
  stopped,
  strangerOf,
  STRANGERS,
  type Tracked,
  type Traveller,
  withEnd,
} from "./traveller.ts";

export interface AskedFlow {
  family: 4 | 6;
  protocol: number;
  /** Undefined for somebody outside. */
  source?: Uint8Array;
  destination?: Uint8Array;
  destinationPort?: number;
}

/** Where a packet begins: sent by a namespace, or received by a link of it. */
export interface Origin {
  netns: NetnsFacts;
  input?: Link;
}

export interface Explanation {
  verdict: End["verdict"];
  /** The way that is told: the first that stops, or else the first. */
  steps: readonly Step[];
  end: End;
  /** When the kernel chooses among ways: how many there are, and how many stop. */
  ways: { all: number; stopped: number };
  /** What each namespace on the way takes the packet for. */
  tracked: readonly Tracked[];
  /** Some senders or receivers outside may fare otherwise. */
  isForStrangers?: true;
}

/** Enough for services with many ends; who has more is told of the first ones. */
const MOST_WAYS = 64, MOST_HOPS = 24;

/**
 * Whatever the address of somebody outside is. Where that decides, strangers are asked for: when all of them fare alike, so
 * does whoever has no rules of their own.
 */
export function explain(world: World, origin: Origin, flow: AskedFlow): Explanation {
  const found = forAnybody(world, origin, flow), end = endElsewhere(world, flow, found);
  return end === undefined ? found : { ...found, verdict: "unknown", end };
}

function forAnybody(world: World, origin: Origin, flow: AskedFlow): Explanation {
  const whole = explainOne(world, origin, flow);
  const isSenderHere = origin.input === undefined;
  const isOfSomebody = (isSenderHere || flow.source !== undefined) && flow.destination !== undefined;
  if (isOfSomebody || (whole.verdict !== "unknown" && whole.ways.all === 1)) return whole;
  const each = STRANGERS[flow.family].map((stranger) =>
    explainOne(world, origin, {
      ...flow,
      source: isSenderHere ? flow.source : flow.source ?? stranger,
      destination: flow.destination ?? stranger,
    })
  );
  const isAlike = each.every(({ verdict, end }) =>
    verdict === each[0]!.verdict && codeIn(end) === codeIn(each[0]!.end)
  );
  if (!isAlike) return whole;
  return whole.verdict === each[0]!.verdict ? each[0]! : { ...each[0]!, isForStrangers: true };
}

export function codeIn(end: End): string | undefined {
  return "cause" in end ? end.cause.code : undefined;
}

function explainOne(world: World, origin: Origin, flow: AskedFlow): Explanation {
  const first = traveller(origin, flow);
  const start: Move = origin.input === undefined
    ? { to: "send", traveller: first }
    : { to: "receive", traveller: first, link: origin.input };
  const going = follow(world, start),
    whole = going.flatMap((outcome) => {
      const answer = answerTo(outcome);
      return answer === undefined
        ? [outcome]
        : follow(world, answer).map((back) => ({ ...back, going: outcome.end }));
    });
  return summaryOf(whole);
}

interface Outcome {
  traveller: Traveller;
  end: End;
  /** For an answer: how the way there has ended. */
  going?: End;
}

function follow(world: World, start: Move): Outcome[] {
  const outcomes: Outcome[] = [], moves = [start];
  for (let move = moves.shift(); move !== undefined; move = moves.shift()) {
    if (move.to === "end") {
      outcomes.push({ traveller: move.traveller, end: orSilent(move) });
      continue;
    }
    const traveller = { ...move.traveller, hops: move.traveller.hops + 1 };
    const isTooFar = traveller.hops > MOST_HOPS || moves.length + outcomes.length > MOST_WAYS;
    const text = "the packet takes more ways, or longer ones, than are followed";
    const onward = isTooFar
      ? stopped(traveller, { code: "too-far", what: "way", text }, "unknown")
      : next(world, { ...move, traveller });
    moves.unshift(...onward.length > 0 ? onward : nowhere(traveller));
  }
  return outcomes;
}

/** The kernel's answers do not fit together: a route leads by a link that is not there. */
function nowhere(traveller: Traveller): Move[] {
  const text = `${traveller.netns.label} changes while it is looked at, or has a route by no link`;
  return stopped(traveller, { code: "undecided", what: "way", text }, "unknown");
}

/** It would go on, if somebody answered who has not so far. */
function orSilent({ traveller: { silent }, end }: Extract<Move, { to: "end" }>): End {
  return silent === undefined || isStop(end) ? end : { verdict: "unknown", cause: silent };
}

function next(world: World, move: Exclude<Move, { to: "end" }>): Move[] {
  if (move.to === "send") return send(move.traveller);
  const { to, traveller, link } = move;
  switch (to) {
    case "transmit":
      return transmit(world, traveller, link);
    case "loop":
      return byLoopback(traveller, link);
    case "receive":
      return receive(world, traveller, link);
    case "ip":
      return takeIn(traveller, link);
    case "arrive":
      return arrive(world, traveller, link);
  }
}

/** What a namespace sends to itself is not asked for a route, and not translated once more. */
function byLoopback(traveller: Traveller, link: Link): Move[] {
  return throughHook(
    traveller,
    { hook: "prerouting", input: link, withoutNat: true },
    (next) => throughHook(next, { hook: "input", input: link }, (last) => [{ to: "arrive", traveller: last, link }]),
  );
}

const TCP_FLAGS_AT = 13, SYN_AND_ACK = 0x12;

function traveller({ netns, input }: Origin, flow: AskedFlow): Traveller {
  const { family, source, destination, protocol, destinationPort } = flow;
  const bytesOf = (address: Uint8Array | undefined) =>
    address === undefined ? unknown(strangerOf(family).length) : known(address);
  const ends = { source: bytesOf(source), destination: bytesOf(destination), destinationPort };
  const packet = fromSomePort(firstPacket({ family, protocol, ...ends }, () => undefined), firstPort(netns, input));
  return entering({
    direction: "going",
    netns,
    packet,
    steps: [],
    tracked: [],
    hops: 0,
    budget: newBudget(),
    fromOutside: input,
  }, netns);
}

const USUAL_FIRST_PORT = 32768;

/** The least port that a client has; that of somebody outside is the usual one. */
function firstPort(netns: NetnsFacts, input: Link | undefined): number {
  const range = input === undefined ? netns.sysctl("net/ipv4/ip_local_port_range") : undefined;
  return range === undefined ? USUAL_FIRST_PORT : Number.parseInt(range);
}

function fromSomePort(packet: PacketFacts, first: number): PacketFacts {
  if (nameWithPorts(packet.protocol) === undefined || !(first >= USUAL_FIRST_PORT)) return packet;
  const port = { value: Uint8Array.of(0x80, 0), mask: Uint8Array.of(0x80, 0) };
  return { ...packet, transport: withBytes(packet.transport, 0, port) };
}

function isStop(end: End): end is Extract<End, { cause: unknown }> {
  return "cause" in end;
}

/** Undefined where nobody gets the packet. */
function answerTo({ traveller, end }: Outcome): Move | undefined {
  if (isStop(end)) return undefined;
  const packet = answerPacket(traveller.packet);
  const at = entering({ ...traveller, direction: "answer", packet, nextHop: undefined, mtu: undefined }, end.netns);
  if (end.verdict === "arrives") return { to: "send", traveller: at };
  return { to: "receive", traveller: at, link: end.link };
}

function answerPacket(packet: PacketFacts): PacketFacts {
  const { source, destination, sourcePort, destinationPort } = endsOf(packet);
  const turned = withEnd(
    withEnd(packet, "source", destination, destinationPort),
    "destination",
    source,
    sourcePort,
  );
  return { ...turned, transport: answerHeader(turned), state: "established" };
}

function answerHeader({ protocol, transport }: PacketFacts): KnownBytes {
  if (protocol === TCP) return withBytes(transport, TCP_FLAGS_AT, known(Uint8Array.of(SYN_AND_ACK)));
  const echo = ECHOES[protocol];
  return echo === undefined ? transport : withBytes(transport, 0, known(Uint8Array.of(echo[1], 0)));
}

function summaryOf(outcomes: readonly Outcome[]): Explanation {
  const stops = outcomes.filter(({ end }) => end.verdict === "stops");
  const unknowns = outcomes.filter(({ end }) => end.verdict === "unknown");
  const isCertain = stops.length === outcomes.length ||
    (unknowns.length === 0 && stops.every(({ traveller }) => !traveller.isOpen));
  const told = stops.length > 0 && isCertain ? stops[0]! : unknowns[0] ?? stops[0] ?? outcomes[0]!;
  const end: End = told.going !== undefined && !isStop(told.end) ? told.going : told.end;
  const verdict = stops.length > 0 && isCertain
    ? "stops"
    : stops.length + unknowns.length > 0
    ? "unknown"
    : end.verdict;
  const { steps, tracked } = told.traveller;
  return { verdict, steps, tracked, end, ways: { all: outcomes.length, stopped: stops.length } };
}
