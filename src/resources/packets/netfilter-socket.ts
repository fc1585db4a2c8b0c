/** The host's netfilter socket for removals, which must also work where there is nothing to remove from. */
import type { Host } from "../../contract/host.ts";
import { EPROTONOSUPPORT, isErrno } from "../../ffi/errno.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";

/** Undefined where the kernel has no netfilter to talk to: then nothing of ours can be there. */
export function netfilterOf(host: Host): NetlinkSocket | undefined {
  try {
    return host.netfilter;
  } catch (error) {
    if (isErrno(error, EPROTONOSUPPORT)) return undefined;
    throw error;
  }
}
