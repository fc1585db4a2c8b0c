/**
 * The host's end of a container's link carries packets: ADD waits for it, told by the kernel's notifications. Nothing is
 * made, so nothing is removed.
 */
import { CniError, INTERNAL } from "../../cni/error.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { awaitChange } from "../../ffi/netlink/events.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { getLink } from "../../ffi/netlink/route/link.ts";
import { IF_OPER_UP, operstateNames } from "../../ffi/netlink/uapi/if-link.ts";
import { RTNLGRP_LINK } from "../../ffi/netlink/uapi/rtnetlink.ts";

/** As long as the reference plugin polls. */
const PATIENCE_MS = 2550;

export const carrierKind: ResourceKind<{ ifName: string }> = {
  kind: "carrier",
  unmade: undefined,
  apply({ ifName }, { route }) {
    // Not SIOCGIFFLAGS: until the kernel gets round to it, a port counts there as running, whatever its other end is. The
    // answer to this request comes, from Linux 6.8 on, after it got round to it.
    if (stateOf(route, ifName) === IF_OPER_UP) return;
    const state = waitUntilUp(route, ifName);
    if (state === IF_OPER_UP) return;
    throw new CniError(
      INTERNAL,
      `bridge port in error state: ${operstateNames[state] ?? state}`,
      `the host's end ${ifName} of the container's link has no carrier`,
    );
  },
  /** Another repair may just have brought the link up. */
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

function waitUntilUp(socket: NetlinkSocket, ifName: string): number {
  let state = 0;
  awaitChange(RTNLGRP_LINK, PATIENCE_MS, () => (state = stateOf(socket, ifName)) === IF_OPER_UP);
  return state;
}
