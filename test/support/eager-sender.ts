/**
 * A container that waits for its new link: as soon as `LINK` is there it sets it up, and sends the frames, each in hex, again
 * and again until it is ended: `eager-sender LINK FRAME…`. Says "waiting" when it begins.
 */
import { getLink, setLink } from "../../src/ffi/netlink/route/link.ts";
import { NETLINK_ROUTE, openNetlink } from "../../src/ffi/netlink/socket.ts";
import { sendFrames } from "./packet-socket.ts";

const [name, ...frames] = process.argv.slice(2) as [string, ...string[]];
const PAUSE_MS = 1;
const socket = openNetlink(NETLINK_ROUTE);

console.log("waiting");
while (true) {
  const link = getLink(socket, name);
  try {
    if (link !== undefined && !link.up) setLink(socket, link, { up: true });
    if (link !== undefined) sendFrames(link.index, frames);
  } catch { /* gone or down meanwhile */ }
  await Bun.sleep(PAUSE_MS);
}
