/**
 * A macvlan, ipvlan, vlan or dummy link in the container, created there by one request with its name, MAC and MTU. Its
 * master is on the host, in the container, or there is none (dummy). DEL removes it by its index, which the container
 * cannot change; where that is not known, it removes the link CNI_IFNAME if it has the same kind. What has another index by
 * now is in shared/hidden-link.ts. A link that the container has deleted, or a namespace that is gone, counts as removed.
 *
 * The kernel looks for the master in the namespace of the socket that sends the request. For a master on the host we
 * therefore use the host's socket and name the container's namespace in the request. Before Linux 6.15 the kernel then
 * refuses a name that a link of the host has; only in that case is the link created under a temporary name and renamed.
 */
import { CniError, INTERNAL } from "../../cni/error.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Host } from "../../contract/host.ts";
import { EBUSY, EEXIST, EINVAL } from "../../ffi/errno.ts";
import {
  addLink,
  getLink,
  type Link,
  linkIndex,
  linkMac,
  listLinks,
  type NewLink,
  setLink,
} from "../../ffi/netlink/route/link.ts";
import {
  dummy,
  ipvlan,
  type IpvlanSettings,
  type LinkFormat,
  macvlan,
  type MacvlanSettings,
  vlan,
  type VlanSettings,
} from "../../ffi/netlink/route/link-kinds.ts";
import { netnsIds } from "../../ffi/netlink/route/netns-id.ts";
import { removeLinkAt } from "../../ffi/netlink/route/remove-link.ts";
import { isNetlinkError, type NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { parseMac } from "../../net/mac.ts";
import type { Master } from "./shared/master-link.ts";
import { undoUnlessRefused } from "../../contract/undo-unless-refused.ts";
import { removeHidden } from "./shared/hidden-link.ts";
import { freshHostName, linkRefused, nameTakenError, requireUsableMac, requireUsableMtu } from "./shared/usable.ts";

/** The kind of link and its settings, as ip-link(8) calls them. */
export type LinkType =
  | { kind: "macvlan"; settings: MacvlanSettings }
  | { kind: "ipvlan"; settings: IpvlanSettings }
  | { kind: "vlan"; settings: VlanSettings }
  | { kind: "dummy"; settings: Record<string, never> };

const formats: Record<LinkType["kind"], LinkFormat<LinkType["settings"]>> = {
  macvlan,
  ipvlan,
  vlan,
  dummy,
};

interface ContainerLinkSpec {
  ifName: string;
  /** Undefined when another program did ADD. */
  index?: number;
  type: LinkType;
  /** Undefined: the kernel picks one, or takes the master's. */
  mac?: string;
  /** Undefined: the master's, or the kernel's default. */
  mtu?: number;
  /** Undefined: it has none, or the specification was restated and the master is not known. */
  master?: Master;
  /** Its temporary name, if a link of the host has the name it is to have; else "" or undefined. */
  birthName?: string;
}

/** The kind's name in ledgers. */
const KIND = "container-link";

export const containerLinkKind: ResourceKind<ContainerLinkSpec, { mac: string }> = {
  kind: KIND,
  isContainerLink: true,
  opensLink: true,
  hostSide: ({ master }) => ({ master: hostMasterOf(master) }),
  unmade: { mac: "" },
  requireRoom(spec, host) {
    if (linkIndex(host.container!.route, spec.ifName) !== undefined) throw taken(spec);
  },
  judge({ mac, mtu, type }) {
    requireUsableMac(mac);
    // A vlan and a dummy may have any.
    if (type.kind === "macvlan" || type.kind === "ipvlan") requireUsableMtu(mtu);
  },
  apply(spec, host) {
    const { ifName, index, type, mac, mtu, master } = spec;
    const container = host.container!;
    const socket = socketOf(spec, host);
    const link = master && linkIndex(socket, master.name);
    if (master !== undefined && link === undefined) throw creationFailed(spec, "Link not found");
    const netnsFd = socket === container.route ? undefined : container.netnsFd;
    const address = mac === undefined ? undefined : parseMac(mac);
    const kind = formats[type.kind].kind(type.settings);
    const request: NewLink = { ifName, index, kind, address, mtu, link, netnsFd };
    try {
      addLink(socket, request);
    } catch (error) {
      undoUnlessRefused(error, () => containerLinkKind.remove(spec, host));
      const nameExists = isNetlinkError(error, EEXIST);
      if (nameExists && linkIndex(container.route, ifName) !== undefined) throw taken(spec, error);
      if (!nameExists || !spec.birthName) throw creationFailed(spec, (error as Error).message, error);
      addAndRename(spec, socket, request, host);
    }
    try {
      return { mac: mac ?? linkMac(container.route, ifName)! };
    } catch (error) {
      undoAfter(error, () => containerLinkKind.remove(spec, host));
      throw error;
    }
  },
  remove(spec, host) {
    if (host.container === undefined) return;
    const { route, inside } = host.container, links = listLinks(route), own = ownAmong(links, spec, host);
    if (own !== undefined) removeLinkAt(route, own, { inside });
    const mayBeHidden = own === undefined || links.some((link) => isMadeFrom(own, link)) || hasMovedLinks(own, route);
    if (spec.index !== undefined && mayBeHidden) removeWhatIsHidden(spec, spec.index, host);
  },
  verify(spec, host) {
    const { ifName, type, mtu, master } = spec;
    const link = getLink(host.container!.route, ifName);
    if (link === undefined) return [`Cannot find container link ${ifName}`];
    if (link.kind !== type.kind) {
      return [`container interface ${ifName} is a ${link.kind ?? "physical link"}, not a ${type.kind}`];
    }
    const differences: string[] = [];
    if (master !== undefined && getLink(socketOf(spec, host), master.name) === undefined) {
      differences.push(`failed to lookup master "${master.name}": Link not found`);
    }
    const settings: Record<string, unknown> = link.kindData ? { ...formats[type.kind].settings(link.kindData) } : {};
    for (const [key, wanted] of Object.entries(type.settings)) {
      const current = settings[key];
      // Settings may be left to the kernel, and old kernels do not report all of them.
      if (wanted === undefined || current === undefined || current === wanted) continue;
      differences.push(`container ${type.kind} ${key} ${current} does not match expected value: ${wanted}`);
    }
    // A later plugin may change the MTU of the other kinds; the reference plugins do not check it either.
    if (type.kind === "vlan" && mtu !== undefined && link.mtu !== mtu) {
      differences.push(`configured MTU of ${ifName} is ${mtu}, current value is ${link.mtu}`);
    }
    return differences;
  },
  repair({ ifName, type, mtu }, host) {
    const { route } = host.container!;
    const link = getLink(route, ifName);
    if (link?.kind !== type.kind) throw new Error(`the ${type.kind} ${ifName} is not there any more`);
    setLink(route, link, { mtu, kind: formats[type.kind].kind(type.settings) });
  },
  describe: ({ ifName, type, master }) =>
    `${type.kind} ${ifName} in the container${master === undefined ? "" : ` on ${master.name}`}`,
};

export const containerLink = resource(containerLinkKind);

/** A `birthName`: an unused name if the kernel may refuse the final one, else "". */
export function freshBirthName(ifName: string, host: Host): string {
  return linkIndex(host.route, ifName) === undefined ? "" : freshHostName(host);
}

function ownAmong(
  all: readonly Link[],
  { index, ifName, birthName, type, mac, master }: ContainerLinkSpec,
  host: Host,
) {
  const links = all.filter(({ kind }) => kind === type.kind);
  if (index !== undefined) return links.find((link) => link.index === index);
  // CNI_IFNAME belongs to this attachment, whoever made the link. A link of another kind is not this resource.
  const named = links.find(({ name }) => name === ifName || name === birthName);
  if (named !== undefined) return named;
  const isUpon = ({ link, linkNetnsId }: Link) =>
    linkNetnsId !== undefined && link === linkIndex(host.route, master!.name);
  return links.find((link) =>
    (!!mac && link.mac === mac) || (isOnMastersOnly(type, link) && hostMasterOf(master) !== undefined && isUpon(link))
  );
}

/** A link of the container's can be the master of one more, which the kernel then puts upon the same link of the host. */
function isMadeFrom(own: Link, { index, kind, link, linkNetnsId }: Link): boolean {
  return index !== own.index && kind === own.kind && linkNetnsId !== undefined && linkNetnsId === own.linkNetnsId &&
    link === own.link;
}

/** Among what the container has moved to other namespaces, there may be a link made from its own. */
function hasMovedLinks({ linkNetnsId }: Link, route: NetlinkSocket): boolean {
  return linkNetnsId !== undefined && netnsIds(route).some((id) => id !== linkNetnsId);
}

/** A master has one vlan of an ID. */
function isOnMastersOnly(type: LinkType, { kindData }: Link): boolean {
  return type.kind === "vlan" && kindData !== undefined && vlan.settings(kindData).id === type.settings.id;
}

function hostMasterOf(master: Master | undefined): string | undefined {
  return master === undefined || master.inContainer ? undefined : master.name;
}

function removeWhatIsHidden({ ifName, type, mac, master }: ContainerLinkSpec, index: number, host: Host): void {
  const onHost = hostMasterOf(master), isOnly = (link: Link) => onHost !== undefined && isOnMastersOnly(type, link);
  removeHidden({ resource: KIND, ifName, kind: type.kind, index, mac, master: onHost, isOnly }, host);
}

function socketOf({ master }: ContainerLinkSpec, host: Host): NetlinkSocket {
  return master === undefined || master.inContainer ? host.container!.route : host.route;
}

function addAndRename(spec: ContainerLinkSpec, socket: NetlinkSocket, request: NewLink, host: Host) {
  const name = spec.birthName!;
  const { route } = host.container!;
  try {
    addLink(socket, { ...request, ifName: name });
  } catch (error) {
    undoUnlessRefused(error, () => containerLinkKind.remove(spec, host));
    throw creationFailed(spec, (error as Error).message, error);
  }
  try {
    setLink(route, { index: spec.index ?? linkIndex(route, name)!, name }, { ifName: spec.ifName });
  } catch (error) {
    undoAfter(error, () => containerLinkKind.remove(spec, host));
    const text = `failed to rename ${spec.type.kind} to "${spec.ifName}": ${(error as Error).message}`;
    throw new CniError(INTERNAL, text, "", { cause: error });
  }
}

function taken({ ifName, type }: ContainerLinkSpec, cause?: unknown): CniError {
  return nameTakenError(`failed to create ${type.kind}: "${ifName}" already exists in the container`, cause);
}

/** Explanations where the kernel gives none. */
const hints: Record<number, string> = {
  [EBUSY]: "the master belongs to a bridge or bond, or has links of a kind that excludes this one",
  [EINVAL]: "the master is not an Ethernet link, or a link in mode passthru would not be the only one on it",
};

function creationFailed({ type, master, mac }: ContainerLinkSpec, reason: string, cause?: unknown): CniError {
  const on = master === undefined ? "" : ` on "${master.name}"`;
  const details = master !== undefined && isNetlinkError(cause) && cause.text === "" ? hints[cause.errno] : undefined;
  return linkRefused(`failed to create ${type.kind}${on}: ${reason}`, mac, { details, cause });
}
