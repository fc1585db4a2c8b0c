/**
 * A rate limit on what a link of the host sends: on everything, or on the traffic with some subnets. On the host's end of
 * a container's link this limits what the container receives. Owns the link's root qdisc, and DEL removes it. DEL does
 * nothing when the link is gone, has a root qdisc of another kind, or is itself removed by DEL (`goesWithLink`).
 */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { resource, type ResourceKind } from "../../../contract/resource.ts";
import { undoAfter } from "../../../contract/undo.ts";
import { EEXIST } from "../../../ffi/errno.ts";
import { linkIndex } from "../../../ffi/netlink/route/link.ts";
import { isNetlinkError } from "../../../ffi/netlink/socket.ts";
import { delQdisc, getQdisc } from "../../../ffi/netlink/tc/queueing.ts";
import { findHostLink, type HostLink } from "../../link/shared/host-link.ts";
import { limitAllTraffic, ROOT, verifyAllTraffic } from "./all-traffic.ts";
import { limitBySubnet, type Subnets, verifyBySubnet } from "./by-subnet.ts";
import type { Limit } from "./token-bucket.ts";

interface TrafficLimitSpec {
  link: HostLink;
  /** Undefined when it is not known: DEL without a ledger. */
  limit?: Limit;
  subnets?: Subnets;
  /** DEL removes the link, too, and the limit with it. */
  goesWithLink?: true;
}

export const trafficLimitKind: ResourceKind<TrafficLimitSpec> = {
  kind: "traffic-limit",
  apply(spec, host) {
    const { link: { name }, limit, subnets } = spec;
    const link = { name, index: linkIndex(host.route, name)! };
    try {
      if (subnets === undefined) limitAllTraffic(host.route, link, limit!);
      else limitBySubnet(host.route, link, limit!, subnets);
    } catch (error) {
      // Leave another program's qdisc.
      if (isNetlinkError(error, EEXIST)) {
        throw new CniError(INTERNAL, "create qdisc: file exists", `${name} has a queueing discipline already`, {
          cause: error,
        });
      }
      undoAfter(error, () => trafficLimitKind.remove(spec, host));
      throw error;
    }
  },
  remove({ link, goesWithLink }, host) {
    if (goesWithLink || link.name === "") return;
    const found = findHostLink(link, host);
    const root = found && getQdisc(host.route, found, ROOT.parent);
    if (root?.kind === "tbf" || root?.kind === "htb") delQdisc(host.route, { link: found!, ...ROOT }, root.kind);
  },
  verify({ link, limit, subnets }, host) {
    const found = findHostLink(link, host);
    if (found === undefined) return [`link ${link.name} is missing`];
    const root = getQdisc(host.route, found, ROOT.parent);
    if (root === undefined || root.handle !== ROOT.handle) {
      return [`Failed to find qdisc: ${found.name} has ${root?.kind ?? "nothing"} at its root`];
    }
    return subnets === undefined
      ? verifyAllTraffic(found, limit!, root)
      : verifyBySubnet(host.route, found, limit!, subnets, root);
  },
  repair(spec, host) {
    trafficLimitKind.remove({ ...spec, goesWithLink: undefined }, host);
    trafficLimitKind.apply(spec, host);
  },
  describe: ({ link, limit, subnets, goesWithLink }) => {
    const rate = limit === undefined ? "limit" : readable(limit.rate * 8);
    // An ifb, which DEL removes, has what comes from the container.
    const direction = goesWithLink ? "from the container" : "towards the container";
    const scope = subnets && ` ${subnets.limited ? "for" : "except for"} ${subnets.cidrs.join(", ")}`;
    return `${rate} ${direction}, on ${link.name}${scope ?? ""}`;
  },
};

/** Exact, in the largest unit in which it has at most three decimals. */
function readable(bitsPerSecond: number): string {
  for (const [prefix, unit] of [["G", 1e9], ["M", 1e6], ["k", 1e3]] as const) {
    if (bitsPerSecond >= unit && bitsPerSecond % (unit / 1000) === 0) return `${bitsPerSecond / unit} ${prefix}bit/s`;
  }
  return `${bitsPerSecond} bit/s`;
}

export const trafficLimit = resource(trafficLimitKind);
