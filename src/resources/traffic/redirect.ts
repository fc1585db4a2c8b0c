/**
 * Redirects what comes in through a link of the host to its ifb (`tc filter … u32 … action mirred egress redirect`). Owns
 * the link's ingress qdisc and the filter in it. DEL removes both, but leaves the qdisc if it has other filters; a link or
 * a filter that is absent counts as removed.
 */
import { CniError, INTERNAL } from "../../cni/error.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Host } from "../../contract/host.ts";
import { EEXIST } from "../../ffi/errno.ts";
import { type Link, linkIndex } from "../../ffi/netlink/route/link.ts";
import { isNetlinkError } from "../../ffi/netlink/socket.ts";
import {
  addFilter,
  addQdisc,
  delFilters,
  delQdisc,
  type Filter,
  getQdisc,
  listFilters,
  listQdiscs,
} from "../../ffi/netlink/tc/queueing.ts";
import { ANY_PACKET, readU32, u32Redirect } from "../../ffi/netlink/tc/u32.ts";
import { tcHandle } from "../../ffi/netlink/tc/tc-object.ts";
import { ETH_P_ALL, TC_H_FOR_INGRESS, TC_H_INGRESS } from "../../ffi/netlink/uapi/traffic-control.ts";
import { findHostLink, type HostLink } from "../link/shared/host-link.ts";
import { undoUnlessRefused } from "../../contract/undo-unless-refused.ts";
import { isForLoopbackFilter } from "../packets/shared/loopback-filter.ts";

type NamedLink = Pick<Link, "index" | "name">;

interface RedirectSpec {
  from: HostLink;
  /** The ifb's name. */
  to: string;
  /** clsact: Open vSwitch takes qdiscs of the kind ingress from its ports. ingress by default, as the reference plugin's. */
  qdisc?: "clsact";
}

const INGRESS = { parent: TC_H_INGRESS, handle: tcHandle(0xffff) };
/**
 * The place in qdiscs of both kinds. The first priority, which the reference plugin has, is left to the filter that
 * guards 127.0.0.1 (packets/shared/loopback-filter.ts): what is redirected does not come back to it.
 */
const PLACE = { parent: TC_H_FOR_INGRESS, priority: 2, protocol: ETH_P_ALL };
const CLASS = tcHandle(1, 1);

export const redirectKind: ResourceKind<RedirectSpec> = {
  kind: "redirect",
  apply(spec, host) {
    const { from: { name } } = spec;
    const link = { name, index: linkIndex(host.route, name)! };
    const isNew = takeQdisc(link, spec, host);
    try {
      addRedirect(link, spec, host, isNew ? kindOf(spec) : "clsact");
    } catch (error) {
      if (isNew) undoAfter(error, () => delQdisc(host.route, { link, ...INGRESS }, kindOf(spec)));
      throw error;
    }
  },
  remove({ from, to }, host) {
    const link = from.name === "" ? undefined : findHostLink(from, host);
    if (link === undefined) return;
    const filters = listFilters(host.route, link, PLACE.parent);
    // The kernel reports link 0 as the target of a filter whose ifb is gone.
    const target = linkIndex(host.route, to) ?? 0;
    const own = filters.find((filter) => isOurs(filter, target));
    // If there is no filter, ADD was cut off before it added one.
    if (filters.length > 0 && own === undefined) return;
    if (filters.every(({ priority }) => priority === own?.priority)) {
      const kind = getQdisc(host.route, link, INGRESS.parent)?.kind;
      if (kind === "ingress" || kind === "clsact") delQdisc(host.route, { link, ...INGRESS }, kind);
    } else delFilters(host.route, { link, ...PLACE, priority: own!.priority });
  },
  verify({ from, to }, host) {
    const link = findHostLink(from, host);
    if (link === undefined) return [`link ${from.name} is missing`];
    const target = linkIndex(host.route, to);
    const filters = target === undefined ? [] : listFilters(host.route, link, PLACE.parent);
    return filters.some((filter) => isOurs(filter, target!)) ? [] : [`${link.name} does not redirect to ${to}`];
  },
  repair(spec, host) {
    const link = findHostLink(spec.from, host);
    if (link === undefined) return;
    let kind = kindOf(spec);
    try {
      addQdisc(host.route, { link, ...INGRESS }, { name: kind });
    } catch (error) {
      if (!isNetlinkError(error, EEXIST)) throw error;
      // The qdisc of the ifb that was there before, or of the filter that guards 127.0.0.1.
      kind = getQdisc(host.route, link, INGRESS.parent)?.kind ?? kind;
      for (const priority of staleLists(link, host)) delFilters(host.route, { link, ...PLACE, priority });
    }
    addRedirect(link, spec, host, kind);
  },
  describe: ({ from, to }) => `what comes in through ${from.name} goes on to ${to}`,
};

export const redirect = resource(redirectKind);

/** Every link that redirects to the link with index `target`. Looks at all links of the host. */
export function redirectingLinks(target: number, host: Host): number[] {
  const found: number[] = [];
  for (const { kind, linkIndex: index } of listQdiscs(host.route)) {
    if (kind !== "ingress" && kind !== "clsact") continue;
    const filters = listFilters(host.route, { index, name: `link ${index}` }, PLACE.parent);
    if (filters.some((filter) => isOurs(filter, target))) found.push(index);
  }
  return found;
}

function kindOf({ qdisc }: RedirectSpec): string {
  return qdisc ?? "ingress";
}

/** Makes the qdisc; one that only the filter for 127.0.0.1 uses is as good. Returns whether it is new. */
function takeQdisc(link: NamedLink, spec: RedirectSpec, host: Host): boolean {
  try {
    addQdisc(host.route, { link, ...INGRESS }, { name: kindOf(spec) });
    return true;
  } catch (error) {
    undoUnlessRefused(error, () => redirectKind.remove(spec, host));
    if (!isNetlinkError(error, EEXIST)) throw error;
    if (isForLoopbackFilter(host.route, link)) return false;
    const details = `${link.name} has an ingress qdisc already`;
    throw new CniError(INTERNAL, "create ingress qdisc: file exists", details, { cause: error });
  }
}

/** As the reference plugin's: tc(8) shows by which of the two the filter was added. */
function addRedirect(link: NamedLink, { to }: RedirectSpec, host: Host, qdisc: string): void {
  const parent = qdisc === "clsact" ? PLACE.parent : INGRESS.handle;
  addFilter(host.route, { link, ...PLACE, parent }, u32Redirect(ANY_PACKET, CLASS, linkIndex(host.route, to)!));
}

/** The priorities of lists like ours. */
function staleLists(link: NamedLink, host: Host): Set<number> {
  const filters = listFilters(host.route, link, PLACE.parent).filter(({ kind }) => kind === "u32");
  return new Set(filters.map(({ priority }) => priority).filter((priority) => priority <= PLACE.priority));
}

function isOurs({ kind, priority, options }: Filter, target: number): boolean {
  return kind === "u32" && priority <= PLACE.priority && (readU32(options)?.redirects.includes(target) ?? false);
}
