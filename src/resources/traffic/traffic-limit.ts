/**
 * How fast a link of the host may send: all of it, or what is exchanged with some subnets. Sending on the host's end of a
 * container's link is what the container receives.
 */
import { CniError, INTERNAL } from "../../cni/error.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import { EEXIST } from "../../ffi/errno.ts";
import { linkIndex } from "../../ffi/netlink/route/link.ts";
import { isNetlinkError } from "../../ffi/netlink/socket.ts";
import { delQdisc, getQdisc } from "../../ffi/netlink/tc/qdisc.ts";
import { findKnownLink, type KnownLink } from "../link/known-link.ts";
import { ROOT } from "./root.ts";
import type { Limit } from "./token-bucket.ts";
import type { Subnets } from "./limit-by-subnet.ts";

export interface TrafficLimitSpec {
  link: KnownLink;
  /** Nothing when it is not known: a DEL that has only a configuration of today. */
  limit?: Limit;
  subnets?: Subnets;
  /** The link is ours too, and takes the limit with it. */
  goesWithLink?: true;
}

// Loaded when used: most networks limit all traffic alike, and DEL needs neither.
const whole = () => require("./limit-whole-link.ts") as typeof import("./limit-whole-link.ts");
const bySubnet = () => require("./limit-by-subnet.ts") as typeof import("./limit-by-subnet.ts");

export const trafficLimitKind: ResourceKind<TrafficLimitSpec> = {
  kind: "traffic-limit",
  unmade: undefined,
  apply(spec, host) {
    const { link: { name }, limit, subnets } = spec;
    const link = { name, index: linkIndex(host.route, name)! };
    try {
      if (subnets === undefined) whole().apply(host.route, link, limit!);
      else bySubnet().apply(host.route, link, limit!, subnets);
    } catch (error) {
      // Somebody else's stays.
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
    const found = findKnownLink(link, host);
    const root = found && getQdisc(host.route, found, ROOT.parent);
    if (root?.kind === "tbf" || root?.kind === "htb") delQdisc(host.route, { link: found!, ...ROOT }, root.kind);
  },
  verify({ link, limit, subnets }, host) {
    const found = findKnownLink(link, host);
    if (found === undefined) return [`link ${link.name} is missing`];
    const root = getQdisc(host.route, found, ROOT.parent);
    if (root === undefined || root.handle !== ROOT.handle) {
      return [`Failed to find qdisc: ${found.name} has ${root?.kind ?? "nothing"} at its root`];
    }
    return subnets === undefined
      ? whole().verify(found, limit!, root)
      : bySubnet().verify(host.route, found, limit!, subnets, root);
  },
  repair(spec, host) {
    trafficLimitKind.remove({ ...spec, goesWithLink: undefined }, host);
    trafficLimitKind.apply(spec, host);
  },
  describe: ({ link, limit, subnets }) => {
    const rate = limit === undefined ? "limit" : `${limit.rate * 8} bit/s`;
    const scope = subnets && ` ${subnets.limited ? "for" : "except for"} ${subnets.cidrs.join(", ")}`;
    return `${rate} on ${link.name}${scope ?? ""}`;
  },
};

export const trafficLimit = resource(trafficLimitKind);
