/**
 * What is known of one network namespace, as plain data. Each fact is asked when the walk comes to it, and once, so that a
 * recorded host is judged as the real one is.
 */
import type { ListeningSocket } from "../ffi/netlink/diag/listening.ts";
import type { LinkAddress } from "../ffi/netlink/route/address.ts";
import type { VlanRange } from "../ffi/netlink/route/bridge.ts";
import type { Link } from "../ffi/netlink/route/link.ts";
import type { Neighbour } from "../ffi/netlink/route/neighbour.ts";
import type { RouteAnswer, RouteQuestion } from "../ffi/netlink/route/route-question.ts";
import type { RulesOfOthers } from "../ffi/netlink/route/rule.ts";
import { IFF_LOOPBACK } from "../ffi/netlink/uapi/if-link.ts";
import { formatAddress, isSameBytes, type Prefix } from "../net/address.ts";
import type { Ruleset } from "../net/netfilter/ruleset.ts";

export interface NetnsFacts {
  /** For people: `this host`, or a container's name. */
  readonly label: string;
  /** Undefined for this host. */
  readonly container?: ContainerName;
  links(): readonly Link[];
  /** The number by which its links name another namespace. */
  netnsId(netnsFd: number): number | undefined;
  addresses(): readonly LinkAddress[];
  route(question: RouteQuestion): RouteAnswer;
  /** The address with which the kernel sends by the link, when a program has chosen none. */
  sourceFor(destination: Uint8Array, link: Pick<Link, "index">): Uint8Array | undefined;
  /** What routing rules beside the kernel's own ask of packets; undefined where there are none. */
  routingRules(family: 4 | 6): RulesOfOthers | undefined;
  /** How many neighbours the namespace has. */
  neighbours(family: 4 | 6): number;
  neighbour(link: Link, address: Uint8Array): Neighbour | undefined;
  /** The port of a bridge behind which it has seen the MAC address; `vlan`: where it filters VLANs. */
  portBehind(bridge: Link, mac: string, vlan?: number): number | undefined;
  /** Links on which filters of tc see what comes in, or leaves. */
  filtered(): ReadonlySet<number>;
  vlansOf(port: Link): readonly VlanRange[];
  /** Undefined when rules never stood still while they were read, or cannot be read. */
  rules(): Ruleset | undefined;
  sysctl(key: string): string | undefined;
  listening(family: 4 | 6, protocol: number): readonly ListeningSocket[];
}

export interface ContainerName {
  netnsPath: string;
  /** What a person types to name it. */
  operand: string;
  /** One for each of its networks. */
  attached: readonly GivenByNetwork[];
}

export interface GivenByNetwork {
  network: string;
  ifName: string;
  /** The host's links that were made for it. */
  hostLinks: readonly string[];
  addresses: readonly string[];
  /** The kinds of resources that were made. */
  kinds: readonly string[];
  /** Where its network gave it routes to; undefined where no record says. */
  routes?: readonly Prefix[];
  /** The bridge, where its network is internal. */
  closed?: string;
}

/** For which of its networks the host's link was made. */
export function attachedBy({ container }: NetnsFacts, { name }: Link): GivenByNetwork | undefined {
  return container?.attached.find(({ hostLinks }) => hostLinks.includes(name));
}

/** Which of its networks has given it the address. */
export function attachedWith({ container }: NetnsFacts, address: Uint8Array): GivenByNetwork | undefined {
  const text = formatAddress(address);
  return container?.attached.find(({ addresses }) => addresses.includes(text));
}

/** The namespaces of a host, and what connects them. */
export interface World {
  readonly host: NetnsFacts;
  /** The end of a pair in the other namespace, or a container's link above a link of the host. */
  acrossFrom(netns: NetnsFacts, link: Link): LinkIn | undefined;
  /** The container to which a port of the host should lead; `at`: only at this address. */
  publisherOf(port: number, protocol: string, asked: string): { netns: NetnsFacts; at?: string } | undefined;
  /** The container for which the host's link was made, as people name it; undefined for others. */
  endOf(link: Link): string | undefined;
  /** Whether the host's link was made as a port of Open vSwitch, which in userspace the kernel does not tell. */
  isSwitched(link: Link): boolean;
  /** The container that has the address, and its link. */
  holderOf(address: Uint8Array): LinkIn | undefined;
}

export interface LinkIn {
  netns: NetnsFacts;
  link: Link;
}

export function linkAt(netns: NetnsFacts, index: number): Link | undefined {
  return netns.links().find((link) => link.index === index);
}

export function isAddressOf(netns: NetnsFacts, address: Uint8Array): boolean {
  return linkWith(netns, address) !== undefined;
}

/** The link that has the address. */
export function linkWith(netns: NetnsFacts, address: Uint8Array): number | undefined {
  return netns.addresses().find(({ bytes }) => isSameBytes(bytes, address))?.linkIndex;
}

/** The other end of a pair of which this namespace has both. */
export function pairedHere(netns: NetnsFacts, { kind, index, link, linkNetnsId }: Link): Link | undefined {
  const other = kind === "veth" && link !== undefined && linkNetnsId === undefined ? linkAt(netns, link) : undefined;
  return other?.kind === "veth" && other.link === index ? other : undefined;
}

/** Whether a container's link is the other end of the host's, or above it. */
export function isAcross(world: World, { netns, link }: LinkIn, { index }: Link): boolean {
  return world.acrossFrom(netns, link)?.link.index === index;
}

/** The container's link above the host's, such as a macvlan, that has the address. */
export function aboveWith(world: World, link: Link, address: Uint8Array): LinkIn | undefined {
  const holder = world.holderOf(address);
  return holder !== undefined && holder.link.kind !== "veth" && isAcross(world, holder, link) ? holder : undefined;
}

/** For IPv4. The larger of two values counts: the one of the link, and the one of all links. */
export function sysctlFor(netns: NetnsFacts, { name }: Link, key: string): number {
  return Math.max(...["all", name].map((each) => Number(netns.sysctl(`net/ipv4/conf/${each}/${key}`) ?? 0)));
}

/** On one link, or on all. */
export function globalAddresses(netns: NetnsFacts, family: 4 | 6, link?: number): LinkAddress[] {
  return netns.addresses().filter(({ linkIndex, bytes, scope }) =>
    scope === 0 && (bytes.length === 4) === (family === 4) && (link === undefined || linkIndex === link)
  );
}

/** Whatever its name: root of a container may call another link so. */
export function isLoopback({ flags }: Link): boolean {
  return (flags & IFF_LOOPBACK) !== 0;
}
