/** Failures in netavark's words: podman shows them to users, and its tests compare them. */
import { errorText } from "../../cni/error.ts";
import { LeftToCaller } from "../../ffi/calls.ts";
import { SyscallError } from "../../ffi/errno.ts";
import { UntrustedState } from "../../ffi/state-file.ts";
import { NetlinkError } from "../../ffi/netlink/netlink-error.ts";
import { osError } from "../../resources/netavark/shared/netavark-text.ts";

/** Without what the system call worked on; `within` says that. */
export function failureText(error: unknown): string {
  if (error instanceof SyscallError && !(error instanceof UntrustedState)) return `IO error: ${osError(error.errno)}`;
  if (error instanceof NetlinkError) {
    return `Netlink error: ${osError(error.errno)}${error.text === "" ? "" : ` (${error.text})`}`;
  }
  return errorText(error);
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

/** The same for failures without a context: the system call and what it worked on are one. */
export function inNetavarksWords<Value>(work: () => Value): Value {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof SyscallError || error instanceof NetlinkError)) throw error;
    const context = error instanceof SyscallError
      ? [error.call, error.subject].filter(Boolean).join(" ")
      : error.request;
    throw new Error(`${context}: ${failureText(error)}`, { cause: error });
  }
}
