/**
 * After ADD, the plugin that made the link gives it the leased addresses, without a lifetime. This says when to look for
 * them, so that they get theirs as soon as they appear. Meanwhile the container's namespace is open.
 */
import { openEvents } from "../../../ffi/netlink/events.ts";
import type { KernelTransport } from "../../../ffi/netlink/transport.ts";
import { RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR } from "../../../ffi/netlink/uapi/rtnetlink.ts";
import type { NetnsHandle } from "../link/netns-handle.ts";

/** In seconds. */
const PATIENCE_S = 10;
/** Notifications that are read in one go. Then others have their turn. */
const MOST_AT_ONCE = 8;

export class AddressWatch {
  private readonly events: KernelTransport;
  readonly until: number;

  constructor(private readonly handle: NetnsHandle, now: number) {
    this.events = handle.inside(() => openEvents(RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR));
    this.until = now + PATIENCE_S;
  }

  get fds(): number[] {
    return [this.events.fd];
  }

  /** Returns whether the watch is over. `areLimited` looks at the link. */
  look(now: number, areLimited: (handle: NetnsHandle) => boolean): boolean {
    drain(this.events);
    return areLimited(this.handle) || now >= this.until;
  }

  close(): void {
    this.events.close();
  }
}

/** What changed does not matter, only that something did. */
function drain(events: KernelTransport): void {
  try {
    for (let count = 0; count < MOST_AT_ONCE && events.receive(0) !== undefined; count++);
  } catch {
    // Notifications were lost: one more reason to look.
  }
}
