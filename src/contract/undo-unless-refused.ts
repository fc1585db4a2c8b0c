/** Undoing a failed `apply` that consists of a single request. */
import { undoAfter } from "./undo.ts";
import { isNetlinkError } from "../ffi/netlink/socket.ts";

/**
 * Runs `undo` unless the kernel rejected the request. The kernel rejects a request as a whole, so nothing was made.
 * After any other error the kernel may have carried out the request and its reply was lost, or a second program that
 * `apply` runs failed after the first one made something.
 */
export function undoUnlessRefused(error: unknown, undo: () => void): void {
  if (!isNetlinkError(error)) undoAfter(error, undo);
}
