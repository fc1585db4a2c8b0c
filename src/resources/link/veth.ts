/**
 * A veth pair: one end in the container, the other on the host, alone or as a bridge port. One request creates both ends
 * in place. The host's end is down until all that confines it is there (host-end-up.ts). DEL removes the host's end if it
 * still has its MAC, and the kernel removes the container's with it, wherever that is by now. Without a host's end it removes
 * the link CNI_IFNAME. A pair that is absent counts as removed.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import type { Host } from "../../contract/host.ts";
import type { CniError } from "../../cni/error.ts";
import { EEXIST, EOPNOTSUPP } from "../../ffi/errno.ts";
import { isNetlinkError } from "../../ffi/netlink/socket.ts";
import { addLink, getLink, hasLinkAt, type Link, linkIndex, setLink } from "../../ffi/netlink/route/link.ts";
import { vethKind as vethLink } from "../../ffi/netlink/route/link-kinds.ts";
import { parseMac } from "../../net/mac.ts";
import { undoAfter } from "../../contract/undo.ts";
import { undoUnlessRefused } from "../../contract/undo-unless-refused.ts";
import { linkRefused, nameTakenError, requireUsableMac, requireUsableMtu } from "./shared/usable.ts";
import {
  accepted,
  advertisements,
  portSysctlDifferences,
  redirectsNow,
  refuse,
  setPortSysctls,
} from "./shared/refusals.ts";

export interface VethSpec {
  /** "" when it is not known: another program made the attachment, and there is no prevResult. */
  hostName: string;
  hostMac: string;
  containerName: string;
  containerMac: string;
  mtu?: number;
  /** Undefined: the host's end is not a bridge port. */
  bridge?: string;
  /** The host's end is a port of a switch, which may be its master and looks after that itself. */
  isSwitchPort?: boolean;
  /** The host is the container's next hop on it, and takes no other next hop from the container. */
  refusesRedirects?: boolean;
}

export const vethKind: ResourceKind<VethSpec> = {
  kind: "veth",
  isContainerLink: true,
  requireRoom(spec, host) {
    if (linkIndex(host.container!.route, spec.containerName) !== undefined) throw taken(spec);
  },
  judge({ containerMac, mtu }) {
    requireUsableMac(containerMac);
    requireUsableMtu(mtu);
  },
  apply(spec, host) {
    const container = host.container!;
    const master = masterOf(spec, host);
    try {
      addLink(host.route, {
        ifName: spec.hostName,
        address: parseMac(spec.hostMac),
        mtu: spec.mtu,
        master,
        txQueueLength: 0,
        kind: vethLink({
          peer: {
            ifName: spec.containerName,
            address: parseMac(spec.containerMac),
            mtu: spec.mtu,
            netnsFd: container.netnsFd,
          },
        }),
      });
    } catch (error) {
      if (isNetlinkError(error, EEXIST)) throw taken(spec, error);
      undoUnlessRefused(error, () => vethKind.remove(spec, host));
      if (!isNetlinkError(error)) throw error;
      const details = spec.mtu === undefined ? "" : `its MTU was to be ${spec.mtu}`;
      const text = `failed to make veth pair: ${error.message}`;
      throw linkRefused(text, spec.containerMac, { details, cause: error });
    }
    try {
      harden(spec);
    } catch (error) {
      undoAfter(error, () => vethKind.remove(spec, host));
      throw error;
    }
  },
  remove(spec, host, isRestated) {
    // Loaded here: it brings the code that starts child processes, which ADD by `bridge` does not need.
    const { removeLinkAt } = require(
      "../../ffi/netlink/route/remove-link.ts",
    ) as typeof import("../../ffi/netlink/route/remove-link.ts");
    const { container } = host, outside = ownHostEnd(spec, host, isRestated);
    if (outside !== undefined) {
      // The container's end goes with it, whatever name and namespace the container has given that.
      const { link: far } = outside;
      const isRestGone = () => container === undefined || far === undefined || !hasLinkAt(container.route, far);
      removeLinkAt(host.route, outside, { isRestGone });
    } else if (container !== undefined) {
      const inside = getLink(container.route, spec.containerName);
      // An alternative name may be anybody's.
      if (inside?.name !== spec.containerName) return;
      try {
        // The link CNI_IFNAME belongs to this attachment, whoever made it.
        removeLinkAt(container.route, inside, { inside: container.inside });
      } catch (error) {
        // A link that cannot be deleted, such as lo, is no attachment's: the container has given it the name.
        if (!isNetlinkError(error, EOPNOTSUPP)) throw error;
      }
    }
  },
  verify(spec, host) {
    const { hostName, hostMac, containerName } = spec;
    const inside = getLink(host.container!.route, containerName);
    if (inside === undefined) return [`Cannot find container link ${containerName}`];
    const differences: string[] = [];
    if (inside.kind !== "veth") {
      differences.push(`container interface ${containerName} is a ${inside.kind}, not a veth`);
    }
    const outside = hostName === "" ? undefined : getLink(host.route, hostName);
    const whose = spec.bridge === undefined ? containerName : `bridge ${spec.bridge}`;
    if (!isPair(inside, outside) || !hasMaster(outside, spec, host)) {
      differences.push(`CNI veth created for ${whose} was not found${hostName && `: ${hostName}`}`);
    } else {
      differences.push(
        ...accepted(advertisements(hostName)),
        ...spec.isSwitchPort ? portSysctlDifferences(hostName) : [],
      );
      if (hostMac !== "" && outside.mac !== hostMac) {
        differences.push(`Interface ${hostName} Mac ${hostMac} doesn't match host Mac: ${outside.mac}`);
      }
    }
    return differences;
  },
  repair(spec, host) {
    const { hostName, hostMac, containerName } = spec;
    const inside = getLink(host.container!.route, containerName);
    const outside = hostName === "" ? undefined : getLink(host.route, hostName);
    if (inside === undefined || !isPair(inside, outside)) throw new Error("the pair of links is not there any more");
    setLink(host.route, outside, {
      master: hasMaster(outside, spec, host) ? undefined : masterOf(spec, host) ?? 0,
      address: outside.mac === hostMac ? undefined : parseMac(hostMac),
    });
    harden(spec);
  },
  hostSide: ({ hostName, hostMac, containerMac }) => ({
    end: { name: hostName, mac: hostMac, farMac: containerMac },
  }),
  describe: ({ hostName, containerName, bridge }) =>
    `veth ${containerName} in the container, ${hostName} on ${bridge ?? "the host"}`,
};

export const veth = resource(vethKind);

function harden({ hostName, isSwitchPort, refusesRedirects }: VethSpec): void {
  refuse([...advertisements(hostName), ...refusesRedirects ? redirectsNow(hostName) : []]);
  if (isSwitchPort) setPortSysctls(hostName);
}

function masterOf({ bridge }: VethSpec, host: Host): number | undefined {
  return bridge === undefined ? undefined : linkIndex(host.route, bridge);
}

function hasMaster({ master }: Link, spec: VethSpec, host: Host): boolean {
  return spec.isSwitchPort === true || master === masterOf(spec, host);
}

function isPair(inside: Link, outside: Link | undefined): outside is Link {
  return outside?.kind === "veth" && outside.link === inside.index && inside.link === outside.index;
}

/**
 * The host's end, which the container cannot rename or move. Names of links are reused: the MAC address tells whether this
 * is the link that ADD made. A prevResult may be another interface's: then it does not say the MAC address of the other end.
 */
function ownHostEnd({ hostName, hostMac, containerMac }: VethSpec, host: Host, isRestated = false): Link | undefined {
  const link = hostName === "" ? undefined : getLink(host.route, hostName);
  if (link?.kind !== "veth" || (hostMac !== "" && link.mac !== hostMac)) return undefined;
  if (!isRestated || host.container === undefined) return link;
  return hostMac !== "" && containerMac !== "" ? link : undefined;
}

function taken({ containerName, hostName }: VethSpec, cause?: unknown): CniError {
  return nameTakenError(
    `container veth name ("${containerName}") peer provided ("${hostName}") already exists`,
    cause,
  );
}
