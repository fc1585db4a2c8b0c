/** A packet in the name of a container whose link is gone already, out of the link of the host that it was on. */
import { errorText } from "../../cni/error.ts";
import { getLink } from "../../ffi/netlink/route/link.ts";
import { NETLINK_ROUTE, openNetlink } from "../../ffi/netlink/socket.ts";
import { sendFrame } from "../../ffi/socket/packet.ts";
import { parseMac } from "../../net/mac.ts";
import { say } from "./log.ts";

export const IPV4_TYPE = 0x0800, IPV6_TYPE = 0x86dd;
const HEADER_BYTES = 14;

export interface Sender {
  name: string;
  mac: string;
  hostLink: string | undefined;
}

/** Tells a server that the lease is over, if that can be done. */
export function sendLastMessage(
  { name, mac, hostLink }: Sender,
  to: Uint8Array,
  type: number,
  packet: Uint8Array,
): void {
  try {
    if (hostLink === undefined) throw new Error("its link is gone, and the configuration names no link of the host");
    const route = openNetlink(NETLINK_ROUTE), link = getLink(route, hostLink);
    route.close();
    if (link === undefined) throw new Error(`link ${hostLink} is not there`);
    const frame = new Uint8Array(HEADER_BYTES + packet.length);
    frame.set([...to, ...parseMac(mac)!, type >> 8, type & 0xff]);
    frame.set(packet, HEADER_BYTES);
    sendFrame(link.index, frame);
  } catch (error) {
    say(`${name}: the release cannot be sent to the server: ${errorText(error)}`);
  }
}
