/** VLANs of a bridge port: `bridge vlan` (linux/if_bridge.h). */
import { attrTable, u32 } from "../attrs.ts";
import type { NetlinkSocket } from "../socket.ts";
import { eachAttribute, type Writer } from "../wire.ts";
import {
  BRIDGE_FLAGS_MASTER,
  BRIDGE_VLAN_INFO_PVID,
  BRIDGE_VLAN_INFO_RANGE_BEGIN,
  BRIDGE_VLAN_INFO_RANGE_END,
  BRIDGE_VLAN_INFO_UNTAGGED,
  IFLA_AF_SPEC,
  IFLA_BRIDGE_FLAGS,
  IFLA_BRIDGE_VLAN_INFO,
  IFLA_EXT_MASK,
  RTEXT_FILTER_BRVLAN,
} from "../uapi/if-link.ts";
import { AF_BRIDGE, RTM_DELLINK, RTM_GETLINK, RTM_NEWLINK, RTM_SETLINK } from "../uapi/rtnetlink.ts";
import { linkHeader } from "./link-header.ts";

export interface VlanRange {
  first: number;
  last: number;
  /** The VLAN of frames that arrive without a tag. */
  pvid?: boolean;
  /** Frames of this VLAN leave without a tag. */
  untagged?: boolean;
}

const requestAttrs = attrTable("IFLA(AF_BRIDGE)", { extMask: u32(IFLA_EXT_MASK) });

/** struct bridge_vlan_info: flags u16, vid u16. One attribute a VLAN, two a range. */
function writeVlans(writer: Writer, ranges: VlanRange[]): void {
  const info = (flags: number, vid: number) =>
    writer.attribute(IFLA_BRIDGE_VLAN_INFO, () => void writer.u16(flags).u16(vid));
  for (const { first, last, pvid, untagged } of ranges) {
    const flags = (pvid ? BRIDGE_VLAN_INFO_PVID : 0) | (untagged ? BRIDGE_VLAN_INFO_UNTAGGED : 0);
    if (first === last) {
      info(flags, first);
    } else {
      info(flags | BRIDGE_VLAN_INFO_RANGE_BEGIN, first);
      info(flags | BRIDGE_VLAN_INFO_RANGE_END, last);
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
      writer.nest(IFLA_AF_SPEC, () => {
        writer.attribute(IFLA_BRIDGE_FLAGS, () => void writer.u16(BRIDGE_FLAGS_MASTER));
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
  let vlans: VlanRange[] = [];
  socket.dump(
    {
      what: "bridge VLAN dump",
      type: RTM_GETLINK,
      body: (writer) => {
        linkHeader.write(writer, { family: AF_BRIDGE });
        requestAttrs.encode(writer, { extMask: RTEXT_FILTER_BRVLAN });
      },
    },
    ({ type, payload }) => {
      if (type !== RTM_NEWLINK || linkHeader.read(payload).index !== link.index) return;
      eachAttribute(payload.subarray(linkHeader.bytes), (attribute, spec) => {
        if (attribute !== IFLA_AF_SPEC) return;
        eachAttribute(spec, (kind, info) => {
          if (kind !== IFLA_BRIDGE_VLAN_INFO) return;
          const view = new DataView(info.buffer, info.byteOffset, info.byteLength);
          const flags = view.getUint16(0, true), vid = view.getUint16(2, true);
          vlans.push({
            first: vid,
            last: vid,
            pvid: (flags & BRIDGE_VLAN_INFO_PVID) !== 0,
            untagged: (flags & BRIDGE_VLAN_INFO_UNTAGGED) !== 0,
          });
        });
      });
    },
    () => void (vlans = []),
  );
  return vlans;
}
