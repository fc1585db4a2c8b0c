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
import { delLinkByIndex, hasLinkAt, linkIndex } from "./link.ts";
import { linkHeader } from "./link-kinds.ts";

/** Between two looks. One removal takes one to two milliseconds; the kernel does several one after another. */
const FIRST_PAUSE_US = 50, LONGEST_PAUSE_US = 2000;

interface Where {
  /** Runs its argument in the link's namespace; needed where that is not the thread's own. */
  inside?: <T>(work: () => T) => T;
  /** What goes with the link: it is gone, too, when this is so. */
  isRestGone?: () => boolean;
}

/** As `removeLinkAt`, of the link that has the name now. */
export function removeLink(socket: NetlinkSocket, ifName: string, inside?: Where["inside"]): "deleted" | "absent" {
  const index = linkIndex(socket, ifName);
  return index === undefined ? "absent" : removeLinkAt(socket, { index, name: ifName }, { inside });
}

/**
 * `ip link del`. `socket` is in the link's namespace. Throws the kernel's reason when it refuses.
 *
 * The request has the link's number. A child that is late, because its parent was killed, finds nothing then; by
 * the name it would delete a link that was made since. We wait for the number, too: the container can rename its link.
 */
export function removeLinkAt(
  socket: NetlinkSocket,
  link: { index: number; name: string },
  { inside = (work) => work(), isRestGone = () => true }: Where = {},
): "deleted" | "absent" {
  const { index } = link, writer = new Writer();
  writer.start(RTM_DELLINK, NLM_F_REQUEST | NLM_F_ACK, 1);
  linkHeader.write(writer, { index });
  writer.finish();
  const theirs = inside(() => openNetlink(NETLINK_ROUTE));
  try {
    const child = sendFromChild(theirs.fd, writer.bytes.slice(0, writer.length));
    if (child === undefined) return delLinkByIndex(socket, link);
    // Not Bun.sleepSync, which does not sleep at all for less than a millisecond.
    const { usleep } = bind({ usleep: { args: ["u32"], returns: "i32" } });
    for (let pauseUs = FIRST_PAUSE_US;; pauseUs = Math.min(Math.ceil(pauseUs * 1.3), LONGEST_PAUSE_US)) {
      // In this order, because the child may end between the two.
      const ended = endingSoFar(child) !== undefined;
      if (!hasLinkAt(socket, index) && isRestGone()) {
        if (!ended) leaveRunning(child);
        return "deleted";
      }
      // Refused, or killed before the kernel answered: try it ourselves, and throw the kernel's reason.
      if (ended) return delLinkByIndex(socket, link);
      usleep(pauseUs);
    }
  } finally {
    theirs.close();
  }
}
