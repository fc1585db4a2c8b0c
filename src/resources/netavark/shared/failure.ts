/** Failures in netavark's words: podman shows them to users, and its tests compare them. */
import { errorText } from "../../../cni/error.ts";
import { LeftToCaller } from "../../../ffi/calls.ts";
import { errnoText, SyscallError } from "../../../ffi/errno.ts";
import { NetlinkError } from "../../../ffi/netlink/netlink-error.ts";
import { UntrustedState } from "../../../ffi/state-file.ts";
import { netlinkText, osError } from "./netavark-text.ts";

/**
 * Without what the system call worked on; `within` says that. What resources say around a refusal of the kernel's stays,
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
    if (error instanceof LeftToCaller) throw error;
    throw new Error(`${context}: ${failureText(error)}`, { cause: error });
  }
}

/** The same for failures without a context: the system call and its subject serve as one. */
export function inNetavarksWords<Value>(work: () => Value): Value {
  try {
    return work();
  } catch (error) {
    if (error instanceof LeftToCaller) throw error;
    throw new Error([contextOf(error), failureText(error)].filter(Boolean).join(": "), { cause: error });
  }
}

function contextOf(error: unknown): string {
  if (error instanceof SyscallError) return [error.call, error.subject].filter(Boolean).join(" ");
  return error instanceof NetlinkError ? error.request : "";
}
