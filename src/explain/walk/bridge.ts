/** A frame at a bridge: from one of its ports, or from the host. */
import { shell } from "../../process/shell-word.ts";
import type { Link } from "../../ffi/netlink/route/link.ts";
import { formatAddress, isSameBytes } from "../../net/address.ts";
import { textOf } from "../../net/netfilter/known-bytes.ts";
import {
  isAcross,
  isAddressOf,
  linkAt,
  type LinkIn,
  linkWith,
  type NetnsFacts,
  pairedHere,
  sysctlFor,
  type World,
} from "../facts.ts";
import { type HookPassage, throughHook } from "./hooks.ts";
import { throughNat, tracked, tracking } from "./ip.ts";
import { answerAstray, nobodyAnswers, notUp, otherMac, remembering } from "./neighbours.ts";
import { sysctlName } from "../../ffi/sysctl.ts";
import { repairOf, setSysctl } from "../remedy.ts";
import {
  carriedBy,
  destinationOf,
  DROPPED_SILENTLY,
  endsOf,
  entering,
  isSameEnds,
  leaves,
  type Move,
  noted,
  sourceOf,
  stopped,
  type Traveller,
} from "./traveller.ts";
import {
  bridgeBelow,
  type FrameOut,
  outsideVlan,
  portWithMac,
  pvidOf,
  tagAt,
  tagOfLink,
  tagRefused,
  withoutVlan,
} from "./vlans.ts";

const FORWARDING = 3, BLOCKING = 4;

/** What a port has received. */
export function fromPort(world: World, { tag, ...traveller }: Traveller, port: Link, bridge: Link): Move[] {
  const { netns, nextHop = destinationOf(traveller) } = traveller, isForHost = isAddressOf(netns, nextHop);
  const holder = isForHost ? hostsBehind(netns, nextHop, bridge) : behind(world, nextHop, bridge);
  const wanted = { vlan: holder && pvidOf(traveller, holder.port), whose: senderBehind(world, traveller, port) };
  const stop = notUp(traveller, bridge) ?? blocked(traveller, port) ??
    (tag === undefined ? withoutVlan(traveller, port, bridge, wanted) : undefined);
  if (stop !== undefined) return stop;
  const from: FrameIn = { port, by: port, vlan: tag ?? pvidOf(traveller, port) };
  const before: HookPassage = { hook: "prerouting", isBridge: true, input: port };
  return throughHook(traveller, before, (next) => {
    if (holder !== undefined) return toHolderBehind(next, from, bridge, holder);
    return isForHost ? toHost(next, from, bridge, nextHop) : toStranger(world, next, from, bridge, nextHop);
  });
}

/** Where a frame comes into a bridge: by a port, or from the host, whose link sends it. */
interface FrameIn {
  port?: Link;
  by: Link;
  vlan?: number;
}

/** By the bridge's own link, or by a VLAN link upon it. */
function toHost(traveller: Traveller, { by: port, vlan }: FrameIn, bridge: Link, nextHop: Uint8Array): Move[] {
  const { netns } = traveller, above = linkAt(netns, linkWith(netns, nextHop)!);
  const isTagged = above !== undefined && bridgeBelow(netns, above)?.index === bridge.index &&
    tagOfLink(above) === vlan;
  const link = isTagged ? above : bridge;
  const stop = isTagged
    ? tagRefused(traveller, link, bridge)
    : outsideVlan(traveller, { port: bridge, bridge, vlan });
  if (stop !== undefined) return stop;
  const text = `${link.name} has ${formatAddress(nextHop)}, and takes it from ${port.name}`;
  return throughHook(
    noted(traveller, link.name, text),
    { hook: "input", isBridge: true, input: port },
    (last) => [{ to: "receive", traveller: { ...last, port: port.index }, link }],
  );
}

/** What the host sends by its bridge, or by a VLAN link upon it. */
export function fromHost(world: World, traveller: Traveller, bridge: Link, nextHop: Uint8Array, by = bridge): Move[] {
  const holder = behind(world, nextHop, bridge), isTagged = by !== bridge;
  const stop = !isTagged
    ? withoutVlan(traveller, bridge, bridge, { vlan: holder && pvidOf(traveller, holder.port) })
    // A stranger may take the tag where the bridge does not look at it.
    : holder !== undefined || bridge.vlanFiltering
    ? tagRefused(traveller, by, bridge)
    : undefined;
  if (stop !== undefined) return stop;
  const from: FrameIn = { by, vlan: isTagged ? tagOfLink(by) : pvidOf(traveller, bridge) };
  const passage: HookPassage = { hook: "output", isBridge: true, output: bridge };
  return throughHook(traveller, passage, (next) => {
    if (holder === undefined) return toStranger(world, next, from, bridge, nextHop);
    const { netns, link } = holder.own;
    const wrong = withoutHairpin(next, holder, bridge, nextHop) ??
      otherMac(world, next, by, nextHop, [link.mac], netns.label);
    return wrong ?? toHolderBehind(remembering(next, by, nextHop), from, bridge, holder);
  });
}

interface Holder {
  own: LinkIn;
  port: Link;
}

/** Undefined when no container that is seen has the address behind this bridge. */
function behind(world: World, address: Uint8Array, bridge: Link): Holder | undefined {
  const own = world.holderOf(address), port = own && world.acrossFrom(own.netns, own.link)?.link;
  if (own === undefined || port === undefined) return undefined;
  return port.master === bridge.index ? { own, port } : undefined;
}

/** A pair of the host's own, of which one end has the address, and the other is a port: the gateway of a VLAN. */
function hostsBehind(netns: NetnsFacts, address: Uint8Array, bridge: Link): Holder | undefined {
  const link = linkAt(netns, linkWith(netns, address)!), port = link && pairedHere(netns, link);
  return link !== undefined && port?.master === bridge.index ? { own: { netns, link }, port } : undefined;
}

/** The container whose port it is, of what it sends with its own address. */
function senderBehind(world: World, traveller: Traveller, port: Link): NetnsFacts | undefined {
  const own = world.holderOf(sourceOf(traveller));
  return own && isAcross(world, own, port) ? own.netns : undefined;
}

/**
 * Undefined unless the frame would go back to its own port, and may not. What the host routes may: it is only a frame that
 * stays in the bridge where the host's rules have translated its destination there.
 */
function withoutHairpin(
  traveller: Traveller,
  { own, port }: Holder,
  bridge: Link,
  nextHop: Uint8Array,
): Move[] | undefined {
  if (traveller.port !== port.index || port.port?.hairpin === true) return undefined;
  if (!asksHost(traveller, bridge) || !isRedirected(traveller)) return undefined;
  const text = `${formatAddress(nextHop)} is ${own.netns.label}'s own, and ${port.name} has no hairpin mode`;
  const mend = [
    { run: shell`ip link set ${port.name} type bridge_slave hairpin on` },
    { advice: 'in the network\'s bridge: "hairpinMode": true' },
  ];
  return stopped(traveller, { code: "hairpin-off", what: port.name, text, mend });
}

function toHolderBehind(traveller: Traveller, from: FrameIn, bridge: Link, { own, port }: Holder): Move[] {
  return across(traveller, from.port, { port, bridge, vlan: from.vlan, whose: own.netns }, (next) => {
    const isHere = own.netns === next.netns, whose = isHere ? own.link.name : own.netns.label;
    const at = noted(next, port.name, `port of ${bridge.name}, forwarding; behind it ${whose}`);
    const narrowest = port.mtu < own.link.mtu ? port : own.link;
    const there = carriedBy(isHere ? at : entering(at, own.netns), narrowest, DROPPED_SILENTLY);
    return [{ to: "receive", traveller: there, link: own.link }];
  });
}

/**
 * Out by a port; `from`: the one by which it has come in, or undefined when the host sends it. Between two ports the host's
 * own rules may judge, too (bridge-nf-call-iptables).
 */
function across(
  traveller: Traveller,
  from: Link | undefined,
  out: FrameOut,
  onward: (traveller: Traveller) => Move[],
): Move[] {
  const { port, bridge } = out;
  const stop = isolated(traveller, from, out) ?? notUp(traveller, port) ?? blocked(traveller, port) ??
    outsideVlan(traveller, out);
  if (stop !== undefined) return stop;
  const egress = (next: Traveller) => throughHook(next, { hook: "egress", device: port.name, output: port }, onward);
  const leave = (next: Traveller) => throughHook(next, { hook: "postrouting", isBridge: true, output: port }, egress);
  if (from === undefined) return leave(traveller);
  const passage: HookPassage = { hook: "forward", isBridge: true, input: from, output: port };
  return throughHook(traveller, passage, (next) => judgedByHost(next, bridge, leave));
}

/** Undefined where frames pass from the one to the other. */
function isolated(traveller: Traveller, from: Link | undefined, { port, bridge }: FrameOut): Move[] | undefined {
  if (!from?.port?.isolated || !port.port?.isolated) return undefined;
  const text = `${from.name} and ${port.name} are isolated ports of ${bridge.name}`;
  const advice =
    'the network keeps its containers apart ("portIsolation"); otherwise somebody else does: patchbay repair';
  return stopped(traveller, { code: "port-isolated", what: bridge.name, text, mend: [{ advice }] });
}

/** Whether rules of the host judge frames of the bridge, too. */
function asksHost({ netns, packet: { family } }: Traveller, bridge: Link): boolean {
  const ofAll = netns.sysctl(`net/bridge/bridge-nf-call-ip${family === 4 ? "" : "6"}tables`) === "1";
  return ofAll || bridge.asksHostsRules?.[family] === true;
}

/** Whether this namespace has given it another destination, or an answer its first one again. */
function isRedirected({ netns, tracked, direction }: Traveller): boolean {
  const end = direction === "going" ? "destination" : "source";
  return tracked.some((each) => each.netns === netns && textOf(each.before[end]) !== textOf(each.after[end]));
}

function judgedByHost(traveller: Traveller, bridge: Link, onward: (traveller: Traveller) => Move[]): Move[] {
  if (!asksHost(traveller, bridge)) return onward(traveller);
  const begun = noted(
    tracking(traveller),
    bridge.name,
    "rules of the host judge frames of bridges, too (br_netfilter)",
  );
  return throughNat(begun, { hook: "prerouting", input: bridge }, (next) => {
    if (next.direction === "going" && !isSameEnds(endsOf(next.packet), endsOf(begun.packet))) {
      const text = "its destination is translated while it passes the bridge";
      return stopped(next, { code: "undecided", what: bridge.name, text }, "unknown");
    }
    return throughHook(
      next,
      { hook: "forward", input: bridge, output: bridge },
      (passed) => throughNat(passed, { hook: "postrouting", output: bridge }, (last) => onward(tracked(last))),
    );
  });
}

/** Whether it is known who is behind: a container, or the host itself by a pair of its own. */
function isEndKnown(world: World, netns: NetnsFacts, port: Link): boolean {
  const pair = pairedHere(netns, port);
  return world.endOf(port) !== undefined || (pair !== undefined && pair.master === undefined);
}

/** Whether everybody behind the bridge is known, and the host answers for nobody else. */
function isClosed(world: World, { netns }: Traveller, bridge: Link): boolean {
  const ports = netns.links().filter(({ master }) => master === bridge.index);
  return sysctlFor(netns, bridge, "proxy_arp") === 0 && ports.every((port) => isEndKnown(world, netns, port));
}

/** Nobody here has the address: another machine behind a port may. */
function toStranger(world: World, traveller: Traveller, from: FrameIn, bridge: Link, nextHop: Uint8Array): Move[] {
  const { netns } = traveller, isOfHost = from.port === undefined, { by, vlan } = from;
  const asker = isOfHost ? by : bridge;
  const mac = (isOfHost ? undefined : traveller.receiver) ?? netns.neighbour(asker, nextHop)?.mac;
  const port = mac === undefined ? undefined : portWithMac(traveller, bridge, mac, vlan);
  if (port !== undefined && !isEndKnown(world, netns, port)) {
    const link = isOfHost ? by : port, astray = answerAstray(traveller, link);
    if (astray !== undefined) return astray;
    const beyond = port.kind === "veth" ? ", whose other end is not seen here" : "";
    const text = `by ${port.name}, a port of ${bridge.name}${beyond}`;
    const out: FrameOut = { port, bridge, vlan, takesTags: true };
    const tag = isOfHost ? undefined : tagAt(traveller, out);
    return across(traveller, from.port, out, (last) => leaves({ ...last, tag }, port, text, link));
  }
  const sender = traveller.tracked[0]?.netns;
  const isGateway = !isOfHost && !isSameBytes(nextHop, destinationOf(traveller));
  if (isGateway && sender !== undefined && isClosed(world, traveller, bridge)) {
    const text = `nobody behind ${bridge.name} has the gateway's address ${formatAddress(nextHop)}`;
    const off = `net/ipv6/conf/${bridge.name}/disable_ipv6`,
      isOff = nextHop.length === 16 && netns.sysctl(off) === "1";
    const mend = isOff ? [setSysctl(netns, sysctlName(off), 0), ...repairOf(sender)] : repairOf(sender);
    return stopped(traveller, { code: "gateway-missing", what: bridge.name, text, mend });
  }
  return nobodyAnswers(traveller, asker, nextHop);
}

/** Undefined when frames pass. The state of a port that is down is told by the link. */
function blocked(traveller: Traveller, { name, port }: Link): Move[] | undefined {
  if (port === undefined || port.state === FORWARDING) return undefined;
  const states = ["disabled", "listening", "learning", "forwarding", "blocking"];
  const text = `${name} is ${states[port.state] ?? `in state ${port.state}`}, as ports of bridges go`;
  const run = shell`ip link set ${name} type bridge_slave state ${String(FORWARDING)}`;
  const advice = "where the bridge has STP, it decides: a port forwards twice the forward_delay after it has come up";
  const mend = port.state === BLOCKING ? [{ advice }] : [{ run }, { advice }];
  return stopped(traveller, { code: "port-blocked", what: name, text, mend });
}
