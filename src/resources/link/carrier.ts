/**
 * The host's end of a container's link has carrier. ADD waits for the kernel's notification. Owns nothing in the kernel,
 * so DEL does nothing.
 */
import { CniError, INTERNAL } from "../../cni/error.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { awaitChange } from "../../ffi/netlink/events.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { getLink } from "../../ffi/netlink/route/link.ts";
import { IF_OPER_UP, operstateNames } from "../../ffi/netlink/uapi/if-link.ts";
import { RTNLGRP_LINK } from "../../ffi/netlink/uapi/rtnetlink.ts";

/** The reference plugin polls for the same time. */
const PATIENCE_MS = 2550;

export const carrierKind: ResourceKind<{ ifName: string }> = {
  kind: "carrier",
  apply({ ifName }, { route }) {
    // Not SIOCGIFFLAGS: it reports a new port as running, whatever its peer's state, until the kernel has processed the
    // link event. From Linux 6.8 on, the kernel processes pending link events before it answers this request.
    let state = stateOf(route, ifName);
    if (state === IF_OPER_UP) return;
    if (awaitChange(RTNLGRP_LINK, PATIENCE_MS, () => (state = stateOf(route, ifName)) === IF_OPER_UP)) return;
    throw new CniError(
      INTERNAL,
      `bridge port in error state: ${operstateNames[state] ?? state}`,
      `the host's end ${ifName} of the container's link has no carrier`,
    );
  },
  /** Repairing another resource may have just brought the link up. */
  repair: (spec, host) => carrierKind.apply(spec, host),
  remove: () => {},
  verify({ ifName }, { route }) {
    const state = ifName === "" ? IF_OPER_UP : stateOf(route, ifName);
    return state === IF_OPER_UP ? [] : [`link ${ifName} is ${operstateNames[state] ?? state}`];
  },
  describe: ({ ifName }) => `${ifName} carries packets`,
};

export const carrier = resource(carrierKind);

function stateOf(socket: NetlinkSocket, ifName: string): number {
  return getLink(socket, ifName)?.operstate ?? operstateNames.indexOf("not-present");
}
