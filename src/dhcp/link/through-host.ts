/** A packet in the name of a container whose link is gone, out of the link of the host that it was on. */
import { getLink } from "../../ffi/netlink/route/link.ts";
import { NETLINK_ROUTE, openNetlink } from "../../ffi/netlink/socket.ts";
import { sendFrame } from "../../ffi/socket/packet.ts";

export const IPV4_TYPE = 0x0800, IPV6_TYPE = 0x86dd;
const HEADER_BYTES = 14;

export function sendThroughHost(
  hostLink: string,
  { from, to, type }: { from: Uint8Array; to: Uint8Array; type: number },
  packet: Uint8Array,
): void {
  const route = openNetlink(NETLINK_ROUTE), link = getLink(route, hostLink);
  route.close();
  if (link === undefined) throw new Error(`link ${hostLink} is not there`);
  const frame = new Uint8Array(HEADER_BYTES + packet.length);
  frame.set([...to, ...from, type >> 8, type & 0xff]);
  frame.set(packet, HEADER_BYTES);
  sendFrame(link.index, frame);
}
