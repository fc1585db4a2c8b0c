/**
 * Removing a link without waiting until every processor has forgotten it (see ffi/reaper.ts): done when the link is
 * invisible and its name is free.
 */
import { bind } from "../../libc.ts";
import { sendFromChild } from "../../reaper.ts";
import { endingSoFar, leaveRunning } from "../../spawn.ts";
import { NETLINK_ROUTE, type NetlinkSocket, openNetlink } from "../socket.ts";
import { NLM_F_ACK, NLM_F_REQUEST, Writer } from "../wire.ts";
import { RTM_DELLINK } from "../uapi/rtnetlink.ts";
import { delLinkByIndex, linkIndex } from "./link.ts";
import { linkHeader } from "./link-kinds.ts";

/** Between two looks. One removal takes one to two milliseconds; the kernel does several one after another. */
const FIRST_PAUSE_US = 50, LONGEST_PAUSE_US = 2000;

/**
 * `ip link del`. `socket` is in the link's namespace, and `inside` runs its argument there. Throws the kernel's reason
 * when it refuses.
 *
 * The request has the link's number. A child that is late, because whoever started it was killed, finds nothing then; by
 * the name it would delete a link that was made since.
 */
export function removeLink(
  socket: NetlinkSocket,
  ifName: string,
  inside = <T>(work: () => T): T => work(),
): "deleted" | "absent" {
  const index = linkIndex(socket, ifName);
  if (index === undefined) return "absent";
  const writer = new Writer();
  writer.start(RTM_DELLINK, NLM_F_REQUEST | NLM_F_ACK, 1);
  linkHeader.write(writer, { index });
  writer.finish();
  const theirs = inside(() => openNetlink(NETLINK_ROUTE));
  try {
    const child = sendFromChild(theirs.fd, writer.bytes.slice(0, writer.length));
    if (child === undefined) return delLinkByIndex(socket, { index, name: ifName });
    // Not Bun.sleepSync, which does not sleep at all for less than a millisecond.
    const { usleep } = bind({ usleep: { args: ["u32"], returns: "i32" } });
    for (let pauseUs = FIRST_PAUSE_US;; pauseUs = Math.min(Math.ceil(pauseUs * 1.3), LONGEST_PAUSE_US)) {
      // In this order, because the child may end between the two.
      const ended = endingSoFar(child) !== undefined;
      if (linkIndex(socket, ifName) !== index) {
        if (!ended) leaveRunning(child);
        return "deleted";
      }
      // Refused, or killed before the kernel answered: try it ourselves, and throw the kernel's reason.
      if (ended) return delLinkByIndex(socket, { index, name: ifName });
      usleep(pauseUs);
    }
  } finally {
    theirs.close();
  }
}
