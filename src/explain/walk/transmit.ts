/** A packet that a link sends: to the other end of a pair, behind a bridge, above a parent, or away from here. */
import type { Link } from "../../ffi/netlink/route/link.ts";
import { isSameBytes } from "../../net/address.ts";
import { attachedBy, isAcross, isAddressOf, isLoopback, pairedHere, sysctlFor, type World } from "../facts.ts";
import { away } from "./away.ts";
import { fromHost } from "./bridge.ts";
import { throughHook } from "./hooks.ts";
import { byProgram, nobodyAnswers, notUp, otherMac, remembering, toHolder } from "./neighbours.ts";
import { framed } from "../../net/netfilter/packet.ts";
import { isPortOfOpenVswitch } from "./other-switch.ts";
import { besideContainer, isAboveParent, overParent } from "./over-parent.ts";
import { localnetOff, LOOPBACK_NET } from "./routing.ts";
import {
  carriedBy,
  destinationOf,
  DROPPED_SILENTLY,
  entering,
  type Move,
  noted,
  sourceOf,
  type Traveller,
} from "./traveller.ts";
import { bridgeBelow } from "./vlans.ts";

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
  const below = bridgeBelow(netns, link), port = pairedHere(netns, link);
  if (below !== undefined) return fromHost(world, traveller, below, nextHop, link);
  if (port?.master !== undefined) return intoOwnPort(world, traveller, link, port, nextHop);
  const beside = besideContainer(world, traveller, link, nextHop);
  if (beside !== undefined) return beside;
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
  const receiver = traveller.netns.neighbour(link, nextHop)?.mac;
  const at = noted({ ...remembering(traveller, link, nextHop), receiver }, link.name, `a pair with ${port.name}`);
  return [{ to: "receive", traveller: carriedBy(at, port, DROPPED_SILENTLY), link: port }];
}

function fromContainer(world: World, traveller: Traveller, link: Link, nextHop: Uint8Array): Move[] {
  const { netns } = traveller, across = world.acrossFrom(netns, link);
  // Its other end is in a namespace that is not looked at, such as one that root of the container has made.
  if (across === undefined && link.kind === "veth") return nobodyAnswers(traveller, link, nextHop);
  if (across === undefined) return away(world, traveller, link, nextHop);
  if (isAboveParent(link)) return overParent(world, traveller, link, across, nextHop);
  if (link.kind !== "veth") return away(world, traveller, link, nextHop);
  const wrong = wrongNeighbour(world, traveller, link, across.link, nextHop);
  if (wrong !== undefined) return wrong;
  const sending = remembering(traveller, link, nextHop);
  const at = noted(sending, link.name, `${link.name} of ${netns.label}, a pair with ${across.link.name}`);
  const receiver = netns.neighbour(link, nextHop)?.mac;
  const sent = { ...entering(at, world.host), receiver };
  return [{ to: "receive", traveller: carriedBy(sent, across.link, DROPPED_SILENTLY), link: across.link }];
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
  if (across.master === undefined && attachedBy(traveller.netns, across)?.kinds.includes("bridge-port")) {
    return undefined;
  }
  const right = behindPort(world, across, nextHop).map(({ mac }) => mac);
  return otherMac(world, traveller, link, nextHop, right, world.host.label);
}

/** The host's links that may have the address, as a container sees it by this end of its pair. */
function behindPort(world: World, across: Link, address: Uint8Array): Link[] {
  const { host } = world, links = host.links(), { master } = across;
  if (isPortOfOpenVswitch(world, host, across)) {
    const having = host.addresses().filter(({ bytes }) => isSameBytes(bytes, address)).map((each) => each.linkIndex);
    return links.filter(({ index }) => having.includes(index));
  }
  if (master === undefined) return [across];
  return links.filter((each) =>
    each.index === master || each.index === across.index || pairedHere(host, each)?.master === master ||
    bridgeBelow(host, each)?.index === master
  );
}
