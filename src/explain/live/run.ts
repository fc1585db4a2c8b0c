/** One packet of the flow, sent or waited for, while a table of ours in each namespace on the way has it traced. */
import { ECONNREFUSED, ENOBUFS, isErrno } from "../../ffi/errno.ts";
import { openTraceEvents } from "../../ffi/netlink/events.ts";
import {
  type ByteMatch,
  MOST_TRACES_AT_ONCE,
  traceIn,
  type TraceOrder,
  tracesIn,
} from "../../ffi/netlink/nftables/trace.ts";
import { NETLINK_NETFILTER, type NetlinkSocket, openNetlink } from "../../ffi/netlink/socket.ts";
import type { KernelTransport } from "../../ffi/netlink/transport.ts";
import { NFPROTO_IPV4, NFPROTO_IPV6 } from "../../ffi/netlink/uapi/nf-tables.ts";
import { poll, POLLIN } from "../../ffi/poll.ts";
import { randomBytes } from "../../ffi/random.ts";
import { type FlowAnswer, FlowProbe } from "../../ffi/socket/probe.ts";
import { isSameBytes } from "../../net/address.ts";
import { ECHOES } from "../../net/ip-protocol.ts";
import { isKnown, type KnownBytes } from "../../net/netfilter/known-bytes.ts";
import type { HostWorld } from "../host-world.ts";
import type { Asked } from "../question.ts";
import type { Reading } from "../reading.ts";
import type { Explanation } from "../walk/walk.ts";
import { type Ends, reversed, STRANGERS } from "../walk/traveller.ts";
import { hasAll, type Headers, type Sight, Sightings, signName } from "./sights.ts";

export interface LiveWay extends Asked {
  world: HostWorld;
  explanation: Explanation;
  /** Real packets are waited for so long; otherwise one is sent. */
  watchMs?: number;
}

export interface LiveRun {
  sights: Sight[];
  /** What has come back to the probe. */
  answer: FlowAnswer;
  /** The port, or the number of the echo, of the sender; undefined when no packet came. */
  mark?: number;
  /** Messages of the kernel's were lost. */
  isLossy: boolean;
}

/** Chains of ours in a namespace: the number of the hook, and the priority. */
export type SignsIn = (netns: Reading) => readonly { hook: number; priority: number }[];

/** A second SYN would be sent after a second. The kernel has traced what it does before it wakes who waits. */
const PATIENCE_MS = 700, BRIEF_MS = 250, SETTLING_MS = 60;

/** `isBrief`: an answer is not waited for, only what namespaces here do. */
export function run(way: LiveWay, signs: SignsIn, isBrief = false): LiveRun {
  const { world, origin, flow, watchMs } = way, table = `patchbay-live-${randomBytes(6).toHex()}`;
  const sender = world.namespaces.find((each) => each === origin.netns)!, closing: { close(): void }[] = [];
  try {
    const probe = watchMs === undefined
      ? sender.inside(() => FlowProbe.open(flow.protocol, flow.source, flow.destination!, flow.destinationPort ?? 0))
      : undefined;
    if (probe !== undefined) closing.push(probe);
    const numbers = new FlowNumbers(way, probe?.mark);
    const trails = world.namespaces.flatMap((netns): Trail[] => {
      const packets = numbers.packetsIn(netns);
      if (packets.length === 0) return [];
      const events = netns.inside(openTraceEvents), socket = netns.inside(() => openNetlink(NETLINK_NETFILTER));
      closing.push(events, socket);
      traceFor(socket, { table, family: flow.family }, {
        protocol: flow.protocol,
        packets,
        signs: signs(netns).map(({ hook, priority }) => ({ hook, priority, name: signName(hook, priority) })),
      });
      return [{ events, sightings: new Sightings(netns, table, (headers) => numbers.directionOf(netns, headers)) }];
    });
    const found = collect(trails, probe, watchMs ?? (isBrief ? BRIEF_MS : PATIENCE_MS)),
      answer = found.answer ?? answerSeen(way, found.sights);
    return { ...found, answer, mark: numbers.number };
  } finally {
    for (const each of closing.reverse()) each.close();
  }
}

function traceFor(socket: NetlinkSocket, { table, family }: { table: string; family: 4 | 6 }, order: TraceOrder) {
  traceIn(socket, { family: family === 4 ? NFPROTO_IPV4 : NFPROTO_IPV6, name: table }, order);
}

/** Whether somebody's packet has got its answer: it came in where they are, or left for them. */
function answerSeen({ origin, watchMs }: LiveWay, sights: readonly Sight[]): FlowAnswer {
  const hook = origin.input === undefined ? "input" : "postrouting";
  const home = sights.find((sight) =>
    watchMs !== undefined && sight.direction === "answer" && sight.netns === origin.netns && sight.hook === hook
  );
  return home && (home.isReset ? { errno: ECONNREFUSED } : "answered");
}

interface Trail {
  events: KernelTransport;
  sightings: Sightings;
}

function collect(trails: readonly Trail[], probe: FlowProbe | undefined, patienceMs: number) {
  const sights: Sight[] = [];
  let answer = probe?.send(), isLossy = false, deadline = Date.now() + patienceMs, settled: number | undefined;
  // The last look is behind the end: the process may have slept through it.
  for (let isOver = false; !isOver;) {
    const isDecided = answer !== undefined || sights.some(({ verdict }) => verdict === "drop");
    if (isDecided || (probe === undefined && sights.length > 0)) {
      settled ??= Date.now() + (isDecided ? SETTLING_MS : PATIENCE_MS);
      deadline = Math.min(deadline, settled);
    }
    const leftMs = Math.max(0, deadline - Date.now());
    isOver = leftMs === 0;
    const wanted = trails.map(({ events: { fd } }) => ({ fd, events: POLLIN }));
    // What a probe waits for is in its errors, too, which poll tells unasked.
    if (probe !== undefined && answer === undefined) wanted.push({ fd: probe.fd, events: probe.awaits });
    poll(wanted, leftMs);
    answer ??= probe?.look();
    for (const { events, sightings } of trails) {
      try {
        const found = tracesIn(events);
        for (const event of found) sights.push(...sightings.take(event));
        isLossy ||= isOver && found.length >= MOST_TRACES_AT_ONCE;
      } catch (error) {
        if (!isErrno(error, ENOBUFS)) throw error;
        isLossy = true;
      }
    }
  }
  return { sights: inOrder(sights), answer, isLossy };
}

/** In the order of the packet's way. Later packets of the flow say the same. */
function inOrder(sights: readonly Sight[]): Sight[] {
  const seen = new Set<string>(), isSending = (hook: string) => hook === "output" || hook === "postrouting";
  const place = ({ netns, hook, direction }: Sight) =>
    (direction === "answer" ? 3 : 0) + (netns.container === undefined ? 1 : isSending(hook) ? 0 : 2);
  return sights.toSorted((one, other) => place(one) - place(other)).filter(
    ({ netns, direction, hook, priority, by }) => {
      const key = [netns.label, direction, hook, priority, by?.chain.table, by?.chain.name].join("\0");
      return !seen.has(key) && seen.add(key);
    },
  );
}

/** By what packets of the flow are told from all others. */
class FlowNumbers {
  constructor(private readonly way: LiveWay, private mark: Uint8Array | undefined) {}

  get number(): number | undefined {
    return this.mark && this.mark[0]! << 8 | this.mark[1]!;
  }

  /** Empty where the flow is not known well enough: the walk has not come here, and no probe marks it. */
  packetsIn(netns: Reading): ByteMatch[][] {
    const { tracked, ways } = this.way.explanation, here = tracked.find((each) => each.netns === netns);
    if (here === undefined && this.mark === undefined) return [];
    const back = ways.all === 1 ? here : undefined;
    if (back === undefined && this.mark === undefined) return [this.bytes("going", here?.before)];
    return [this.bytes("going", here?.before), this.bytes("answer", back && reversed(back.after))];
  }

  /** After a translation only the mark is as it was; the first packet that is waited for has all else, and says the mark. */
  directionOf(netns: Reading, headers: Headers): Sight["direction"] | undefined {
    if (this.mark === undefined) {
      const [going] = this.packetsIn(netns);
      if (going === undefined || !hasAll(headers, going)) return undefined;
      this.mark = headers.transport.slice(this.markAt("going"), this.markAt("going") + 2);
    }
    return (["going", "answer"] as const).find((direction) => hasAll(headers, this.bytes(direction)));
  }

  private markAt(direction: Sight["direction"]): number {
    return this.way.flow.protocol in ECHOES ? 4 : direction === "going" ? 0 : 2;
  }

  private bytes(direction: Sight["direction"], ends?: Ends): ByteMatch[] {
    const { protocol, family } = this.way.flow,
      echo = ECHOES[protocol],
      [source, destination] = family === 4 ? [12, 16] : [8, 24];
    const isGoing = direction === "going", found: ByteMatch[] = [];
    const { flow: { source: sender, destination: receiver }, origin } = this.way;
    const isAnybody = (origin.input !== undefined && sender === undefined) || receiver === undefined;
    const strangers = isAnybody ? STRANGERS[family] : [];
    const add = (header: ByteMatch["in"], offset: number, bytes: KnownBytes | undefined) => {
      if (strangers.some((each) => bytes && isSameBytes(each, bytes.value))) return;
      if (bytes !== undefined && isKnown(bytes)) found.push({ in: header, offset, value: bytes.value });
    };
    add("network", source, ends?.source);
    add("network", destination, ends?.destination);
    if (echo !== undefined) found.push({ in: "transport", offset: 0, value: Uint8Array.of(echo[isGoing ? 0 : 1]) });
    else add("transport", isGoing ? 2 : 0, isGoing ? ends?.destinationPort : ends?.sourcePort);
    const { mark } = this;
    if (mark !== undefined) found.push({ in: "transport", offset: this.markAt(direction), value: mark });
    return found;
  }
}
