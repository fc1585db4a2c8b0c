/**
 * A link that is born in the container, under its final name, with its MAC and MTU, by one request: macvlan, ipvlan,
 * vlan, dummy. It stands on a master on the host, on one in the container, or on none, and goes with the container's
 * namespace.
 *
 * A master on the host is found by the socket the request is sent through, so that socket is the host's, and the
 * request names the container's namespace. Before Linux 6.15 the kernel then refuses a name that a link of the host
 * has: there, and only there, the link is born under another name and renamed.
 */
import { CniError, INTERNAL } from "../../cni/error.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Host } from "../../contract/host.ts";
import { EBUSY, EEXIST, EINVAL } from "../../ffi/errno.ts";
import { addLink, getLink, linkIndex, linkMac, type NewLink, setLink } from "../../ffi/netlink/route/link.ts";
import type { LinkFormat } from "../../ffi/netlink/route/link-kind.ts";
import { isNetlinkError, type NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { parseMac } from "../../net/mac.ts";
import type { IpvlanSettings } from "../../ffi/netlink/route/kinds/ipvlan.ts";
import type { MacvlanSettings } from "../../ffi/netlink/route/kinds/macvlan.ts";
import type { VlanSettings } from "../../ffi/netlink/route/kinds/vlan.ts";
import type { Master } from "./master-link.ts";
import { undoUnlessRefused } from "../../contract/undo-unless-refused.ts";
import { nameTaken } from "./name-taken.ts";

/** What it is, in the words of ip-link(8). */
export type LinkType =
  | { kind: "macvlan"; settings: MacvlanSettings }
  | { kind: "ipvlan"; settings: IpvlanSettings }
  | { kind: "vlan"; settings: VlanSettings }
  | { kind: "dummy"; settings: Record<string, never> };

const formats: Record<LinkType["kind"], () => LinkFormat<LinkType["settings"]>> = {
  macvlan: () =>
    (require("../../ffi/netlink/route/kinds/macvlan.ts") as typeof import("../../ffi/netlink/route/kinds/macvlan.ts"))
      .macvlan,
  ipvlan: () =>
    (require("../../ffi/netlink/route/kinds/ipvlan.ts") as typeof import("../../ffi/netlink/route/kinds/ipvlan.ts"))
      .ipvlan,
  vlan: () =>
    (require("../../ffi/netlink/route/kinds/vlan.ts") as typeof import("../../ffi/netlink/route/kinds/vlan.ts")).vlan,
  dummy: () =>
    (require("../../ffi/netlink/route/kinds/dummy.ts") as typeof import("../../ffi/netlink/route/kinds/dummy.ts"))
      .dummy,
};

export interface ContainerLinkSpec {
  ifName: string;
  type: LinkType;
  /** Left out: the kernel picks one, or gives it the master's. */
  mac?: string;
  /** Left out: the master's, or the kernel's choice. */
  mtu?: number;
  /** Left out: it needs none; or, when restated, nobody can tell which it was. */
  master?: Master;
  /** What it is called until it is renamed. Only where a link of the host has its name, else "" or left out. */
  birthName?: string;
}

export const containerLinkKind: ResourceKind<ContainerLinkSpec, { mac: string }> = {
  kind: "container-link",
  isContainerLink: true,
  unmade: { mac: "" },
  requireRoom(spec, host) {
    if (linkIndex(host.container!.route, spec.ifName) !== undefined) throw taken(spec);
  },
  apply(spec, host) {
    const { ifName, type, mac, mtu, master } = spec;
    const container = host.container!;
    const socket = socketOf(spec, host);
    const link = master && linkIndex(socket, master.name);
    if (master !== undefined && link === undefined) throw refused(spec, "Link not found");
    const netnsFd = socket === container.route ? undefined : container.netnsFd;
    const address = mac === undefined ? undefined : parseMac(mac);
    const kind = formats[type.kind]().kind(type.settings);
    const request: NewLink = { ifName, kind, address, mtu, link, netnsFd };
    try {
      addLink(socket, request);
    } catch (error) {
      undoUnlessRefused(error, () => containerLinkKind.remove(spec, host));
      const namesake = isNetlinkError(error, EEXIST);
      if (namesake && linkIndex(container.route, ifName) !== undefined) throw taken(spec, error);
      if (!namesake || !spec.birthName) throw refused(spec, (error as Error).message, error);
      bearAndRename(spec, socket, request, host);
    }
    try {
      return { mac: mac ?? linkMac(container.route, ifName)! };
    } catch (error) {
      undoAfter(error, () => containerLinkKind.remove(spec, host));
      throw error;
    }
  },
  remove({ ifName, birthName, type }, host) {
    if (host.container === undefined) return;
    const { route, inside } = host.container;
    const { removeLink } = require(
      "../../ffi/netlink/route/remove-link.ts",
    ) as typeof import("../../ffi/netlink/route/remove-link.ts");
    // CNI_IFNAME is this attachment's, whoever made it; a link of another kind is not what this was about.
    for (const name of [ifName, birthName]) {
      if (name && getLink(route, name)?.kind === type.kind) removeLink(route, name, inside);
    }
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
    const told: Record<string, unknown> = link.kindData ? { ...formats[type.kind]().settings(link.kindData) } : {};
    for (const [key, wanted] of Object.entries(type.settings)) {
      const is = told[key];
      // Not everything is asked for, and old kernels do not tell everything.
      if (wanted === undefined || is === undefined || is === wanted) continue;
      differences.push(`container ${type.kind} ${key} ${is} does not match expected value: ${wanted}`);
    }
    // Of the others, as with the reference plugins, it may be what a later plugin wants.
    if (type.kind === "vlan" && mtu !== undefined && link.mtu !== mtu) {
      differences.push(`configured MTU of ${ifName} is ${mtu}, current value is ${link.mtu}`);
    }
    return differences;
  },
  repair({ ifName, type, mtu }, host) {
    const { route } = host.container!;
    const link = getLink(route, ifName);
    if (link?.kind !== type.kind) throw new Error(`the ${type.kind} ${ifName} is not there any more`);
    setLink(route, link, { mtu, kind: formats[type.kind]().kind(type.settings) });
  },
  describe: ({ ifName, type, master }) =>
    `${type.kind} ${ifName} in the container${master === undefined ? "" : ` on ${master.name}`}`,
};

export const containerLink = resource(containerLinkKind);

/** For `birthName`: a name nothing has, where the kernel may refuse the final one. */
export function freshBirthName(ifName: string, host: Host): string {
  if (linkIndex(host.route, ifName) === undefined) return "";
  const { freshHostName } = require("./veth.ts") as typeof import("./veth.ts");
  return freshHostName(host);
}

function socketOf({ master }: ContainerLinkSpec, host: Host): NetlinkSocket {
  return master === undefined || master.inContainer ? host.container!.route : host.route;
}

function bearAndRename(spec: ContainerLinkSpec, socket: NetlinkSocket, request: NewLink, host: Host) {
  const name = spec.birthName!;
  const { route } = host.container!;
  try {
    addLink(socket, { ...request, ifName: name });
  } catch (error) {
    undoUnlessRefused(error, () => containerLinkKind.remove(spec, host));
    throw refused(spec, (error as Error).message, error);
  }
  try {
    setLink(route, { index: linkIndex(route, name)!, name }, { ifName: spec.ifName });
  } catch (error) {
    undoAfter(error, () => containerLinkKind.remove(spec, host));
    const text = `failed to rename ${spec.type.kind} to "${spec.ifName}": ${(error as Error).message}`;
    throw new CniError(INTERNAL, text, "", { cause: error });
  }
}

function taken({ ifName, type }: ContainerLinkSpec, cause?: unknown): CniError {
  return nameTaken(`failed to create ${type.kind}: "${ifName}" already exists in the container`, cause);
}

/** What the kernel has no words for. */
const hints: Record<number, string> = {
  [EBUSY]: "the master belongs to a bridge or bond, or carries links of a kind that excludes this one",
  [EINVAL]: "the master is no Ethernet link, or one in mode passthru is there or is to be its only one",
};

function refused({ type, master }: ContainerLinkSpec, reason: string, cause?: unknown): CniError {
  const on = master === undefined ? "" : ` on "${master.name}"`;
  const hint = master !== undefined && isNetlinkError(cause) && cause.text === "" ? hints[cause.errno] : "";
  return new CniError(INTERNAL, `failed to create ${type.kind}${on}: ${reason}`, hint, { cause });
}
