/** Errors of the system in netavark's words, which scripts around podman look for. */
import { errnoText, SyscallError } from "../../../ffi/errno.ts";
import { isNetlinkError } from "../../../ffi/netlink/socket.ts";
import { errorText } from "../../../cni/error.ts";

export const NO_UNMANAGED_BRIDGE =
  "in unmanaged mode, the bridge must already exist on the host: Netlink error: No such device (os error 19)";

/** `Netlink error: File exists (os error 17)` */
export function netlinkText(error: unknown): string {
  if (!isNetlinkError(error)) return errorText(error);
  return `Netlink error: ${osError(error.errno)}`;
}

/** `IO error: Read-only file system (os error 30)` */
export function systemText(error: unknown): string {
  if (!(error instanceof SyscallError)) return errorText(error);
  return `IO error: ${osError(error.errno)}`;
}

/** `No such device (os error 19)` */
export function osError(errno: number): string {
  const text = errnoText(errno);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)} (os error ${errno})`;
}
