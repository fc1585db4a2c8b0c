/** A packet that a link sends: to the other end of a pair, behind a bridge, or away from here. */
import type { Link } from "../../ffi/netlink/route/link.ts";
import { macvlan } from "../../ffi/netlink/route/link-kinds.ts";
import { contains, formatAddress, isSameBytes, parsePrefix } from "../../net/address.ts";
import { isAddressOf, isLoopback, linkAt, type LinkIn, type NetnsFacts, sysctlFor, type World } from "../facts.ts";
import { fromHost } from "./bridge.ts";
import { throughHook } from "./hooks.ts";
import {
  answerAstray,
  askSwitch,
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
import { localnetOff, LOOPBACK_NET } from "./routing.ts";
import { repairOf } from "../remedy.ts";
import {
  carriedBy,
  destinationOf,
  DROPPED_SILENTLY,
  endsOf,
  entering,
  leaves,
  type Move,
  noted,
  sourceOf,
  stopped,
  type Traveller,
} from "./traveller.ts";

export function transmit(world: World, traveller: Traveller, link: Link): Move[] {
  const down = parentDown(world, traveller, link) ?? notUp(traveller, link);
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

/** Why a link above one of the host's has no carrier. */
function parentDown(world: World, traveller: Traveller, link: Link): Move[] | undefined {
  if (!link.up || link.hasCarrier || link.kind === "veth") return undefined;
  const parent = world.acrossFrom(traveller.netns, link)?.link;
  return parent && notUp(entering(traveller, world.host), parent);
}

function fromLoopback(traveller: Traveller, link: Link): Move[] | undefined {
  const source = sourceOf(traveller), { netns } = traveller;
  if (source.length !== 4 || source[0] !== LOOPBACK_NET) return undefined;
  return sysctlFor(netns, link, "route_localnet") === 1 ? undefined : localnetOff(traveller, link);
}

function onward(world: World, traveller: Traveller, link: Link): Move[] {
  const { netns, nextHop = destinationOf(traveller) } = traveller;
  if (netns !== world.host) return fromContainer(world, traveller, link, nextHop);
  if (link.kind === "bridge") return fromHost(world, traveller, link, nextHop);
  if (link.kind === "macvlan" || link.kind === "veth") {
    const holder = holderAcross(world, nextHop, link.kind === "veth" ? link.index : link.link);
    if (holder !== undefined) return toHolder(world, traveller, link, holder, nextHop);
  }
  if (link.kind === "veth" && world.endOf(link) !== undefined) return nobodyAnswers(traveller, link, nextHop);
  return away(world, traveller, link, nextHop);
}

/** The container that has the address on the other end of this link of the host, or above it. */
function holderAcross(world: World, address: Uint8Array, index: number | undefined): LinkIn | undefined {
  const holder = world.holderOf(address);
  return holder && world.acrossFrom(holder.netns, holder.link)?.link.index === index ? holder : undefined;
}

/** A macvlan of the host's own above the same parent. */
function hostsLinkBeside({ host }: World, parent: Link, address: Uint8Array): Link | undefined {
  const at = host.addresses().find(({ bytes }) => isSameBytes(bytes, address))?.linkIndex;
  return host.links().find(({ index, kind, link }) => index === at && kind === "macvlan" && link === parent.index);
}

function fromContainer(world: World, traveller: Traveller, link: Link, nextHop: Uint8Array): Move[] {
  const { netns } = traveller, across = world.acrossFrom(netns, link);
  if (across === undefined) return away(world, traveller, link, nextHop);
  if (link.kind === "macvlan" || link.kind === "ipvlan") return overParent(world, traveller, link, across, nextHop);
  if (link.kind !== "veth") return away(world, traveller, link, nextHop);
  const wrong = wrongNeighbour(world, traveller, link, across.link, nextHop);
  if (wrong !== undefined) return wrong;
  const sending = remembering(traveller, link, nextHop);
  const at = noted(sending, link.name, `${link.name} of ${netns.label}, a pair with ${across.link.name}`);
  const receiver = netns.neighbour(link, nextHop)?.mac;
  const sent = { ...entering(at, world.host), receiver };
  return [{ to: "receive", traveller: carriedBy(sent, across.link, DROPPED_SILENTLY), link: across.link }];
}

/** Above one parent, links reach one another and what is outside, but not the host. */
function overParent(world: World, traveller: Traveller, link: Link, parent: LinkIn, nextHop: Uint8Array): Move[] {
  const at = entering(traveller, world.host);
  const shim = hostsLinkBeside(world, parent.link, nextHop);
  if (shim !== undefined) {
    return apartByMode(at, parent.link, [link, shim]) ?? [{ to: "receive", traveller: at, link: shim }];
  }
  if (isAddressOf(world.host, nextHop)) {
    const text = `a ${link.kind} does not reach ${formatAddress(nextHop)} of its own host`;
    return stopped(at, { code: "macvlan-host", what: parent.link.name, text });
  }
  const down = notUp(at, parent.link);
  if (down !== undefined) return down;
  const beside = holderAcross(world, nextHop, parent.link.index);
  if (beside !== undefined) {
    return apartByMode(traveller, parent.link, [link, beside.link]) ??
      toHolder(world, traveller, link, beside, nextHop);
  }
  return leaves(traveller, parent.link, `by ${parent.link.name}, with the MAC address of ${link.name}`, link);
}

/** Undefined where the kernel itself takes the frame from one macvlan to the other. */
function apartByMode(traveller: Traveller, parent: Link, links: readonly Link[]): Move[] | undefined {
  const other = links.map(({ kind, kindData }) => kind === "macvlan" && kindData && macvlan.settings(kindData).mode)
    .find((mode) => mode && mode !== "bridge");
  if (!other) return undefined;
  const what = parent.name;
  return other === "vepa"
    ? stopped(
      traveller,
      { code: "other-switch", what, text: `the mode vepa leaves it to the switch behind ${what}` },
      "unknown",
    )
    : stopped(traveller, {
      code: "kept-apart",
      what,
      text: `the mode ${other} of macvlan keeps links above ${what} apart`,
    });
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
  const { mac, master } = across, links = world.host.links();
  const right = world.isSwitched(across)
    ? links.filter(({ index }) => hasAddress(world.host, index, nextHop)).map((each) => each.mac)
    : master === undefined
    ? [mac]
    : links.filter((each) => each.index === master || each.master === master).map((each) => each.mac);
  return otherMac(world, traveller, link, nextHop, right, world.host.label);
}

function hasAddress(netns: NetnsFacts, index: number, address: Uint8Array): boolean {
  return netns.addresses().some(({ linkIndex, bytes }) => linkIndex === index && isSameBytes(bytes, address));
}

/** An internal port of Open vSwitch, or a VLAN of one; in userspace, the kernel knows it for a tap. */
function mayBeOfSwitch(host: NetnsFacts, link: Link): boolean {
  const { kind } = (link.kind === "vlan" && link.link && linkAt(host, link.link)) || link;
  return kind === "openvswitch" || kind === "tun";
}

/** To whom a link outside leads is not seen here. */
function away(world: World, traveller: Traveller, link: Link, nextHop: Uint8Array): Move[] {
  const { netns } = traveller;
  if (isUnanswered(traveller, link, nextHop)) return nobodyAnswers(traveller, link, nextHop);
  if (isAddressOf(netns, nextHop)) {
    const text = `${formatAddress(nextHop)} is ${netns.label}'s own`;
    return stopped(traveller, { code: "gateway-missing", what: link.name, text });
  }
  const astray = answerAstray(traveller, link);
  if (astray !== undefined) return astray;
  const holder = traveller.direction === "going" ? world.holderOf(destinationOf(traveller)) : undefined;
  if (holder !== undefined && holder.netns !== netns) {
    const own = world.acrossFrom(holder.netns, holder.link)?.link;
    if (own?.index === link.index && holder.link.kind !== "veth") {
      const text = `${netns.label} does not reach a ${holder.link.kind} above its own ${link.name}`;
      return stopped(traveller, { code: "macvlan-host", what: link.name, text });
    }
    const { label } = holder.netns, whose = `${formatAddress(destinationOf(traveller))} is ${label}'s, on this host`;
    const isSwitched = own !== undefined && world.isSwitched(own);
    if (isSwitched && netns === world.host && mayBeOfSwitch(netns, link)) {
      const text = `${whose}; whether ${link.name} leads there, flows of Open vSwitch decide`;
      return stopped(traveller, { code: "other-switch", what: link.name, text, mend: askSwitch(link) }, "unknown");
    }
    const text = `${whose}, and the way there leads out by ${link.name}`;
    const mend = isSwitched
      ? [{ advice: "the host's own port of Open vSwitch in the container's VLAN is down, or has no address" }]
      : repairOf(holder.netns);
    return stopped(traveller, { code: "leads-away", what: "route", text, mend });
  }
  const bare = withoutMasquerade(traveller, link);
  if (bare !== undefined) return bare;
  return leaves(traveller, link, `by ${link.name}, to ${formatAddress(nextHop)}${asPrivate(traveller)}`);
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

/** Kinds of resources with which a network masquerades. From an internal network of podman nothing comes so far. */
const MASQUERADING = ["masquerade", "network-rules", "firewalld-network"];

/** Its network masquerades, and this packet is not. */
function withoutMasquerade(traveller: Traveller, link: Link): Move[] | undefined {
  const { direction, netns, tracked, packet } = traveller, sender = tracked[0]?.netns;
  const here = tracked.find((each) => each.netns === netns);
  if (direction === "answer" || here === undefined || sender === netns) return undefined;
  if (sender?.container?.kinds.some((kind) => MASQUERADING.includes(kind)) !== true) return undefined;
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
