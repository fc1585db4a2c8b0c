/**
 * The host's link by which a container's packets come and go: what an ingress policy guards.
 *
 * It is where the host's route to the container's addresses leads, if the links that the result names have to do with it:
 * a bridge, the gateway link of a VLAN of that bridge, the host's end of the container's own pair. A default route by the
 * uplink is no such route. Where the host has none, as behind a bridge without a gateway, packets that the container sends
 * to the host's own MAC address still come in by the bridge, so that is the link.
 */
import { CniError, INVALID_CONFIG } from "../../../cni/error.ts";
import type { Result } from "../../../cni/result.ts";
import type { Host } from "../../../contract/host.ts";
import type { Attachment } from "../../../contract/plugin.ts";
import { getLink, type Link } from "../../../ffi/netlink/route/link.ts";
import { linkTowards } from "../../../ffi/netlink/route/route-lookup.ts";
import { parseAddress } from "../../../net/address.ts";
import { datapathOf } from "../../shared/datapath.ts";

export interface GuardedLink {
  /** The kernel's own name of it. */
  name: string;
  /** It is one container's alone, and goes with it. */
  isOwn: boolean;
}

export type HostAndPlan = Pick<Attachment<unknown>, "host" | "plannedBefore">;

/** Undefined where none is known. Throws a CniError of code 7 where a policy has no effect. */
export function guardedLink(
  policy: string,
  addresses: readonly string[],
  named: Result,
  at: HostAndPlan,
): GuardedLink | undefined {
  const { host } = at, outside = linksOutside(named, host), found = routedLinks(addresses, outside, host);
  if (found.length > 1) {
    const names = found.map(({ name }) => name).join(" and ");
    throw refused(
      policy,
      `packets of ${textOf(addresses)} come and go by ${names}`,
      "give the container addresses behind one link",
    );
  }
  const link = found[0] ?? outside.find(({ kind }) => kind === "bridge") ?? outside.find(isOwn);
  if (link === undefined || link.kind === "veth") {
    refuseSwitch(policy, outside.filter(({ kind }) => kind === "veth"), at);
  }
  if (link === undefined) return undefined;
  if (link.master !== undefined) {
    const master = getLink(host.route, link.master)?.name ?? `link ${link.master}`;
    throw refused(
      policy,
      `${link.name} is part of ${master}, so packets of ${textOf(addresses)} come in by ${master}`,
      `take ${link.name} out of ${master}, or leave "ingressPolicy" out`,
    );
  }
  return { name: link.name, isOwn: isOwn(link) };
}

/** The error where `guardedLink` knows none. */
export function noLink(policy: string, addresses: readonly string[]): CniError {
  return refused(
    policy,
    `no link of this host is known by which packets of ${textOf(addresses)} come and go`,
    'use it behind "bridge" or "ptp"; behind this plugin leave it out, and keep networks apart where their packets meet',
  );
}

function textOf(addresses: readonly string[]): string {
  return addresses.length === 0 ? "the container" : addresses.join(" and ");
}

/**
 * For `plan`: the link that an earlier plugin of the chain would make, if it is not there yet. Behind the container's link
 * there is the gateway link of its VLAN.
 */
export function foreseenLink(policy: string, { interfaces = [] }: Result, at: HostAndPlan): GuardedLink | undefined {
  const inside = interfaces.findIndex(({ sandbox }) => sandbox),
    outside = interfaces.filter(({ sandbox }) => !sandbox);
  const link = outside.find((one) => interfaces.indexOf(one) > inside) ?? outside[0];
  if (link === undefined || getLink(at.host.route, link.name) !== undefined) return undefined;
  refuseSwitch(policy, [{ name: link.name, master: undefined }], at);
  return { name: link.name, isOwn: false };
}

/** What containers send each other there never meets the kernel's rules. */
function refuseSwitch(policy: string, ends: readonly Pick<Link, "name" | "master">[], at: HostAndPlan): void {
  const port = ends.find((link) => datapathOf(link, at) !== undefined);
  if (port === undefined) return;
  throw refused(
    policy,
    `${port.name} is a port of Open vSwitch, which forwards without the host's rules`,
    'keep networks apart by "vlan" of the plugin ovs',
  );
}

/** Links of the host that the result names, and those of which they are ports. */
function linksOutside({ interfaces = [] }: Result, host: Host): Link[] {
  const links = new Map<number, Link>();
  for (const { name, sandbox } of interfaces) {
    const link = sandbox || name === "" ? undefined : getLink(host.route, name);
    if (link === undefined) continue;
    links.set(link.index, link);
    const master = link.master === undefined ? undefined : links.get(link.master) ?? getLink(host.route, link.master);
    if (master !== undefined) links.set(master.index, master);
  }
  return [...links.values()];
}

function routedLinks(addresses: readonly string[], outside: readonly Link[], host: Host): Link[] {
  const found = new Map<number, Link>();
  if (outside.length === 0) return [];
  for (const address of addresses) {
    const link = linkTowards(host.route, parseAddress(address)!);
    if (link !== undefined && !found.has(link.index) && isBeside(link, outside, host)) found.set(link.index, link);
  }
  return [...found.values()];
}

/** Whether the link is one of `outside`, is upon one of them, or is a pair whose other end is a port of one of them. */
function isBeside({ index, link, linkNetnsId }: Link, outside: readonly Link[], { route }: Host): boolean {
  const isOutside = (one: number | undefined) => outside.some((each) => each.index === one);
  if (isOutside(index)) return true;
  if (link === undefined || linkNetnsId !== undefined) return false;
  return isOutside(link) || isOutside(getLink(route, link)?.master);
}

/** The host's end of a pair whose other end is in a container. */
function isOwn({ kind, link, linkNetnsId, master }: Link): boolean {
  return kind === "veth" && link !== undefined && linkNetnsId !== undefined && master === undefined;
}

function refused(policy: string, why: string, details: string): CniError {
  return new CniError(INVALID_CONFIG, `"ingressPolicy": "${policy}" has no effect: ${why}`, details);
}
