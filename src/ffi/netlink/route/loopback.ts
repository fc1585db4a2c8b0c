/** The loopback link of a network namespace, which the kernel makes with it. */
import type { NetlinkSocket } from "../socket.ts";
import { getLink, setLink } from "./link.ts";

export const loopback = { index: 1, name: "lo" };

export function bringUpLoopback(socket: NetlinkSocket): void {
  if (!getLink(socket, loopback.index)?.up) setLink(socket, loopback, { up: true });
}
