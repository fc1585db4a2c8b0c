/**
 * Removing a link without waiting for the kernel to have forgotten it (see ffi/reaper.ts): done when nobody can see it
 * any more and its name is free.
 */
import { ENODEV } from "../../errno.ts";
import { sendFromChild } from "../../reaper.ts";
import { endingSoFar } from "../../spawn.ts";
import { NETLINK_ROUTE, NetlinkError, type NetlinkSocket, openNetlink } from "../socket.ts";
import { NLM_F_ACK, NLM_F_REQUEST, Writer } from "../wire.ts";
import { RTM_DELLINK } from "../uapi/rtnetlink.ts";
import { delLink, linkIndex, linkMessage } from "./link.ts";

/** Between two looks; the whole takes one to two milliseconds. */
const LOOK_EVERY_MS = 0.05;

/**
 * `ip link del`, as far as anybody can tell. `socket` is one in the link's namespace, and `inside` runs its argument
 * there. Throws the kernel's reason when it refuses.
 */
export function removeLink(
  socket: NetlinkSocket,
  ifName: string,
  inside = <T>(work: () => T): T => work(),
): "deleted" | "absent" {
  if (linkIndex(socket, ifName) === undefined) return "absent";
  const writer = new Writer();
  writer.start(RTM_DELLINK, NLM_F_REQUEST | NLM_F_ACK, 1);
  linkMessage(writer, ifName);
  writer.finish();
  const theirs = inside(() => openNetlink(NETLINK_ROUTE));
  try {
    const child = sendFromChild(theirs.fd, writer.bytes.slice(0, writer.length));
    if (child === undefined) return delLink(socket, ifName);
    for (;;) {
      // Asked in this order: the child may end between the two.
      const ending = endingSoFar(child);
      if (linkIndex(socket, ifName) === undefined) return "deleted";
      if (ending !== undefined) {
        const errno = "exitStatus" in ending ? ending.exitStatus : 0;
        if (errno === ENODEV) return "absent";
        if (errno !== 0) throw new NetlinkError(`RTM_DELLINK ${ifName}`, errno);
        // Killed before the kernel answered: what it left undone is ours.
        return delLink(socket, ifName);
      }
      Bun.sleepSync(LOOK_EVERY_MS);
    }
  } finally {
    theirs.close();
  }
}
