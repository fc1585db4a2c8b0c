/** Bridges and their ports: `bridge link`, `bridge vlan` (linux/if_bridge.h). */
import { AF_BRIDGE } from "../../socket/socket.ts";
import * as ifLink from "../uapi/if-link.ts";
import { attrTable, binary, nest, u32 } from "../attrs.ts";
import { EEXIST } from "../../errno.ts";
import { insteadOfRefusal, isNetlinkError, listOf, type NetlinkSocket } from "../socket.ts";
import { RTM_DELLINK, RTM_GETLINK, RTM_NEWLINK, RTM_NEWNEIGH, RTM_SETLINK } from "../uapi/rtnetlink.ts";
import { bridgeKind, bridgePortData, linkHeader } from "./link-kinds.ts";
import { eachAttribute, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, type Writer } from "../wire.ts";
import { libc, utf8 } from "../../libc.ts";
import { ptr } from "../../native.ts";
import { addLink, listLinks } from "./link.ts";

const portAttrs = attrTable("IFLA(AF_BRIDGE)", { port: nest(ifLink.IFLA_PROTINFO, bridgePortData) });

/** `bridge link set dev … hairpin … isolated … learning …`. */
export function setBridgePort(
  socket: NetlinkSocket,
  link: { index: number; name: string },
  settings: { hairpin?: boolean; isolated?: boolean; learning?: boolean },
): void {
  const bit = (value: boolean | undefined) => value === undefined ? undefined : Number(value);
  const port = { hairpin: bit(settings.hairpin), isolated: bit(settings.isolated), learning: bit(settings.learning) };
  socket.request({
    what: `RTM_SETLINK bridge port ${link.name}`,
    type: RTM_SETLINK,
    table: portAttrs,
    fixedBytes: linkHeader.bytes,
    body: (writer) => {
      linkHeader.write(writer, { family: AF_BRIDGE, index: link.index });
      portAttrs.encode(writer, { port });
    },
  });
}

/** linux/neighbour.h: struct ndmsg, and its attributes. */
const NDMSG_BYTES = 12, NDA_LLADDR = 2;
const NUD_NOARP = 0x40, NUD_PERMANENT = 0x80;
const NTF_SELF = 0x02, NTF_MASTER = 0x04, NTF_STICKY = 0x40;
const neighbourAttrs = attrTable("NDA", { address: binary(NDA_LLADDR) });

/**
 * `bridge fdb add ADDRESS dev BRIDGE self local`: frames for the address are the host's. Returns false when they already
 * are; then nothing of the entry changes.
 */
export function addHostsEntry(socket: NetlinkSocket, bridge: PortLink, address: Uint8Array): boolean {
  return insteadOfRefusal<boolean>([EEXIST], false, () => {
    addEntry(socket, bridge, address, { state: NUD_PERMANENT, flags: NTF_SELF, mode: NLM_F_EXCL });
    return true;
  });
}

/** `bridge fdb replace ADDRESS dev PORT master static sticky`: it stays behind the port, also when it sends elsewhere. */
export function setPortsEntry(socket: NetlinkSocket, port: PortLink, address: Uint8Array): void {
  addEntry(socket, port, address, { state: NUD_NOARP, flags: NTF_MASTER | NTF_STICKY, mode: NLM_F_REPLACE });
}

function addEntry(
  socket: NetlinkSocket,
  link: PortLink,
  address: Uint8Array,
  { state, flags, mode }: { state: number; flags: number; mode: number },
): void {
  socket.request({
    what: `RTM_NEWNEIGH of ${link.name}`,
    type: RTM_NEWNEIGH,
    flags: NLM_F_CREATE | mode,
    table: neighbourAttrs,
    fixedBytes: NDMSG_BYTES,
    body: (writer) => {
      writer.u8(AF_BRIDGE).u8(0).u16(0).u32(link.index).u16(state).u8(flags).u8(0);
      neighbourAttrs.encode(writer, { address });
    },
  });
}

/** VLANs of a bridge port. */
export interface VlanRange {
  first: number;
  last: number;
  /** The VLAN of frames that arrive without a tag. */
  pvid?: boolean;
  /** Frames of this VLAN leave without a tag. */
  untagged?: boolean;
}

const requestAttrs = attrTable("IFLA(AF_BRIDGE)", { extMask: u32(ifLink.IFLA_EXT_MASK) });

/** struct bridge_vlan_info: flags u16, vid u16. One attribute a VLAN, two a range. */
function writeVlans(writer: Writer, ranges: VlanRange[]): void {
  const info = (flags: number, vid: number) =>
    writer.attribute(ifLink.IFLA_BRIDGE_VLAN_INFO, () => void writer.u16(flags).u16(vid));
  for (const { first, last, pvid, untagged } of ranges) {
    const flags = (pvid ? ifLink.BRIDGE_VLAN_INFO_PVID : 0) | (untagged ? ifLink.BRIDGE_VLAN_INFO_UNTAGGED : 0);
    if (first === last) {
      info(flags, first);
    } else {
      info(flags | ifLink.BRIDGE_VLAN_INFO_RANGE_BEGIN, first);
      info(flags | ifLink.BRIDGE_VLAN_INFO_RANGE_END, last);
    }
  }
}

type PortLink = { index: number; name: string };

function changeVlans(socket: NetlinkSocket, type: number, link: PortLink, ranges: VlanRange[]): void {
  if (ranges.length === 0) return;
  socket.request({
    what: `bridge VLANs of ${link.name}`,
    type,
    body: (writer) => {
      linkHeader.write(writer, { family: AF_BRIDGE, index: link.index });
      writer.nest(ifLink.IFLA_AF_SPEC, () => {
        writer.attribute(ifLink.IFLA_BRIDGE_FLAGS, () => void writer.u16(ifLink.BRIDGE_FLAGS_MASTER));
        writeVlans(writer, ranges);
      });
    },
  });
}

/** `bridge vlan add … master`. */
export function addPortVlans(socket: NetlinkSocket, link: PortLink, ranges: VlanRange[]): void {
  changeVlans(socket, RTM_SETLINK, link, ranges);
}

/** `bridge vlan del … master`. */
export function delPortVlans(socket: NetlinkSocket, link: PortLink, ranges: VlanRange[]): void {
  changeVlans(socket, RTM_DELLINK, link, ranges.map(({ first, last }) => ({ first, last })));
}

/** `bridge vlan show dev …`: every VLAN of the port, ranges taken apart. */
export function listPortVlans(socket: NetlinkSocket, link: PortLink): VlanRange[] {
  return listOf(
    socket,
    {
      what: "bridge VLAN dump",
      type: RTM_GETLINK,
      body: (writer) => {
        linkHeader.write(writer, { family: AF_BRIDGE });
        requestAttrs.encode(writer, { extMask: ifLink.RTEXT_FILTER_BRVLAN });
      },
    },
    ({ type, payload }, vlans) => {
      if (type !== RTM_NEWLINK || linkHeader.read(payload).index !== link.index) return;
      eachAttribute(payload.subarray(linkHeader.bytes), (attribute, spec) => {
        if (attribute !== ifLink.IFLA_AF_SPEC) return;
        eachAttribute(spec, (kind, info) => {
          if (kind !== ifLink.IFLA_BRIDGE_VLAN_INFO) return;
          const view = new DataView(info.buffer, info.byteOffset, info.byteLength);
          const flags = view.getUint16(0, true), vid = view.getUint16(2, true);
          vlans.push({
            first: vid,
            last: vid,
            pvid: (flags & ifLink.BRIDGE_VLAN_INFO_PVID) !== 0,
            untagged: (flags & ifLink.BRIDGE_VLAN_INFO_UNTAGGED) !== 0,
          });
        });
      });
    },
  );
}

/** linux/if_bridge.h, linux/sockios.h; a bridge has at most as many ports. */
const SIOCDEVPRIVATE = 0x89f0, BRCTL_GET_PORT_LIST = 7n, MOST_PORTS = 1024;

/**
 * Whether a bridge has ports. By ioctl, which fills a list of their indexes: netlink would describe every port, and
 * there may be hundreds. The kernel may be built without it.
 */
export function hasPorts(socket: NetlinkSocket, bridge: { index: number; name: string }): boolean {
  const indexes = new Int32Array(MOST_PORTS);
  const question = new BigUint64Array([BRCTL_GET_PORT_LIST, BigInt(ptr(indexes)), BigInt(MOST_PORTS), 0n]);
  const request = new Uint8Array(40); // struct ifreq: name of 16 bytes, then a union
  request.set(utf8(bridge.name).subarray(0, 15));
  new DataView(request.buffer).setBigUint64(16, BigInt(ptr(question)), true);
  if (libc.ioctl(socket.fd, SIOCDEVPRIVATE, request) >= 0) return indexes.some((index) => index !== 0);
  return listLinks(socket, { master: bridge.index }).some(({ master }) => master === bridge.index);
}

/**
 * Whether the kernel's bridges can filter VLANs, asked without making one. Where it knows VLANs, it judges this one before
 * it finds that a link has the name. No link has the number: of one that is there, kernels before 6.13 say so before
 * they load the module of bridges. True where there are no bridges.
 */
export function knowsVlanFiltering(socket: NetlinkSocket): boolean {
  const NOBODYS = 0x7fffffff, NO_VLAN = 0xfff;
  try {
    addLink(socket, { ifName: "lo", index: NOBODYS, kind: bridgeKind({ vlanOfNewPorts: NO_VLAN }) });
  } catch (error) {
    return !isNetlinkError(error, EEXIST);
  }
  throw new Error("the kernel made a second loopback link");
}
