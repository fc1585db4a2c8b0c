/**
 * A device of the host, lent to a container. Owns the move: ADD moves the device into the container's namespace, DEL moves
 * it back. If the namespace is gone, DEL restores the device that the kernel has returned to the host; if the device is
 * back under its own name, or was removed from the machine, DEL does nothing.
 *
 * The device is never anywhere else: one request moves it, renames it and stores its name on the host as its alias, where
 * the reference plugin `host-device` looks for it, too. DEL finds it by that alias, or by its index in the container, and
 * by its permanent MAC address, because the container may rename it and change everything else.
 *
 * When the namespace ends first, the kernel returns a physical device to the host under the name it had in the container,
 * or as `dev<index>` if that name is taken. Virtual devices end with the namespace.
 */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import type { Host } from "../../../contract/host.ts";
import { resource, type ResourceKind } from "../../../contract/resource.ts";
import { undoAfter } from "../../../contract/undo.ts";
import { closeFile } from "../../../ffi/files.ts";
import { getLink, type Link, linkIndex, listLinks, setLink } from "../../../ffi/netlink/route/link.ts";
import { NETLINK_ROUTE, type NetlinkSocket, openNetlink } from "../../../ffi/netlink/socket.ts";
import { inNetns, isNetnsGone, netnsCookie, openNetns, openOwnNetns } from "../../../ffi/netns.ts";
import { warn } from "../../../process/warn.ts";
import { nameTakenError } from "../shared/usable.ts";
import { atHome, awaitReturn, lentAmong, restoreReturned, takeBack, takeFromHiding } from "./return.ts";
import { LENT_LINK, type LentLinkSpec } from "./spec.ts";

export const lentLinkKind: ResourceKind<LentLinkSpec> = {
  kind: LENT_LINK,
  isContainerLink: true,
  opensLink: true,
  requireRoom({ owner: { ifName }, device }, host) {
    if (linkIndex(host.container!.route, ifName) === undefined) return;
    throw nameTakenError(`failed to move link "${device!.name}": "${ifName}" already exists in the container`);
  },
  /** Before Linux 6.15 a link does not say that it cannot be moved; but there, moving it to where it is asks the kernel. */
  judge({ device }, host) {
    const link = device && getLink(host.route, device.index);
    if (link?.isImmovable) {
      throw notMoved(
        link,
        new Error(`RTM_NEWLINK ${link.name}: invalid argument (The interface netns is immutable)`),
      );
    }
    if (link === undefined || link.isImmovable === false) return;
    const netnsFd = openOwnNetns();
    try {
      setLink(host.route, link, { netnsFd });
    } catch (error) {
      throw notMoved(link, error);
    } finally {
      closeFile(netnsFd);
    }
  },
  apply(spec, host) {
    const { route, netnsFd } = host.container!;
    const { name, index } = spec.device!, { ifName } = spec.owner;
    try {
      setLink(host.route, { index, name }, { netnsFd, newIndex: spec.index, ifName, alias: name });
    } catch (error) {
      // The kernel carries out a request step by step: the device may have moved without its new name.
      undoAfter(error, () => {
        const moved = getLink(route, spec.index!);
        if (moved !== undefined && findLent([moved], spec, host) !== undefined) {
          lentLinkKind.undo!(spec, undefined, host);
        }
      });
      throw notMoved(spec.device!, error);
    }
  },
  /** A failed ADD leaves the device as it was. DEL leaves it down, like the reference plugin. */
  undo(spec, _made, host) {
    lentLinkKind.remove(spec, host);
    const link = spec.device!.up ? atHome(spec.device!, host) : undefined;
    if (link !== undefined) setLink(host.route, link, { up: true });
  },
  remove(spec, host) {
    if (host.container !== undefined && takeBack(spec, host.container.route, host)) return;
    // CNI_NETNS may be missing, or name a namespace that took the first one's place. Without a record of ADD only the
    // path tells, and the engine has judged whose it is.
    const isBack = spec.device !== undefined && host.container?.netnsPath !== spec.netnsPath
      ? withSocketIn(spec, (route) => takeBack(spec, route, host))
      : false;
    if (isBack === true || restoreReturned(spec, host)) return;
    const { device } = spec, isNamespaceThere = host.container !== undefined || isBack === false;
    if (device === undefined || atHome(device, host)) return;
    if (isNamespaceThere && takeFromHiding(spec, device, host.container?.netnsFd, host)) return;
    // The container has deleted it, unless it is hardware.
    if (isNamespaceThere && device.kind !== undefined) return;
    if (device.kind !== undefined) warn(`"${device.name}", a ${device.kind}, ended with the container's namespace`);
    else awaitReturn(spec, device, host, isNamespaceThere);
  },
  verify(spec, host) {
    const { ifName } = spec.owner;
    const links = listLinks(host.container!.route);
    const link = links.find(({ name }) => name === ifName);
    if (link === undefined) {
      const renamed = findLent(links, spec, host);
      const hint = renamed === undefined ? "" : `: it is called ${renamed.name} now`;
      return [`Cannot find container link ${ifName}${hint}`];
    }
    if (spec.device === undefined) return [];
    const { name } = spec.device;
    if (findLent([link], spec, host) === undefined) {
      return [`container interface ${ifName} is not the host's ${name}`];
    }
    return link.alias === name ? [] : [`alias of ${ifName} is "${link.alias ?? ""}", not "${name}"`];
  },
  /** Does not lend the device again: the namespace may be another container's by now. */
  repair(spec, host) {
    const { route } = host.container!;
    const { name } = spec.device!;
    const { ifName } = spec.owner;
    const inside = findLent(listLinks(route), spec, host);
    if (inside === undefined) throw new CniError(INTERNAL, `"${name}" is not in the container any more`);
    if (inside.name !== ifName) setLink(route, inside, { up: false });
    setLink(route, inside, { ifName, alias: name, up: inside.up || undefined });
  },
  describe: ({ owner: { ifName }, device, known }) =>
    `${device?.name || known?.name || "a device"} of the host, as ${ifName} in the container`,
};

export const lentLink = resource(lentLinkKind);

/** An index for a link that moves into a namespace: the one it has if it is free there, else one above all others. */
export function freeIndex(socket: NetlinkSocket, index: number): number {
  if (getLink(socket, index) === undefined) return index;
  let highest = 0;
  for (const link of listLinks(socket)) highest = Math.max(highest, link.index);
  return highest + 1;
}

function findLent(links: readonly Link[], spec: LentLinkSpec, host: Host): Link | undefined {
  const home = openOwnNetns();
  try {
    return lentAmong(links, spec, host.container!.route, home);
  } finally {
    closeFile(home);
  }
}

function notMoved({ name }: { name: string }, error: unknown): CniError {
  return new CniError(INTERNAL, `failed to move link "${name}": ${(error as Error).message}`, "", { cause: error });
}

/** Runs `work` on a socket in the namespace of the ledger. Returns undefined when that namespace is gone. */
function withSocketIn<T>(spec: LentLinkSpec, work: (socket: NetlinkSocket) => T): T | undefined {
  let netns: number;
  try {
    netns = openNetns(spec.netnsPath);
  } catch (error) {
    if (isNetnsGone(error)) return undefined;
    throw error;
  }
  const home = openOwnNetns();
  let socket: NetlinkSocket | undefined;
  try {
    socket = inNetns(netns, home, () => openNetlink(NETLINK_ROUTE));
    if (spec.netns !== undefined && netnsCookie(socket.fd) !== spec.netns) return undefined;
    return work(socket);
  } finally {
    socket?.close();
    closeFile(home);
    closeFile(netns);
  }
}
