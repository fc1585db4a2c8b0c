/** A packet that leaves what is seen here, or should not. */
import type { Link } from "../../ffi/netlink/route/link.ts";
import { contains, formatAddress, parsePrefix } from "../../net/address.ts";
import { aboveWith, attachedWith, isAcross, isAddressOf, type World } from "../facts.ts";
import { isKnown, textOf } from "../../net/netfilter/known-bytes.ts";
import { answerAstray, isUnanswered, nobodyAnswers } from "./neighbours.ts";
import { intoOpenVswitch, isPortOfOpenVswitch } from "./other-switch.ts";
import { repairOf } from "../remedy.ts";
import { destinationOf, endsOf, leaves, type Move, stopped, type Traveller } from "./traveller.ts";

/** To whom a link outside leads is not seen here. */
export function away(world: World, traveller: Traveller, link: Link, nextHop: Uint8Array): Move[] {
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
  return leaves(traveller, link, `by ${link.name}, to ${formatAddress(nextHop)}${asPrivate(traveller)}`);
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
  const whose = `${formatAddress(destination)} is ${holder.netns.label}'s`;
  if (holder.link.kind === "dummy") {
    const text = `${whose}, on a dummy, to which no way leads`;
    return stopped(traveller, { code: "nobody-answers", what: "route", text });
  }
  if (aboveWith(world, link, destination) !== undefined) return undefined;
  const here = `${whose}, on this host`, port = world.acrossFrom(holder.netns, holder.link)?.link;
  const isSwitched = port !== undefined && isPortOfOpenVswitch(world, world.host, port);
  const into = isSwitched && netns === world.host ? intoOpenVswitch(traveller, link, here) : undefined;
  if (into !== undefined) return into;
  const text = `${here}, and the way there leads out by ${link.name}`;
  const mend = isSwitched
    ? [{ advice: "the host's own port of Open vSwitch in the container's VLAN is down, or has no address" }]
    : repairOf(holder.netns);
  return stopped(traveller, { code: "leads-away", what: "route", text, mend });
}

/** RFC 1918, RFC 6598, RFC 4193: whoever answers has to know a way back. */
const PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"].map((text) =>
  parsePrefix(text)!
);

function isPrivate(address: Uint8Array): boolean {
  return PRIVATE.some((prefix) => prefix.bytes.length === address.length && contains(prefix, address));
}

function asPrivate({ direction, packet, netns, tracked }: Traveller): string {
  const { source } = endsOf(packet), here = tracked.find((each) => each.netns === netns);
  if (direction === "answer" || tracked[0]?.netns === netns || !isKnown(source)) return "";
  if (isAddressOf(netns, source.value)) return "";
  const isOther = here !== undefined && textOf(here.before.source) !== textOf(source);
  return isPrivate(source.value) || isOther
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
  const source = endsOf(packet).source;
  if (sender === undefined || textOf(here.before.source) !== textOf(source) || !isKnown(source)) return undefined;
  const attached = attachedWith(sender, source.value);
  if (attached?.kinds.some((kind) => MASQUERADING.includes(kind)) !== true) return undefined;
  // A rule of others may have taken it out on purpose: to private networks, which know the way back.
  if (traveller.steps.some(({ what, place }) => what === "postrouting" && place?.rule !== undefined)) {
    return undefined;
  }
  if (isPrivate(destinationOf(traveller))) return undefined;
  const text = `${formatAddress(source.value)} leaves as it is by ${link.name}, although its network masquerades`;
  return stopped(traveller, { code: "no-masquerade", what: link.name, text, mend: repairOf(sender) });
}
