/** Whether a bridge has ports. */
import { libc, utf8 } from "../../libc.ts";
import { ptr } from "../../native.ts";
import type { NetlinkSocket } from "../socket.ts";
import { listLinks } from "./link.ts";

/** linux/if_bridge.h, linux/sockios.h; a bridge has at most as many ports. */
const SIOCDEVPRIVATE = 0x89f0, BRCTL_GET_PORT_LIST = 7n, MOST_PORTS = 1024;

/**
 * By ioctl, which fills a list of their indexes: netlink would describe every port, and there may be hundreds. The
 * kernel may be built without it.
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
