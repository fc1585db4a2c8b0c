/** Rules of iptables that the kernel refuses because it lacks one of their matches or targets. */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { ENOENT } from "../../../ffi/errno.ts";
import { isNetlinkError } from "../../../ffi/netlink/socket.ts";

/**
 * Runs `change`. Tables and chains are made by the same transaction, so ENOENT means that one of the kernel modules is
 * missing; the error then names them, and the option that works without.
 */
export function explainingEnoent(what: string, modules: string, option: string, change: () => boolean): boolean {
  try {
    return change();
  } catch (error) {
    if (!isNetlinkError(error, ENOENT)) throw error;
    const hint = `the kernel lacks ${modules}; ${option} does without`;
    throw new CniError(INTERNAL, `${what}: ${error.message}`, hint, { cause: error });
  }
}
