/** Failures in netavark's words: podman shows them to users, and its tests compare them. */
import { errorText } from "../../../cni/error.ts";
import { errnoText, SyscallError } from "../../../ffi/errno.ts";
import { UntrustedState } from "../../../process/state-file.ts";
import { NetlinkError } from "../../../ffi/netlink/netlink-error.ts";
import { isNetlinkError } from "../../../ffi/netlink/socket.ts";

/**
 * Omits the subject of a system call, which `within` adds. Keeps the text of resources around an error of the kernel, with
 * the reason in netavark's words.
 */
export function failureText(error: unknown): string {
  if (error instanceof SyscallError && !(error instanceof UntrustedState)) return `IO error: ${osError(error.errno)}`;
  if (error instanceof NetlinkError) {
    return `Netlink error: ${osError(error.errno)}${error.text === "" ? "" : ` (${error.text})`}`;
  }
  const refusal = error instanceof Error && error.cause instanceof NetlinkError ? error.cause : undefined;
  if (refusal === undefined) return errorText(error);
  return errorText(error).replace(errnoText(refusal.errno), () => netlinkText(refusal));
}

/** Puts `context` before the text of every failure of `work`. */
export function within<Value>(context: string, work: () => Value): Value {
  try {
    return work();
  } catch (error) {
    throw new Error(`${context}: ${failureText(error)}`, { cause: error });
  }
}

/** The same for failures without a context: the system call and its subject serve as one. */
export function inNetavarksWords<Value>(work: () => Value): Value {
  try {
    return work();
  } catch (error) {
    throw new Error([contextOf(error), failureText(error)].filter(Boolean).join(": "), { cause: error });
  }
}

function contextOf(error: unknown): string {
  if (error instanceof SyscallError) return [error.call, error.subject].filter(Boolean).join(" ");
  return error instanceof NetlinkError ? error.request : "";
}

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
