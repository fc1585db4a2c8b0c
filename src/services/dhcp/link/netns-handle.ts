/**
 * The container's namespace, open for as long as it is used: an open descriptor would keep a deleted namespace and the
 * links in it.
 */
import { errorText } from "../../../cni/error.ts";
import { closeFile } from "../../../ffi/files.ts";
import { firstAddress, type LinkAddress } from "../../../ffi/netlink/route/address.ts";
import { getLink, type Link } from "../../../ffi/netlink/route/link.ts";
import { NETLINK_ROUTE, type NetlinkSocket, openNetlink } from "../../../ffi/netlink/socket.ts";
import { inNetns, netnsCookie, openNetns, openOwnNetns } from "../../../ffi/netns.ts";

export interface LinkLocation {
  netnsPath: string;
  /** Undefined for an ADD, and on kernels without one. */
  cookie?: string;
  ifName: string;
  /** Undefined for an ADD. */
  mac?: string;
}

/** The namespace or the link is not there any more, or is another container's. */
export class LinkGone extends Error {}

let home: number | undefined;

export class NetnsHandle {
  private constructor(private readonly netns: number, readonly route: NetlinkSocket, readonly link: Link) {}

  /** `netns`: an open descriptor of the namespace, which the handle closes. Throws LinkGone. */
  static open(at: LinkLocation, netns = open(at.netnsPath)): NetnsHandle {
    let route: NetlinkSocket | undefined;
    try {
      home ??= openOwnNetns();
      route = inNetns(netns, home, () => openNetlink(NETLINK_ROUTE));
      const cookie = netnsCookie(route.fd), link = getLink(route, at.ifName);
      if (at.cookie !== undefined && cookie !== at.cookie) {
        throw new LinkGone(`the namespace at ${at.netnsPath} is another one now`);
      }
      // The reference plugin's words.
      if (link === undefined) throw new LinkGone(`error looking up "${at.ifName}": Link not found`);
      if (at.mac !== undefined && link.mac !== at.mac) {
        throw new LinkGone(`${at.ifName} has the hardware address ${link.mac} now, not ${at.mac}`);
      }
      return new NetnsHandle(netns, route, link);
    } catch (error) {
      route?.close();
      closeFile(netns);
      throw error;
    }
  }

  get cookie(): string | undefined {
    return netnsCookie(this.route.fd);
  }

  /** The link's first address that is meant, if it is among the first. See `firstAddress`. */
  address(family: number, isMeant: (address: LinkAddress) => boolean): LinkAddress | undefined {
    const socket = this.inside(() => openNetlink(NETLINK_ROUTE));
    try {
      return firstAddress(socket, this.link.index, family, isMeant);
    } finally {
      socket.close();
    }
  }

  /** `work` must be synchronous and short. */
  inside<T>(work: () => T): T {
    return inNetns(this.netns, home!, work);
  }

  close(): void {
    this.route.close();
    closeFile(this.netns);
  }
}

/** The handle of several users: it is opened for the first, and closed when the last does not need it any more. */
export class SharedHandle {
  private users = 0;

  constructor(private readonly at: LinkLocation, private handle?: NetnsHandle) {}

  /** Throws LinkGone. */
  open(): NetnsHandle {
    const handle = this.handle ??= NetnsHandle.open(this.at);
    this.users++;
    return handle;
  }

  close(): void {
    this.users--;
    if (this.users <= 0) this.closeForAll();
  }

  closeForAll(): void {
    this.handle?.close();
    this.handle = undefined;
    this.users = 0;
  }

  canBeOpened(): boolean {
    try {
      this.open();
      this.close();
      return true;
    } catch (error) {
      if (error instanceof LinkGone) return false;
      throw error;
    }
  }
}

function open(path: string): number {
  try {
    return openNetns(path);
  } catch (error) {
    throw new LinkGone(errorText(error), { cause: error });
  }
}
