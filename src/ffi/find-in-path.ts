/** Programs in PATH. Found with statx(2) alone: a plugin looks for one in most calls, and does not run it. */
import { EACCES, ELOOP, ENOENT, ENOTDIR, SyscallError } from "./errno.ts";
import { variable } from "./environment.ts";
import { cString, lastErrno } from "./libc.ts";
import { statx } from "./system-calls.ts";

/** The first regular file of that name in PATH, as execvp(3) finds it, or undefined. */
export function findInPath(name: string): string | undefined {
  for (const directory of (variable("PATH") ?? "").split(":")) {
    // An empty entry means the working directory, which a plugin does not choose.
    if (directory === "") continue;
    const path = `${directory}/${name}`;
    if (fileId(path) !== undefined) return path;
  }
  return undefined;
}

/**
 * Device and inode of the regular file that the path leads to, links followed; undefined when there is none. Unlike
 * `identify` it does not throw then: exceptions are slow, and most directories of PATH lack the file.
 */
export function fileId(path: string): string | undefined {
  const AT_FDCWD = -100, STATX_TYPE = 0x1, STATX_INO = 0x100, S_IFMT = 0o170000, S_IFREG = 0o100000;
  const buffer = new Uint8Array(256);
  if (statx(AT_FDCWD, cString(path), 0, STATX_TYPE | STATX_INO, buffer) < 0) {
    const errno = lastErrno();
    if (errno === ENOENT || errno === ENOTDIR || errno === EACCES || errno === ELOOP) return undefined;
    throw new SyscallError("statx", errno, path);
  }
  const view = new DataView(buffer.buffer); // struct statx, linux/stat.h
  if ((view.getUint16(28, true) & S_IFMT) !== S_IFREG) return undefined;
  return `${view.getUint32(136, true)}:${view.getUint32(140, true)} ${view.getBigUint64(32, true)}`;
}
