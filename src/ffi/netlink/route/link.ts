/**
 * Links: the verbs of `ip link`, one request each (rtnetlink(7)).
 *
 * We make links under their final name in their final namespace. Moving or renaming a link makes the kernel wait tens
 * of milliseconds for every processor to forget the old place; we do that only to devices that cannot be made.
 */
import * as ifLink from "../uapi/if-link.ts";
import { formatMac } from "../../../net/mac.ts";
import { EINVAL, ENODEV, EOPNOTSUPP, SyscallError } from "../../errno.ts";
import { lastErrno, libc, utf8 } from "../../libc.ts";
import { attrTable, binary, custom, nest, text, u32, u8 } from "../attrs.ts";
import {
  isNetlinkError,
  listOf,
  NetlinkError,
  type NetlinkRequest,
  type NetlinkSocket,
  tryRequest,
} from "../socket.ts";
import { NLM_F_CREATE, NLM_F_EXCL, type Writer } from "../wire.ts";
import { RTM_DELLINK, RTM_DELLINKPROP, RTM_GETLINK, RTM_NEWLINK, RTM_NEWLINKPROP } from "../uapi/rtnetlink.ts";
import { linkHeader, type LinkKind } from "./link-kinds.ts";
import { altNameList, decodeLink, type Link, type PacketLimits, packetLimits } from "./link-reading.ts";

export type { Link } from "./link-reading.ts";

const linkInfoAttrs = attrTable("IFLA_LINKINFO", {
  kind: text(ifLink.IFLA_INFO_KIND),
  data: custom<(writer: Writer) => void>(ifLink.IFLA_INFO_DATA, {
    nested: true,
    write: (writer, write) => write(writer),
    read: () => () => {},
  }),
});

const linkAttrs = attrTable("IFLA", {
  ifName: text(ifLink.IFLA_IFNAME),
  address: binary(ifLink.IFLA_ADDRESS),
  broadcast: binary(ifLink.IFLA_BROADCAST),
  mode: u8(ifLink.IFLA_LINKMODE),
  mtu: u32(ifLink.IFLA_MTU),
  link: u32(ifLink.IFLA_LINK),
  master: u32(ifLink.IFLA_MASTER),
  txQueueLength: u32(ifLink.IFLA_TXQLEN),
  group: u32(ifLink.IFLA_GROUP),
  ...packetLimits,
  netnsFd: u32(ifLink.IFLA_NET_NS_FD),
  netnsId: u32(ifLink.IFLA_TARGET_NETNSID),
  newIndex: u32(ifLink.IFLA_NEW_IFINDEX),
  alias: text(ifLink.IFLA_IFALIAS),
  extMask: u32(ifLink.IFLA_EXT_MASK),
  altNames: altNameList,
  altName: text(ifLink.IFLA_ALT_IFNAME),
  linkInfo: nest(ifLink.IFLA_LINKINFO, linkInfoAttrs),
});

/** Longer names can only be alternative names. */
const LONGEST_NAME = 15;

export interface NewLink {
  ifName: string;
  /** Without one the kernel picks it. It has to be free in the socket's namespace, too. */
  index?: number;
  kind: LinkKind;
  address?: Uint8Array;
  mtu?: number;
  /** The parent link, in the socket's namespace. */
  link?: number;
  master?: number;
  txQueueLength?: number;
  netnsFd?: number;
  up?: boolean;
}

/**
 * `ip link add`. Fails with EEXIST when the name is taken. Before Linux 6.15 the name must also be free in the socket's
 * namespace when the link is made in another.
 */
export function addLink(socket: NetlinkSocket, { kind, up, index, ...attributes }: NewLink): void {
  const what = `RTM_NEWLINK ${attributes.ifName}`;
  if (attributes.ifName.includes("%")) throw new NetlinkError(what, EINVAL, "the kernel would put a number for %d");
  const flags = up ? ifLink.IFF_UP : 0;
  socket.request({
    what,
    type: RTM_NEWLINK,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    table: linkAttrs,
    fixedBytes: linkHeader.bytes,
    body: (writer) => {
      linkHeader.write(writer, { index, flags, change: flags });
      linkAttrs.encode(writer, { ...attributes, linkInfo: { kind: kind.name, data: kind.write } });
    },
  });
}

export interface LinkChange extends PacketLimits {
  /** The namespace to move it to. The kernel sets it down, and applies the other changes there. */
  netnsFd?: number;
  /** Its index there (Linux 5.13); without one it keeps its index when that is free. */
  newIndex?: number;
  alias?: string;
  /** The new name. The link has to be down, and the kernel waits for every processor to forget the old name. */
  ifName?: string;
  address?: Uint8Array;
  broadcast?: Uint8Array;
  mode?: number;
  mtu?: number;
  master?: number;
  txQueueLength?: number;
  up?: boolean;
  group?: number;
  promiscuous?: boolean;
  allMulticast?: boolean;
  /** All of `SETTABLE_FLAGS`, as `Link.flags` has them. */
  flags?: number;
  /** The kind it has already, with other settings. */
  kind?: LinkKind;
}

/** What anyone who may change a link can choose, but for whether it is up. */
export const SETTABLE_FLAGS = ifLink.IFF_DEBUG | ifLink.IFF_NOTRAILERS | ifLink.IFF_NOARP | ifLink.IFF_PROMISC |
  ifLink.IFF_ALLMULTI | ifLink.IFF_MULTICAST | ifLink.IFF_PORTSEL | ifLink.IFF_AUTOMEDIA | ifLink.IFF_DYNAMIC;

/** `ip link set`. */
export function setLink(socket: NetlinkSocket, link: { index: number; name: string }, change: LinkChange): void {
  const { up, promiscuous, allMulticast, flags: all, kind, ...attributes } = change;
  let [flags, mask] = all === undefined ? [0, 0] : [all & SETTABLE_FLAGS, SETTABLE_FLAGS];
  const set = (isOn: boolean | undefined, flag: number) => {
    if (isOn !== undefined) [flags, mask] = [flags | (isOn ? flag : 0), mask | flag];
  };
  set(up, ifLink.IFF_UP);
  set(promiscuous, ifLink.IFF_PROMISC);
  set(allMulticast, ifLink.IFF_ALLMULTI);
  socket.request({
    what: `RTM_NEWLINK ${link.name}`,
    type: RTM_NEWLINK,
    table: linkAttrs,
    fixedBytes: linkHeader.bytes,
    body: (writer) => {
      linkHeader.write(writer, { index: link.index, flags, change: mask });
      linkAttrs.encode(writer, { ...attributes, linkInfo: kind && { kind: kind.name, data: kind.write } });
    },
  });
}

/** So many of the longest fit into a request. */
const NAMES_AT_ONCE = 100;

/** `ip link property add`, or `del`, for alternative names (`Link.altNames`). */
export function changeAltNames(
  socket: NetlinkSocket,
  { index, name }: { index: number; name: string },
  change: "add" | "del",
  names: readonly string[],
): void {
  for (let at = 0; at < names.length; at += NAMES_AT_ONCE) {
    socket.request({
      what: `${change === "add" ? "RTM_NEWLINKPROP" : "RTM_DELLINKPROP"} ${name}`,
      type: change === "add" ? RTM_NEWLINKPROP : RTM_DELLINKPROP,
      body: (writer) => {
        linkHeader.write(writer, { index });
        linkAttrs.encode(writer, { altNames: names.slice(at, at + NAMES_AT_ONCE) });
      },
    });
  }
}

/** `ip link del`. The kernel answers when every processor has forgotten the device, after 15 ms or more. */
export function delLink(socket: NetlinkSocket, ifName: string): "deleted" | "absent" {
  return deleteLink(socket, ifName, (writer) => linkMessage(writer, ifName));
}

/** Another link that has the name by now stays. `netnsId`: as for `listLinks`. */
export function delLinkByIndex(
  socket: NetlinkSocket,
  { index, name }: { index: number; name: string },
  netnsId?: number,
): "deleted" | "absent" {
  return deleteLink(socket, name, (writer) => {
    linkHeader.write(writer, { index });
    linkAttrs.encode(writer, { netnsId });
  });
}

function deleteLink(socket: NetlinkSocket, name: string, body: (writer: Writer) => void): "deleted" | "absent" {
  return tryRequest(socket, { what: `RTM_DELLINK ${name}`, type: RTM_DELLINK, body }, [ENODEV])
    ? "deleted"
    : "absent";
}

/** Header and name, which begin a request on an existing link. */
export function linkMessage(writer: Writer, ifName: string): void {
  linkHeader.write(writer, {});
  linkAttrs.encode(writer, { ifName });
}

/** `ip link show`, by name, alternative name or index. */
export function getLink(socket: NetlinkSocket, which: string | number): Link | undefined {
  let found: Link | undefined;
  const request: NetlinkRequest = {
    what: `RTM_GETLINK ${which}`,
    type: RTM_GETLINK,
    body: (writer) => {
      linkHeader.write(writer, typeof which === "number" ? { index: which } : {});
      const name = typeof which !== "string"
        ? {}
        : which.length > LONGEST_NAME
        ? { altName: which }
        : { ifName: which };
      linkAttrs.encode(writer, { ...name, extMask: ifLink.RTEXT_FILTER_SKIP_STATS });
    },
  };
  tryRequest(socket, request, [ENODEV], ({ type, payload }) => {
    if (type === RTM_NEWLINK) found = decodeLink(payload);
  });
  return found;
}

/** All links of the socket's namespace, or of the one that it knows by `netnsId`; with `master` the ports of that bridge. */
export function listLinks(
  socket: NetlinkSocket,
  { master, netnsId }: { master?: number; netnsId?: number } = {},
): Link[] {
  return listOf(
    socket,
    {
      what: "RTM_GETLINK dump",
      type: RTM_GETLINK,
      body: (writer) => {
        linkHeader.write(writer, {});
        linkAttrs.encode(writer, { master, netnsId, extMask: ifLink.RTEXT_FILTER_SKIP_STATS });
      },
    },
    ({ type, payload }, links) => void (type === RTM_NEWLINK && links.push(decodeLink(payload))),
  );
}

/**
 * The link's index by ioctl (netdevice(7), SIOCGIFINDEX). Unlike a netlink request, it does not wait for the kernel's
 * configuration lock, which removing a link holds for long.
 */
export function linkIndex(socket: NetlinkSocket, ifName: string): number | undefined {
  if (ifName.length > LONGEST_NAME) return getLink(socket, ifName)?.index;
  const SIOCGIFINDEX = 0x8933;
  return askAbout(socket, ifName, SIOCGIFINDEX)?.getInt32(16, true);
}

/** Whether there is a link with the index, by ioctl as well (SIOCGIFNAME). */
export function hasLinkAt(socket: NetlinkSocket, index: number): boolean {
  const SIOCGIFNAME = 0x8910;
  const request = new Uint8Array(40); // struct ifreq: the name of 16 bytes is the answer
  new DataView(request.buffer).setInt32(16, index, true);
  if (libc.ioctl(socket.fd, SIOCGIFNAME, request) === 0) return true;
  const errno = lastErrno();
  if (errno === ENODEV) return false;
  throw new SyscallError("ioctl SIOCGIFNAME", errno, `${index}`);
}

/** The MAC address of an Ethernet link by ioctl (SIOCGIFHWADDR). */
export function linkMac(socket: NetlinkSocket, ifName: string): string | undefined {
  const SIOCGIFHWADDR = 0x8927;
  const answer = askAbout(socket, ifName, SIOCGIFHWADDR);
  return answer && formatMac(new Uint8Array(answer.buffer, 18, 6));
}

function askAbout(socket: NetlinkSocket, ifName: string, question: number): DataView | undefined {
  const request = new Uint8Array(40); // struct ifreq: name of 16 bytes, then a union
  request.set(utf8(ifName).subarray(0, 15));
  if (libc.ioctl(socket.fd, question, request) === 0) return new DataView(request.buffer);
  const errno = lastErrno();
  if (errno === ENODEV) return undefined;
  throw new SyscallError("ioctl SIOCGIF", errno, ifName);
}

/**
 * Whether the kernel can make links of a kind, asked without making one: it looks for the kind, and loads its module,
 * before it rejects the name.
 */
export function knowsLinkKind(socket: NetlinkSocket, kind: string): boolean {
  const IMPOSSIBLE = "/";
  try {
    addLink(socket, { ifName: IMPOSSIBLE, kind: { name: kind } });
  } catch (error) {
    if (isNetlinkError(error, EINVAL)) return true;
    if (isNetlinkError(error, EOPNOTSUPP)) return false;
    throw error;
  }
  throw new Error(`the kernel made a link named ${IMPOSSIBLE}`);
}
