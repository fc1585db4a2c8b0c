/** Waiting until something is so, told by the kernel's notifications that it may be. */
import { NETLINK_ROUTE, openNetlink } from "./socket.ts";

/**
 * Asks `isSo` now and after every notification of the group. False when it is not so in time. `inside` runs its
 * argument in the namespace that is watched.
 */
export function awaitChange(
  group: number,
  patienceMs: number,
  isSo: () => boolean,
  inside = <T>(work: () => T): T => work(),
): boolean {
  const events = inside(() => openNetlink(NETLINK_ROUTE));
  try {
    events.join(group);
    const deadline = Date.now() + patienceMs;
    while (!isSo()) {
      const leftMs = deadline - Date.now();
      if (leftMs <= 0) return false;
      events.receive(leftMs, () => {});
    }
    return true;
  } finally {
    events.close();
  }
}
