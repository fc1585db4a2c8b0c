/** A packet in the name of a container whose link is gone, out of the link of the host that it was on. */
import { getLink } from "../../ffi/netlink/route/link.ts";
import { NETLINK_ROUTE, openNetlink } from "../../ffi/netlink/socket.ts";
import { sendFrame } from "../../ffi/packet-socket.ts";

const TYPE_IPV4 = [0x08, 0x00], HEADER_BYTES = 14;

export function sendThroughHost(hostLink: string, from: Uint8Array, to: Uint8Array, packet: Uint8Array): void {
  const route = openNetlink(NETLINK_ROUTE), link = getLink(route, hostLink);
  route.close();
  if (link === undefined) throw new Error(`link ${hostLink} is not there`);
  const frame = new Uint8Array(HEADER_BYTES + packet.length);
  frame.set([...to, ...from, ...TYPE_IPV4]);
  frame.set(packet, HEADER_BYTES);
  sendFrame(link.index, frame);
}
