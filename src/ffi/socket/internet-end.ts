/** An address and a port of the internet protocols, as the kernel takes them (ip(7), ipv6(7)). */
import { AF_INET, AF_INET6 } from "./socket.ts";

export interface InternetEnd {
  address: Uint8Array;
  port: number;
  /** The link of a link-local address of IPv6. */
  link?: number;
}

/** struct sockaddr_in or sockaddr_in6 */
export function socketAddress({ address, port, link = 0 }: InternetEnd): Uint8Array {
  const isV4 = address.length === 4, bytes = new Uint8Array(isV4 ? 16 : 28), view = new DataView(bytes.buffer);
  view.setUint16(0, isV4 ? AF_INET : AF_INET6, true);
  view.setUint16(2, port);
  bytes.set(address, isV4 ? 4 : 8);
  if (!isV4) view.setUint32(24, link, true);
  return bytes;
}
