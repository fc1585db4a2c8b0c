/**
 * The ifb link of an attachment, on the host. The kernel can shape only what a link sends; packets that a container sends
 * are redirected to its ifb, which sends them on. The ifb's alias names its owner, because its name is a hash. DEL removes
 * the ifb if its MAC or its alias shows that it is ours; an absent ifb counts as removed.
 */
import { CniError, INTERNAL } from "../../cni/error.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import type { Owner } from "../../contract/owner.ts";
import { undoAfter } from "../../contract/undo.ts";
import { EEXIST } from "../../ffi/errno.ts";
import { addLink, getLink, linkIndex, listLinks, setLink } from "../../ffi/netlink/route/link.ts";
import { ifbKind as ifbLink } from "../../ffi/netlink/route/link-kinds.ts";
import { removeLink } from "../../ffi/netlink/route/remove-link.ts";
import { isNetlinkError } from "../../ffi/netlink/socket.ts";
import { parseMac } from "../../net/mac.ts";
import { attemptAll } from "../../contract/failures.ts";
import { ownerComment, ownerIn } from "../packets/shared/owner-comment.ts";
import { undoUnlessRefused } from "../../contract/undo-unless-refused.ts";
import { redirectingLinks, redirectKind } from "./redirect.ts";

interface IfbSpec extends Owner {
  name: string;
  /** "" when it is not known: another program made it, and prevResult does not list it. */
  mac: string;
  mtu?: number;
  /** The link whose incoming packets are redirected to the ifb. */
  from: string;
}

export const ifbKind: ResourceKind<IfbSpec> = {
  kind: "ifb",
  apply(spec, host) {
    const { name, mac, mtu } = spec;
    try {
      addLink(host.route, { ifName: name, kind: ifbLink, address: parseMac(mac), mtu, txQueueLength: 0, up: true });
    } catch (error) {
      undoUnlessRefused(error, () => ifbKind.remove(spec, host));
      if (!isNetlinkError(error, EEXIST)) throw error;
      throw new CniError(INTERNAL, "adding link: file exists", `the host has a link named ${name}`, { cause: error });
    }
    try {
      // The kernel accepts no alias in the request that creates a link.
      setLink(host.route, { name, index: linkIndex(host.route, name)! }, { alias: ownerComment(spec) });
    } catch (error) {
      undoAfter(error, () => ifbKind.remove(spec, host));
      throw error;
    }
  },
  remove(spec, host) {
    const { name, mac, from } = spec, link = getLink(host.route, name);
    if (link?.kind !== "ifb") return;
    const owner = ownerIn(link.alias ?? "", spec.network);
    if (mac !== "" ? link.mac !== mac : owner === undefined ? isUsedByOthers() : owner.ifName !== spec.ifName) return;
    removeLink(host.route, name);

    /**
     * The name of the reference plugin's ifb tells the network and the container, but not the interface: it may belong to
     * another interface of the container. When the container is gone, so are all its interfaces.
     */
    function isUsedByOthers(): boolean {
      if (host.container === undefined) return false;
      const ours = from === "" ? undefined : linkIndex(host.route, from);
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
  sweep(network, isValid, host) {
    const steps: (() => void)[] = [];
    for (const { kind, alias, name, mac, index } of listLinks(host.route)) {
      const owner = kind === "ifb" && alias ? ownerIn(alias, network) : undefined;
      if (owner === undefined || isValid(owner)) continue;
      steps.push(() => {
        // Remove the redirects first: packets redirected to an ifb that is gone are dropped.
        for (const from of redirectingLinks(index, host)) {
          redirectKind.remove({ from: getLink(host.route, from) ?? { name: "", mac: "" }, to: name }, host);
        }
        ifbKind.remove({ ...owner, name, mac, from: "" }, host);
      });
    }
    attemptAll(steps);
  },
  describe: ({ name, from }) => `ifb ${name}${from && ` for ${from}`}`,
};

export const ifb = resource(ifbKind);
