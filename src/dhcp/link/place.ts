/**
 * The container's namespace, open for as long as it is used: an open descriptor would keep a deleted namespace and the
 * links in it.
 */
import { errorText } from "../../cni/error.ts";
import { closeFile } from "../../ffi/files.ts";
import { getLink, type Link } from "../../ffi/netlink/route/link.ts";
import { NETLINK_ROUTE, type NetlinkSocket, openNetlink } from "../../ffi/netlink/socket.ts";
import { inNetns, netnsCookie, openNetns, openOwnNetns } from "../../ffi/netns.ts";

export interface Place {
  netnsPath: string;
  /** Undefined for an ADD, and on kernels without one. */
  cookie?: string;
  ifName: string;
  /** Undefined for an ADD. */
  mac?: string;
}

/** The namespace or the link is not there any more, or is another container's. */
export class PlaceGone extends Error {}

let home: number | undefined;

export class NetnsHandle {
  private constructor(private readonly netns: number, readonly route: NetlinkSocket, readonly link: Link) {}

  /** `netns`: an open descriptor of the namespace, which the visit closes. Throws PlaceGone. */
  static begin(place: Place, netns = open(place.netnsPath)): Visit {
    let route: NetlinkSocket | undefined;
    try {
      home ??= openOwnNetns();
      route = inNetns(netns, home, () => openNetlink(NETLINK_ROUTE));
      const cookie = netnsCookie(route.fd), link = getLink(route, place.ifName);
      if (place.cookie !== undefined && cookie !== place.cookie) {
        throw new PlaceGone(`the namespace at ${place.netnsPath} is another one now`);
      }
      // The reference plugin's words.
      if (link === undefined) throw new PlaceGone(`error looking up "${place.ifName}": Link not found`);
      if (place.mac !== undefined && link.mac !== place.mac) {
        throw new PlaceGone(`${place.ifName} has the hardware address ${link.mac} now, not ${place.mac}`);
      }
      return new Visit(netns, route, link);
    } catch (error) {
      route?.close();
      closeFile(netns);
      throw error;
    }
  }

  get cookie(): string | undefined {
    return netnsCookie(this.route.fd);
  }

  /** `work` must be synchronous and short. */
  inside<T>(work: () => T): T {
    return inNetns(this.netns, home!, work);
  }

  end(): void {
    this.route.close();
    closeFile(this.netns);
  }
}

function open(path: string): number {
  try {
    return openNetns(path);
  } catch (error) {
    throw new PlaceGone(errorText(error), { cause: error });
  }
}
