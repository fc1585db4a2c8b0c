/** Who sends to whom, as a person asks it, and where the walk begins. */
import { gistOf, type KnownAttachment } from "../engine/operator/known-attachment.ts";
import { RTN_LOCAL } from "../ffi/netlink/uapi/rtnetlink.ts";
import { formatAddress, isV6, parseAddress } from "../net/address.ts";
import { ICMP, ICMPV6, TCP, UDP } from "../net/ip-protocol.ts";
import { isAddressOf, linkAt, type NetnsFacts, type World } from "./facts.ts";
import type { AskedFlow, Origin } from "./walk/walk.ts";
import { strangerOf } from "./walk/traveller.ts";

export type Party =
  | { is: "container"; attachment: KnownAttachment; label: string }
  /** `by`: the link of the host by which its packets come, where that is not the one of the route to it. */
  | { is: "address"; bytes: Uint8Array; by?: string }
  | { is: "outside"; by?: string }
  | { is: "host" };

export interface Question {
  from: Party;
  to: Party;
  /** A number of IP. */
  protocol: number;
  port?: number;
  family: 4 | 6;
}

const PROTOCOLS = { tcp: TCP, udp: UDP, icmp: ICMP } as const;
type ProtocolName = keyof typeof PROTOCOLS;

/** `tcp`, `udp/53`; undefined for other text. */
export function protocolNamed(text: string): { protocol: ProtocolName; port?: number } | undefined {
  const [, name, port] = /^(tcp|udp|icmp)(?:\/([0-9]{1,5}))?$/.exec(text.toLowerCase()) ?? [];
  if (name === undefined || !isPort(Number(port ?? 1))) return undefined;
  if (name === "icmp" && port !== undefined) return undefined;
  return { protocol: name as ProtocolName, port: port === undefined ? undefined : Number(port) };
}

export function protocolNumber(name: ProtocolName, family: 4 | 6): number {
  return name === "icmp" && family === 6 ? ICMPV6 : PROTOCOLS[name];
}

export function protocolText({ protocol, port }: Pick<Question, "protocol" | "port">): string {
  const name = protocol === TCP ? "tcp" : protocol === UDP ? "udp" : "icmp";
  return port === undefined ? name : `${name}/${port}`;
}

/** `host:8080`, `[fd00::1]:53`, or a name alone. */
export function nameAndPort(text: string): { name: string; port?: number } {
  const [, name = text, port] = /^(?:\[([^\]]+)\]|([^:]+)):([0-9]{1,5})$/.exec(text)?.filter((each) => each) ?? [];
  return port === undefined ? { name } : { name, port: Number(port) };
}

/** An address, or a word; undefined when it is a container's name. `outside@eth1` comes by that link. */
export function partyNamed(text: string): Party | undefined {
  const [, name = text, by] = /^(.+)@([^@]+)$/.exec(text) ?? [];
  if (text === "host") return { is: "host" };
  if (name === "outside") return { is: "outside", by };
  const bytes = parseAddress(name);
  return bytes && { is: "address", bytes, by };
}

export function isPort(port: number): boolean {
  return port >= 1 && port <= 65535;
}

export interface Asked {
  origin: Origin;
  flow: AskedFlow;
}

/** Where nothing can be walked, the reason. */
export function asked(world: World & NetnsOf, question: Question): Asked | { reason: string } {
  const { from, to, family } = question;
  const origin = originOf(world, from, family);
  if ("reason" in origin) return origin;
  const destination = destinationFor(world, to, origin, family);
  if (destination === undefined && to.is !== "outside") {
    return { reason: `${partyText(to)} has no address of IPv${family}` };
  }
  const { protocol, port } = question, ends = { destination, destinationPort: port, protocol, family };
  return { origin, flow: { ...ends, source: from.is === "address" ? from.bytes : undefined } };
}

interface NetnsOf {
  netnsOf(attachment: KnownAttachment): NetnsFacts | undefined;
}

/** What comes from outside comes in by the link that leads there. */
function originOf(world: World & NetnsOf, from: Party, family: 4 | 6): Origin | { reason: string } {
  if (from.is === "host") return { netns: world.host };
  if (from.is === "container") {
    const netns = world.netnsOf(from.attachment);
    return netns === undefined
      ? { reason: `the network namespace of ${from.label} is gone, or not seen here` }
      : { netns };
  }
  if (from.by !== undefined) {
    const input = world.host.links().find(({ name }) => name === from.by);
    return input === undefined ? { reason: `this host has no link ${from.by}` } : { netns: world.host, input };
  }
  const sender = from.is === "address" ? from.bytes : strangerOf(family);
  const holder = world.holderOf(sender);
  if (holder !== undefined) return { netns: holder.netns };
  const route = world.host.route({ destination: sender });
  if (!("errno" in route) && route.type === RTN_LOCAL) return { netns: world.host };
  const input = "errno" in route ? undefined : linkAt(world.host, route.hops?.[0]?.oif ?? route.oif);
  return input === undefined
    ? { reason: `this host has no route to ${partyText(from)}, so nothing comes from there` }
    : { netns: world.host, input };
}

/** Whether this host has a way to where strangers are. */
export function comesFromOutside(world: World & NetnsOf, family: 4 | 6): boolean {
  return !("reason" in originOf(world, { is: "outside" }, family));
}

function destinationFor(world: World & NetnsOf, to: Party, origin: Origin, family: 4 | 6): Uint8Array | undefined {
  if (to.is === "address") return to.bytes;
  if (to.is === "outside") return undefined;
  if (to.is === "container") {
    const netns = world.netnsOf(to.attachment);
    return netns && addressOf(netns, to.attachment.ifName, family);
  }
  return hostsAddress(world, origin, family);
}

/** The host's address that the sender is nearest to: its gateway, where that is the host's. */
function hostsAddress({ host }: World, { netns, input }: Origin, family: 4 | 6): Uint8Array | undefined {
  const own = (link?: number) =>
    host.addresses().find(({ linkIndex, bytes, scope }) =>
      bytes.length === strangerOf(family).length && scope === 0 && (link === undefined || linkIndex === link)
    )?.bytes;
  if (netns === host) return own(input?.index) ?? own();
  const out = netns.route({ destination: strangerOf(family) }), gateway = "errno" in out ? undefined : out.gateway;
  return gateway && isAddressOf(host, gateway) ? gateway : own();
}

function addressOf(netns: NetnsFacts, ifName: string, family: 4 | 6): Uint8Array | undefined {
  const link = netns.links().find(({ name }) => name === ifName)?.index, length = strangerOf(family).length;
  return netns.addresses().find(({ linkIndex, bytes, scope }) =>
    linkIndex === link && bytes.length === length && scope === 0
  )?.bytes;
}

export function partyText(party: Party): string {
  if (party.is === "container") return party.label;
  if (party.is === "host") return party.is;
  const who = party.is === "address" ? formatAddress(party.bytes) : party.is;
  return party.by === undefined ? who : `${who}@${party.by}`;
}

/** An end that is an address says it; otherwise IPv4, unless a container has none. */
export function familyFor(from: Party, to: Party): 4 | 6 {
  const isV4Address = (text: string) => !isV6(text.split("/")[0]!);
  const without4 = [from, to].some((each) =>
    each.is === "address"
      ? each.bytes.length !== 4
      : each.is === "container" && !gistOf(each.attachment).addresses.some(isV4Address)
  );
  return without4 ? 6 : 4;
}
