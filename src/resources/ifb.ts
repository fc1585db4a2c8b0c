/**
 * An ifb: a link that packets are sent on to so that they can wait there. Only what a link sends can be limited; what
 * comes in from a container becomes something that its ifb sends.
 */
import { CniError, INTERNAL } from "../cni/error.ts";
import { resource, type ResourceKind, undoAfter } from "../engine/resource.ts";
import { EEXIST } from "../ffi/errno.ts";
import { addLink, getLink, ifbKind as ifbLink, linkIndex, setLink } from "../ffi/netlink/route/link.ts";
import { isNetlinkError } from "../ffi/netlink/socket.ts";
import { parseMac } from "../net/mac.ts";

export interface IfbSpec {
  name: string;
  /** "" when it is not known: others made it, and prevResult does not tell of it. */
  mac: string;
  mtu?: number;
  /** The link whose packets go there. */
  from: string;
}

export const ifbKind: ResourceKind<IfbSpec> = {
  kind: "ifb",
  unmade: undefined,
  apply(spec, host) {
    const { name, mac, mtu } = spec;
    try {
      addLink(host.route, { ifName: name, kind: ifbLink, address: parseMac(mac), mtu, txQueueLength: 0, up: true });
    } catch (error) {
      // Not the kernel's refusal: its answer was lost, and it may have done what it was asked.
      if (!isNetlinkError(error)) undoAfter(error, () => ifbKind.remove(spec, host));
      if (!isNetlinkError(error, EEXIST)) throw error;
      throw new CniError(INTERNAL, "adding link: file exists", `the host has a link named ${name}`, { cause: error });
    }
  },
  remove({ name, mac, from }, host) {
    const link = getLink(host.route, name);
    if (link?.kind !== "ifb") return;
    if (mac !== "" ? link.mac !== mac : isUsedByOthers()) return;
    require("../ffi/netlink/route/remove-link.ts").removeLink(host.route, name);

    /**
     * The name tells the network and the container, but not the interface, which may be another one of the container.
     * When the container is gone, all of its interfaces are.
     */
    function isUsedByOthers(): boolean {
      if (host.container === undefined) return false;
      const ours = from === "" ? undefined : linkIndex(host.route, from);
      const { redirectingLinks }: typeof import("./redirect.ts") = require("./redirect.ts");
      return redirectingLinks(link!.index, host).some((index) => index !== ours);
    }
  },
  verify({ name, mac, mtu }, host) {
    const link = getLink(host.route, name);
    if (link === undefined) return [`get ifb device: Link not found: ${name}`];
    if (link.kind !== "ifb") return [`get ifb device: ${name} is a ${link.kind} link`];
    const differences: string[] = [];
    if (mac !== "" && link.mac !== mac) differences.push(`ifb ${name} has MAC ${link.mac}, not ${mac}`);
    if (!link.up) differences.push(`ifb ${name} is down`);
    if (mtu !== undefined && link.mtu !== mtu) differences.push(`ifb ${name} has MTU ${link.mtu}, not ${mtu}`);
    return differences;
  },
  repair(spec, host) {
    const link = getLink(host.route, spec.name);
    if (link === undefined) ifbKind.apply(spec, host);
    else if (!link.up || link.mtu !== spec.mtu) setLink(host.route, link, { up: true, mtu: spec.mtu });
  },
  describe: ({ name, from }) => `ifb ${name}${from && ` for ${from}`}`,
};

export const ifb = resource(ifbKind);
