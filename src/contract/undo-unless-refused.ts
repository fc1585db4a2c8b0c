/** Undoing after a failed `apply` that consists of a single request. */
import { undoAfter } from "./undo.ts";
import { isNetlinkError } from "../ffi/netlink/socket.ts";

/**
 * Runs `undo` unless the kernel refused the request. The kernel refuses a request as a whole, so nothing was made. After
 * any other error its answer may be lost and the request carried out, or a second program that `apply` runs failed after
 * the first had made something.
 */
export function undoUnlessRefused(error: unknown, undo: () => void): void {
  if (!isNetlinkError(error)) undoAfter(error, undo);
}
