/**
 * A file system in memory without a place among the mounts (fsmount(2), Linux 5.2): it is reached through its descriptor,
 * and is gone when that is closed, also when the process is killed.
 */
import { SyscallError } from "./errno.ts";
import { whileOpen } from "./files.ts";
import { bind, cString, lastErrno } from "./libc.ts";
import { FFIType } from "./native.ts";

// The same numbers on every architecture. glibc has these calls since 2.36.
const SYS_fsopen = 430, SYS_fsconfig = 431, SYS_fsmount = 432;
const FSOPEN_CLOEXEC = 1, FSCONFIG_CMD_CREATE = 6, FSMOUNT_CLOEXEC = 1;
const number = FFIType.i64_fast;

/** Returns its descriptor. */
export function openDetachedTmpfs(): number {
  const open = bind({ syscall: { args: [number, "ptr", number], returns: number } });
  const configure = bind({ syscall: { args: [number, number, number, "ptr", "ptr", number], returns: number } });
  const mount = bind({ syscall: { args: [number, number, number, number], returns: number } });
  const context = checked("fsopen", open.syscall(SYS_fsopen, cString("tmpfs"), FSOPEN_CLOEXEC));
  return whileOpen(context, () => {
    checked("fsconfig", configure.syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, null, null, 0));
    return checked("fsmount", mount.syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0));
  });
}

function checked(call: string, result: number | bigint): number {
  if (Number(result) < 0) throw new SyscallError(call, lastErrno(), "tmpfs");
  return Number(result);
}
