/**
 * The link that a container's is put upon: `master` of macvlan, ipvlan and vlan, on the host or, with
 * `linkInContainer`, in the container. Without a name it is that of the default route.
 */
import { CniError, INVALID_CONFIG, PLUGIN_NOT_AVAILABLE } from "../../cni/error.ts";
import type { Host } from "../../contract/host.ts";
import { getLink, type Link } from "../../ffi/netlink/route/link.ts";
import { IFF_LOOPBACK } from "../../ffi/netlink/uapi/if-link.ts";
import { AF_INET, AF_INET6 } from "../../ffi/netlink/uapi/rtnetlink.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";

export interface Master {
  name: string;
  inContainer: boolean;
}

/** As the configuration has it. */
export interface MasterChoice {
  /** "": the default route's. */
  master: string;
  linkInContainer: boolean;
}

export function findMaster({ master, linkInContainer }: MasterChoice, host: Host): Link {
  const socket = linkInContainer ? host.container!.route : host.route;
  const link = master === "" ? defaultRouteLink(socket) : getLink(socket, master);
  if (link !== undefined) return link;
  const where = linkInContainer ? "the container" : "the host";
  if (master !== "") {
    throw new CniError(
      INVALID_CONFIG,
      `failed to lookup master "${master}": Link not found`,
      `"master" has to name a link of ${where}`,
    );
  }
  throw new CniError(
    INVALID_CONFIG,
    "no default route interface found",
    `${where} has no default route: name a link by "master"`,
  );
}

/** For DEL and CHECK without a ledger, which know no more than the configuration says. */
export function knownMaster({ master, linkInContainer }: MasterChoice): Master | undefined {
  return master === "" ? undefined : { name: master, inContainer: linkInContainer };
}

/** 0 stands for the master's. */
export function requireMtuOf(master: Link, mtu: number): void {
  if (mtu >= 0 && mtu <= master.mtu) return;
  throw new CniError(INVALID_CONFIG, `invalid MTU ${mtu}, must be [0, master MTU(${master.mtu})]`);
}

/** For STATUS: whether a link of the kind could be made now, as far as the host, and not the container, decides it. */
export function requireHostFor(
  kind: string,
  choice: MasterChoice | undefined,
  host: Host,
  requireOf: (master: Link) => void = () => {},
): void {
  const { knowsLinkKind } = require(
    "../../ffi/netlink/route/known-kind.ts",
  ) as typeof import("../../ffi/netlink/route/known-kind.ts");
  if (!knowsLinkKind(host.route, kind)) {
    throw new CniError(PLUGIN_NOT_AVAILABLE, `this kernel has no ${kind} links`);
  }
  if (choice === undefined || choice.linkInContainer) return;
  try {
    requireOf(findMaster(choice, host));
  } catch (error) {
    if (!(error instanceof CniError)) throw error;
    throw new CniError(PLUGIN_NOT_AVAILABLE, error.message, error.details, { cause: error });
  }
}

/** In the main table, version 4 before version 6; the first of several next hops. */
function defaultRouteLink(socket: NetlinkSocket): Link | undefined {
  const { listRoutes } = require(
    "../../ffi/netlink/route/route.ts",
  ) as typeof import("../../ffi/netlink/route/route.ts");
  for (const family of [AF_INET, AF_INET6]) {
    for (const { dst, oif } of listRoutes(socket, family)) {
      const link = dst.bits === 0 && oif !== 0 ? getLink(socket, oif) : undefined;
      // Version 6 has the loopback in routes that lead nowhere.
      if (link !== undefined && (link.flags & IFF_LOOPBACK) === 0) return link;
    }
  }
  return undefined;
}
