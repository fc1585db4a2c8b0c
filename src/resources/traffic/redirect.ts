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

interface RedirectSpec {
  from: HostLink;
  /** The ifb's name. */
  to: string;
  /** clsact: Open vSwitch takes qdiscs of the kind ingress from its ports. ingress by default, as the reference plugin's. */
  qdisc?: "clsact";
}

const INGRESS = { parent: TC_H_INGRESS, handle: tcHandle(0xffff) };
/** Of qdiscs of both kinds. */
const FIRST = { parent: TC_H_FOR_INGRESS, priority: 1, protocol: ETH_P_ALL };
const CLASS = tcHandle(1, 1);

export const redirectKind: ResourceKind<RedirectSpec> = {
  kind: "redirect",
  unmade: undefined,
  apply(spec, host) {
    const { from: { name } } = spec;
    const link = { name, index: linkIndex(host.route, name)! };
    try {
      addQdisc(host.route, { link, ...INGRESS }, { name: kindOf(spec) });
    } catch (error) {
      undoUnlessRefused(error, () => redirectKind.remove(spec, host));
      if (!isNetlinkError(error, EEXIST)) throw error;
      throw new CniError(INTERNAL, "create ingress qdisc: file exists", `${name} has an ingress qdisc already`, {
        cause: error,
      });
    }
    try {
      addRedirect(link, spec, host);
    } catch (error) {
      undoAfter(error, () => delQdisc(host.route, { link, ...INGRESS }, kindOf(spec)));
      throw error;
    }
  },
  remove({ from, to }, host) {
    const link = from.name === "" ? undefined : findHostLink(from, host);
    if (link === undefined) return;
    const filters = listFilters(host.route, link, FIRST.parent);
    // The kernel reports link 0 as the target of a filter whose ifb is gone.
    const target = linkIndex(host.route, to) ?? 0;
    // If there is no filter, ADD was cut off before it added one.
    if (filters.length > 0 && !filters.some((filter) => isOurs(filter, target))) return;
    if (filters.every(({ priority }) => priority === FIRST.priority)) {
      const kind = getQdisc(host.route, link, INGRESS.parent)?.kind;
      if (kind === "ingress" || kind === "clsact") delQdisc(host.route, { link, ...INGRESS }, kind);
    } else delFilters(host.route, { link, ...FIRST });
  },
  verify({ from, to }, host) {
    const link = findHostLink(from, host);
    if (link === undefined) return [`link ${from.name} is missing`];
    const target = linkIndex(host.route, to);
    const filters = target === undefined ? [] : listFilters(host.route, link, FIRST.parent);
    return filters.some((filter) => isOurs(filter, target!)) ? [] : [`${link.name} does not redirect to ${to}`];
  },
  repair(spec, host) {
    const link = findHostLink(spec.from, host);
    if (link === undefined) return;
    try {
      addQdisc(host.route, { link, ...INGRESS }, { name: kindOf(spec) });
    } catch (error) {
      if (!isNetlinkError(error, EEXIST)) throw error;
      // The qdisc of the ifb that was there before.
      delFilters(host.route, { link, ...FIRST });
    }
    addRedirect(link, spec, host);
  },
  describe: ({ from, to }) => `what comes in through ${from.name} goes on to ${to}`,
};

export const redirect = resource(redirectKind);

/** Every link that redirects to the link with index `target`. Looks at all links of the host. */
export function redirectingLinks(target: number, host: Host): number[] {
  const found: number[] = [];
  for (const { kind, linkIndex: index } of listQdiscs(host.route)) {
    if (kind !== "ingress" && kind !== "clsact") continue;
    const filters = listFilters(host.route, { index, name: `link ${index}` }, FIRST.parent);
    if (filters.some((filter) => isOurs(filter, target))) found.push(index);
  }
  return found;
}

function kindOf({ qdisc }: RedirectSpec): string {
  return qdisc ?? "ingress";
}

function addRedirect(link: Pick<Link, "index" | "name">, { to, qdisc }: RedirectSpec, host: Host): void {
  // As the reference plugin's: tc(8) shows by which of the two the filter was added.
  const parent = qdisc === "clsact" ? FIRST.parent : INGRESS.handle;
  addFilter(host.route, { link, ...FIRST, parent }, u32Redirect(ANY_PACKET, CLASS, linkIndex(host.route, to)!));
}

function isOurs({ kind, priority, options }: Filter, target: number): boolean {
  return kind === "u32" && priority === FIRST.priority && (readU32(options)?.redirects.includes(target) ?? false);
}
