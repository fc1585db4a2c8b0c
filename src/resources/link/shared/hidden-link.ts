/**
 * A link of the container's that is not where ADD made it. The container may have deleted it: then there is nothing to do.
 * Or it has made another one in its place, or moved it to a namespace of its own, where it is still on the host's network.
 *
 * Nobody can give a link that is upon the host's another master, or make one upon the host's without having one. So what is
 * upon the same master, in the container's namespaces, and no attachment's, is this link or one made from it. Only what
 * cannot be anybody else's is removed: it has the name, the MAC address or the index that ADD chose. For the rest DEL says
 * who holds it, and fails.
 */
import { CniError, TRY_AGAIN_LATER } from "../../../cni/error.ts";
import type { Host } from "../../../contract/host.ts";
import { NO_OWNER } from "../../../contract/owner.ts";
import { EINVAL } from "../../../ffi/errno.ts";
import { someOtherNamespace } from "../../../ffi/other-namespaces.ts";
import { closeFile } from "../../../ffi/files.ts";
import { delLinkByIndex, type Link, linkIndex, listLinks } from "../../../ffi/netlink/route/link.ts";
import { netnsIdIn, netnsIds } from "../../../ffi/netlink/route/netns-id.ts";
import { isNetlinkError, type NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { openOwnNetns } from "../../../ffi/netns.ts";

/** What ADD made. */
export interface Sought {
  /** The kind's name in ledgers. */
  resource: string;
  ifName: string;
  /** The kind of link. */
  kind: string;
  index: number;
  /** Undefined or "" when it says nothing: the link has its master's. */
  mac: string | undefined;
  /** The master's name. Undefined when it has none on the host: then the host need not care for what is like it. */
  master: string | undefined;
  /** The master has no other one that is like it. */
  isOnly?: (link: Link) => boolean;
}

/** Removes it wherever it is, and throws when a link is left that may be it. */
export function removeHidden(sought: Sought, host: Host): void {
  const { route, netnsFd } = host.container!, home = openOwnNetns(), left = new Map<string, string>();
  // This attachment's own ledger counts, too: it may have links of earlier ADDs, each with an entry of its own.
  const recorded = host.recordedByOthers(sought.resource, NO_OWNER);
  const isAnothers = (link: Link) => recorded.some((spec) => isOf(spec as Recorded, link));
  const leave = (link: Link, where: string) => left.set(`${link.index} ${link.mac}`, `"${link.name}" in ${where}`);
  const lookInto = (socket: NetlinkSocket, where: string, isContainers: boolean, netnsId?: number) => {
    for (const link of alikeIn(socket, home, sought, host, netnsId)) {
      if (link.index === sought.index || (isContainers && sought.isOnly?.(link))) {
        delLinkByIndex(socket, link, netnsId);
      } else if (isInDoubt(link, sought, isContainers) && !isAnothers(link)) leave(link, where);
    }
  };
  // A namespace with a number here need not be this container's: another one that is linked with it has a number, too.
  const lookBeyond = (socket: NetlinkSocket) => {
    for (const netnsId of netnsMovedTo(socket, home)) {
      whileThere(() =>
        lookInto(socket, "a network namespace of the container's", sought.master !== undefined, netnsId)
      );
    }
  };
  try {
    for (const link of alikeIn(route, home, sought, host)) {
      if (link.name === sought.ifName || isSame(link, sought) || sought.isOnly?.(link)) delLinkByIndex(route, link);
      else if (sought.master !== undefined && !isAnothers(link)) leave(link, "the container");
    }
    lookBeyond(route);
    someOtherNamespace(netnsFd, ({ socket, holder, isContainers }) => {
      lookInto(socket, `a network namespace of ${holder}`, isContainers);
      if (isContainers) lookBeyond(socket);
      return false;
    });
  } finally {
    closeFile(home);
  }
  if (left.size === 0) return;
  const { kind, ifName, master } = sought;
  throw new CniError(
    TRY_AGAIN_LATER,
    `the container's ${kind} "${ifName}" is not where it was made, and may be ${[...left.values()].join(", or ")}`,
    `${master === undefined ? "" : `it is upon "${master}"; `}delete it or end what holds it, then call DEL again`,
  );
}

/**
 * The kernel gives a number to a namespace into which a link is moved, and keeps it while anything holds the namespace, be
 * it a socket.
 */
function netnsMovedTo(route: NetlinkSocket, home: number): number[] {
  // In this order: a number that the host's gets in between is not among them.
  const ids = netnsIds(route), host = netnsIdIn(route, home);
  return ids.filter((id) => id !== host);
}

/** A number is listed until the kernel has cleaned up behind its namespace. */
function whileThere(look: () => void): void {
  try {
    look();
  } catch (error) {
    if (!isNetlinkError(error, EINVAL)) throw error;
  }
}

function isInDoubt(link: Link, { mac, master }: Sought, isContainers: boolean): boolean {
  const isAlike = link.mac !== "" && link.mac === mac;
  return master === undefined ? isContainers && isAlike : isContainers || isAlike;
}

interface Recorded {
  ifName?: string;
  index?: number;
}

/** ADD did not choose the index of a tap that ip(8) made: its name identifies it. */
function isOf({ index, ifName }: Recorded, link: Link): boolean {
  return index === undefined ? ifName === link.name : index === link.index;
}

function isSame(link: Link, { index, mac }: Sought): boolean {
  return link.index === index || (link.mac !== "" && link.mac === mac);
}

/** The links of that kind, and upon the master on the host. */
function alikeIn(
  socket: NetlinkSocket,
  home: number,
  { kind, master }: Sought,
  host: Host,
  netnsId?: number,
): Link[] {
  const links = listLinks(socket, { netnsId }).filter((link) => link.kind === kind);
  if (master === undefined || links.length === 0) return links;
  const hostId = netnsIdIn(socket, home, netnsId);
  // The host may have renamed it.
  const index = linkIndex(host.route, master);
  return links.filter(({ link, linkNetnsId }) =>
    linkNetnsId !== undefined && linkNetnsId === hostId && (index === undefined || link === index)
  );
}
