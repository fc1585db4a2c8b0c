/** A packet in the name of a container whose link is gone already, out of the link of the host that it was on. */
import { errorText } from "../../../cni/error.ts";
import { listAddresses } from "../../../ffi/netlink/route/address.ts";
import { getLink, type Link } from "../../../ffi/netlink/route/link.ts";
import { NETLINK_ROUTE, openNetlink } from "../../../ffi/netlink/socket.ts";
import { sendFrame } from "../../../ffi/socket/packet.ts";
import { AF_INET } from "../../../ffi/socket/socket.ts";
import { UdpSocket } from "../../../ffi/socket/udp.ts";
import { isSameBytes } from "../../../net/address.ts";
import { parseMac } from "../../../net/mac.ts";
import { EVERYBODY } from "../link/sockets.ts";
import { SERVER_PORT } from "../v4/message/packet.ts";
import { say } from "./log.ts";

export const IPV4_TYPE = 0x0800, IPV6_TYPE = 0x86dd;
const HEADER_BYTES = 14;
/** In a packet of IPv4 with UDP in it (services/dhcp/v4/message/packet.ts). */
const DESTINATION_AT = 16, MESSAGE_AT = 28;

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
    const { link, addresses } = linkOfHost(hostLink);
    const frame = new Uint8Array(HEADER_BYTES + packet.length);
    frame.set([...to, ...parseMac(mac)!, type >> 8, type & 0xff]);
    frame.set(packet, HEADER_BYTES);
    sendFrame(link.index, frame);
    if (type === IPV4_TYPE) tellOwnHost(link, addresses, packet);
  } catch (error) {
    say(`${name}: the release cannot be sent to the server: ${errorText(error)}`);
  }
}

function linkOfHost(name: string): { link: Link; addresses: Uint8Array[] } {
  const route = openNetlink(NETLINK_ROUTE);
  try {
    const link = getLink(route, name);
    if (link === undefined) throw new Error(`link ${name} is not there`);
    return { link, addresses: listAddresses(route, link.index, AF_INET).map(({ bytes }) => bytes) };
  } finally {
    route.close();
  }
}

/** What leaves by a link does not come in by it: a server on this host, as on the bridge, gets a datagram of the host's. */
function tellOwnHost({ name }: Link, addresses: readonly Uint8Array[], packet: Uint8Array): void {
  const to = packet.subarray(DESTINATION_AT, DESTINATION_AT + 4), isForEverybody = isSameBytes(to, EVERYBODY);
  for (const address of addresses) {
    if (!isForEverybody && !isSameBytes(to, address)) continue;
    const socket = UdpSocket.open({ address, port: 0 }, name);
    try {
      socket.send({ address, port: SERVER_PORT }, packet.subarray(MESSAGE_AT));
    } finally {
      socket.close();
    }
  }
}
