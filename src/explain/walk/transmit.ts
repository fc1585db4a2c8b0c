/** A packet that a link sends: to the other end of a pair, behind a bridge, or away from here. */
import type { Link } from "../../ffi/netlink/route/link.ts";
import { IFF_NOARP } from "../../ffi/netlink/uapi/if-link.ts";
import { contains, formatAddress, parsePrefix } from "../../net/address.ts";
import {
  aboveWith,
  isAcross,
  isAddressOf,
  isLoopback,
  type LinkIn,
  linkWith,
  type NetnsFacts,
  pairedHere,
  type World,
} from "../facts.ts";
import { byOpenVswitch, intoOpenVswitch, isBehindOvs } from "./other-switch.ts";
import { fromHost } from "./bridge.ts";
import { throughHook } from "./hooks.ts";
import {
  answerAstray,
  byProgram,
  isUnanswered,
  nobodyAnswers,
  notUp,
  otherMac,
  remembering,
  toHolder,
} from "./neighbours.ts";
import { isKnown, textOf } from "../../net/netfilter/known-bytes.ts";
import { framed } from "../../net/netfilter/packet.ts";
import { send } from "./send.ts";
import { localnetOff, LOOPBACK_NET, repairOf } from "./routing.ts";
import {
  carriedBy,
  destinationOf,
  DROPPED_SILENTLY,
  endsOf,
  entering,
  type Move,
  noted,
  sourceOf,
  stopped,
  type Traveller,
} from "./traveller.ts";
import { bridgeBelow } from "./vlans.ts";

export function transmit(world: World, traveller: Traveller, link: Link): Move[] {
  const down = notUp(traveller, link);
  if (down !== undefined) return down;
  if (isLoopback(link)) return [{ to: "loop", traveller, link }];
  const local = fromLoopback(traveller, link);
  if (local !== undefined) return local;
  const unseen = byProgram(world, traveller, link);
  if (unseen !== undefined) return unseen;
  const carried = carriedBy(traveller, link, "of larger packets the sender is told, where rules let that pass");
  const sent = { ...carried, packet: framed(traveller.packet, link.mac) };
  return throughHook(sent, { hook: "egress", device: link.name, output: link }, (next) => onward(world, next, link));
}

function fromLoopback(traveller: Traveller, link: Link): Move[] | undefined {
  const source = sourceOf(traveller), { netns } = traveller;
  if (source.length !== 4 || source[0] !== LOOPBACK_NET) return undefined;
  const isAllowed = ["all", link.name].some((name) => netns.sysctl(`net/ipv4/conf/${name}/route_localnet`) === "1");
  if (isAllowed) return undefined;
  return localnetOff(traveller, link);
}

function onward(world: World, traveller: Traveller, link: Link): Move[] {
  const { netns, nextHop = destinationOf(traveller) } = traveller;
  if (netns !== world.host) return fromContainer(world, traveller, link, nextHop);
  if (link.kind === "bridge") return fromHost(world, traveller, link, nextHop);
  const below = bridgeBelow(netns, link), port = pairedHere(netns, link);
  if (below !== undefined) return fromHost(world, traveller, below, nextHop, link);
  if (port?.master !== undefined) return intoOwnPort(world, traveller, link, port, nextHop);
  if (link.kind === "macvlan" || link.kind === "ipvlan") {
    const holder = world.holderOf(nextHop), above = holder && world.acrossFrom(holder.netns, holder.link)?.link.index;
    if (holder !== undefined && above === link.link) return toHolder(world, traveller, link, holder, nextHop);
  }
  if (link.kind === "veth") {
    const holder = world.holderOf(nextHop);
    const isPair = holder?.link.kind === "veth" && isAcross(world, holder, link);
    if (isPair) return toHolder(world, traveller, link, holder, nextHop);
    if (world.endOf(link) !== undefined) return nobodyAnswers(traveller, link, nextHop);
  }
  return away(world, traveller, link, nextHop);
}

/** A pair of the host's own, whose other end is a port of a bridge: the gateway of a VLAN. */
function intoOwnPort(world: World, traveller: Traveller, link: Link, port: Link, nextHop: Uint8Array): Move[] {
  const holder = world.holderOf(nextHop);
  const wrong = holder && otherMac(world, traveller, link, nextHop, [holder.link.mac], holder.netns.label);
  if (wrong !== undefined) return wrong;
  const at = noted(remembering(traveller, link, nextHop), link.name, `a pair with ${port.name}`);
  return [{ to: "receive", traveller: carriedBy(at, port, DROPPED_SILENTLY), link: port }];
}

/**
 * What receives for the host above the same parent: a link of its own there answers who asks by ARP for any address of the
 * host. An ipvlan has its parent's MAC address, so what is not for an address of its own comes to the parent.
 */
function hostsLinkBeside({ host }: World, parent: Link, address: Uint8Array): Link | undefined {
  const beside = host.links().filter(({ kind, link, up }) =>
    up && (kind === "macvlan" || kind === "ipvlan") && link === parent.index
  );
  const at = linkWith(host, address), exact = beside.find(({ index }) => index === at);
  if (exact !== undefined || at === undefined || address.length !== 4) return exact;
  const answers = beside.find(({ name }) => ["all", name].every((each) => !isOn(host, `${each}/arp_ignore`)));
  return answers?.kind === "ipvlan" ? parent : answers;
}

function isOn(netns: NetnsFacts, key: string): boolean {
  return (netns.sysctl(`net/ipv4/conf/${key}`) ?? "0") !== "0";
}

function fromContainer(world: World, traveller: Traveller, link: Link, nextHop: Uint8Array): Move[] {
  const { netns } = traveller, across = world.acrossFrom(netns, link);
  if (across === undefined) return away(world, traveller, link, nextHop);
  if (link.kind === "macvlan" || link.kind === "ipvlan") return overParent(world, traveller, link, across, nextHop);
  if (link.kind !== "veth") return away(world, traveller, link, nextHop);
  if (isBehindOvs(netns)) {
    const at = entering(noted(traveller, link.name, `${link.name}, a pair with ${across.link.name}`), world.host);
    return notUp(at, across.link) ?? byOpenVswitch(at, across.link);
  }
  const wrong = wrongNeighbour(world, traveller, link, across.link, nextHop);
  if (wrong !== undefined) return wrong;
  const sending = remembering(traveller, link, nextHop);
  const at = noted(sending, link.name, `${link.name} of ${netns.label}, a pair with ${across.link.name}`);
  return [{
    to: "receive",
    traveller: carriedBy(entering(at, world.host), across.link, DROPPED_SILENTLY),
    link: across.link,
  }];
}

/** Above one parent, links reach one another and what is outside, but not the host. */
function overParent(world: World, traveller: Traveller, link: Link, parent: LinkIn, nextHop: Uint8Array): Move[] {
  const at = entering(traveller, world.host);
  // In the modes of layer 3 an ipvlan asks no neighbour: the host routes what it sends.
  const isRouted = link.kind === "ipvlan" && (link.flags & IFF_NOARP) !== 0;
  const beside = aboveWith(world, parent.link, isRouted ? destinationOf(traveller) : nextHop);
  const shim = isRouted ? undefined : hostsLinkBeside(world, parent.link, nextHop);
  if (shim !== undefined) return [{ to: "receive", traveller: at, link: shim }];
  if (!isRouted && isAddressOf(world.host, nextHop)) {
    const text = `${kindText(link)} does not reach ${formatAddress(nextHop)} of its own host`;
    return stopped(at, { code: "macvlan-host", what: parent.link.name, text });
  }
  const down = notUp(at, parent.link);
  if (down !== undefined) return down;
  if (beside !== undefined && isRouted) {
    return [{ to: "receive", traveller: entering(traveller, beside.netns), link: beside.link }];
  }
  if (beside !== undefined) return toHolder(world, traveller, link, beside, nextHop);
  if (isRouted) return send({ ...at, nextHop: undefined }, true);
  const text = `by ${parent.link.name}, with the MAC address of ${link.name}`;
  const left = noted(traveller, parent.link.name, `leaves ${text}`);
  return [{ to: "end", traveller: left, end: { verdict: "leaves", netns: traveller.netns, text, link } }];
}

function kindText({ kind }: Link): string {
  return `${kind === "ipvlan" ? "an" : "a"} ${kind}`;
}

/** The MAC address that a container has for its next hop, where that is the host. */
function wrongNeighbour(
  world: World,
  traveller: Traveller,
  link: Link,
  across: Link,
  nextHop: Uint8Array,
): Move[] | undefined {
  const holder = world.holderOf(nextHop);
  if (holder !== undefined) return otherMac(world, traveller, link, nextHop, [holder.link.mac], holder.netns.label);
  if (!isAddressOf(world.host, nextHop)) return undefined;
  // Off its bridge, whose MAC address the container has.
  if (across.master === undefined && traveller.netns.container?.kinds.includes("bridge-port")) return undefined;
  const { mac, master } = across, { host } = world;
  const isBehind = (each: Link) =>
    each.index === master || each.master === master || pairedHere(host, each)?.master === master ||
    bridgeBelow(host, each)?.index === master;
  const right = master === undefined ? [mac] : host.links().filter(isBehind).map((each) => each.mac);
  return otherMac(world, traveller, link, nextHop, right, world.host.label);
}

/** To whom a link outside leads is not seen here. */
function away(world: World, traveller: Traveller, link: Link, nextHop: Uint8Array): Move[] {
  const { netns } = traveller;
  if (link.kind === "dummy") {
    const text = `${link.name} of ${netns.label} is a dummy: what it sends ends there`;
    return stopped(traveller, { code: "nobody-answers", what: link.name, text });
  }
  const holder = world.holderOf(nextHop), isAbove = holder !== undefined && isAcross(world, holder, link);
  if (isAbove && holder.link.kind !== "veth") {
    const text = `${netns.label} does not reach ${
      formatAddress(nextHop)
    }, a ${holder.link.kind} above its own ${link.name}`;
    return stopped(traveller, { code: "macvlan-host", what: link.name, text });
  }
  if (isUnanswered(traveller, link, nextHop)) return nobodyAnswers(traveller, link, nextHop);
  if (isAddressOf(netns, nextHop)) {
    const text = `${formatAddress(nextHop)} is ${netns.label}'s own`;
    return stopped(traveller, { code: "gateway-missing", what: link.name, text });
  }
  const astray = answerByRouter(world, traveller, link) ?? answerAstray(traveller, link);
  if (astray !== undefined) return astray;
  const inside = ledOut(world, traveller, link);
  if (inside !== undefined) return inside;
  const bare = withoutMasquerade(traveller, link);
  if (bare !== undefined) return bare;
  const text = `by ${link.name}, to ${formatAddress(nextHop)}${asPrivate(traveller)}`;
  const left = noted(traveller, link.name, `leaves ${netns.label} ${text}`);
  return [{ to: "end", traveller: left, end: { verdict: "leaves", netns, text, link } }];
}

/** To a link of a container above this one, of another subnet. */
function answerByRouter(world: World, traveller: Traveller, link: Link): Move[] | undefined {
  const above = traveller.direction === "answer" && aboveWith(world, link, destinationOf(traveller));
  if (!above) return undefined;
  const text =
    `the answer leaves by ${link.name}, and a router outside may lead it back to ${above.netns.label}, or not`;
  return stopped(traveller, { code: "answer-elsewhere", what: link.name, text }, "unknown");
}

/** To a container of this host by a link that leads out of it. A router outside may lead back to one above a link. */
function ledOut(world: World, traveller: Traveller, link: Link): Move[] | undefined {
  const { netns, direction } = traveller,
    destination = destinationOf(traveller),
    holder = world.holderOf(destination);
  if (direction === "answer" || holder === undefined || holder.netns === netns) return undefined;
  const { label } = holder.netns, whose = `${formatAddress(destination)} is ${label}'s`;
  if (holder.link.kind === "dummy") {
    const text = `${whose}, on a dummy, to which no way leads`;
    return stopped(traveller, { code: "nobody-answers", what: "route", text });
  }
  if (isBehindOvs(holder.netns)) return intoOpenVswitch(traveller, link, label);
  if (aboveWith(world, link, destination) !== undefined) return undefined;
  const text = `${whose}, on this host, and the way there leads out by ${link.name}`;
  return stopped(traveller, { code: "leads-away", what: "route", text, mend: repairOf(holder.netns) });
}

/** RFC 1918, RFC 6598, RFC 4193: whoever answers has to know a way back. */
const PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"].map((text) =>
  parsePrefix(text)!
);

function isPrivate(address: Uint8Array): boolean {
  return PRIVATE.some((prefix) => prefix.bytes.length === address.length && contains(prefix, address));
}

function asPrivate({ direction, packet, netns, tracked }: Traveller): string {
  const { source } = endsOf(packet);
  if (direction === "answer" || tracked[0]?.netns === netns || !isKnown(source)) return "";
  return isPrivate(source.value) && !isAddressOf(netns, source.value)
    ? `, as ${formatAddress(source.value)}, which nobody outside may know a way to`
    : "";
}

/** Its network masquerades, and this packet is not. */
function withoutMasquerade(traveller: Traveller, link: Link): Move[] | undefined {
  const { direction, netns, tracked, packet } = traveller, sender = tracked[0]?.netns;
  const here = tracked.find((each) => each.netns === netns);
  if (direction === "answer" || here === undefined || sender === netns) return undefined;
  if (sender?.container?.kinds.includes("masquerade") !== true) return undefined;
  const source = endsOf(packet).source;
  if (textOf(here.before.source) !== textOf(source) || !isKnown(source)) return undefined;
  // A rule of others may have taken it out on purpose: to private networks, which know the way back.
  if (traveller.steps.some(({ what, place }) => what === "postrouting" && place?.rule !== undefined)) {
    return undefined;
  }
  if (isPrivate(destinationOf(traveller))) return undefined;
  const text = `${formatAddress(source.value)} leaves as it is by ${link.name}, although its network masquerades`;
  return stopped(traveller, { code: "no-masquerade", what: link.name, text, mend: repairOf(sender) });
}
