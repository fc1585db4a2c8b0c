/**
 * The master that a macvlan, ipvlan or vlan link is created on: a link of the host or, with `linkInContainer`, of the
 * container. Without a name it is the link of the default route.
 */
import { AF_INET, AF_INET6 } from "../../../ffi/socket/socket.ts";
import { CniError, INVALID_CONFIG, PLUGIN_NOT_AVAILABLE } from "../../../cni/error.ts";
import type { Host } from "../../../contract/host.ts";
import { getLink, knowsLinkKind, type Link } from "../../../ffi/netlink/route/link.ts";
import { listRoutes } from "../../../ffi/netlink/route/route.ts";
import { IFF_LOOPBACK } from "../../../ffi/netlink/uapi/if-link.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";

export interface Master {
  name: string;
  inContainer: boolean;
}

/** The master in the words of the configuration. */
export interface MasterChoice {
  /** "": the link of the default route. */
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
      `"master" must name a link of ${where}`,
    );
  }
  throw new CniError(
    INVALID_CONFIG,
    "no default route interface found",
    `${where} has no default route: set "master" to the name of a link`,
  );
}

/** The master as far as the configuration tells, for DEL and CHECK without a ledger. */
export function configuredMaster({ master, linkInContainer }: MasterChoice): Master | undefined {
  return master === "" ? undefined : { name: master, inContainer: linkInContainer };
}

/** An MTU of 0 means the master's. */
export function requireMtuOf(master: Link, mtu: number): void {
  if (mtu >= 0 && mtu <= master.mtu) return;
  throw new CniError(INVALID_CONFIG, `invalid MTU ${mtu}, must be [0, master MTU(${master.mtu})]`);
}

/** For STATUS: throws if no link of the kind can be created now, as far as that depends on the host. */
export function requireHostFor(
  kind: string,
  choice: MasterChoice | undefined,
  host: Host,
  requireMaster: (master: Link) => void = () => {},
): void {
  if (!knowsLinkKind(host.route, kind)) {
    throw new CniError(PLUGIN_NOT_AVAILABLE, `this kernel has no ${kind} links`);
  }
  if (choice === undefined || choice.linkInContainer) return;
  try {
    requireMaster(findMaster(choice, host));
  } catch (error) {
    if (!(error instanceof CniError)) throw error;
    throw new CniError(PLUGIN_NOT_AVAILABLE, error.message, error.details, { cause: error });
  }
}

/** Looks in the main table, IPv4 before IPv6. Takes the first of several next hops. */
function defaultRouteLink(socket: NetlinkSocket): Link | undefined {
  for (const family of [AF_INET, AF_INET6]) {
    for (const { dst, oif } of listRoutes(socket, family)) {
      const link = dst.bits === 0 && oif !== 0 ? getLink(socket, oif) : undefined;
      // The kernel reports IPv6 routes that lead nowhere on the loopback link.
      if (link !== undefined && (link.flags & IFF_LOOPBACK) === 0) return link;
    }
  }
  return undefined;
}
