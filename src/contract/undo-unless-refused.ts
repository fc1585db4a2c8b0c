/** For an `apply` of one request that failed. */
import { undoAfter } from "./undo.ts";
import { isNetlinkError } from "../ffi/netlink/socket.ts";

/**
 * What the kernel refuses it refuses as a whole. After any other error its answer was lost, and it may have done what it
 * was asked; or it was the second of two programs that failed.
 */
export function undoUnlessRefused(error: unknown, undo: () => void): void {
  if (!isNetlinkError(error)) undoAfter(error, undo);
}
