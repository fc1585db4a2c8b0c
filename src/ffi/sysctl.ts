/**
 * Kernel parameters under /proc/sys (proc(5)). Keys have slashes, because interface names may contain dots. Network
 * keys belong to the namespace of the thread.
 */
import { EACCES, EINVAL, ENOENT, EPERM, EROFS, EXDEV, isErrno, SyscallError } from "./errno.ts";
import {
  closeFile,
  O_NOFOLLOW,
  O_RDONLY,
  O_WRONLY,
  openFile,
  readKernelsText,
  whileOpen,
  writeAll,
} from "./files.ts";
import { check, libc, utf8 } from "./libc.ts";

const PROC_SUPER_MAGIC = 0x9fa0;

function openSysctl(key: string, flags: number): number {
  for (const part of key.split("/")) {
    if (part === "" || part === "." || part === "..") {
      throw new SyscallError("open sysctl", EINVAL, JSON.stringify(key));
    }
  }
  const path = `/proc/sys/${key}`;
  const fd = openFile(path, flags | O_NOFOLLOW);
  const buffer = new Uint8Array(128);
  check("fstatfs", libc.fstatfs(fd, buffer), path);
  if (new DataView(buffer.buffer).getUint32(0, true) !== PROC_SUPER_MAGIC) {
    // Something else is mounted over /proc.
    closeFile(fd);
    throw new SyscallError("open sysctl", EXDEV, path);
  }
  return fd;
}

/** The value without its newline; undefined when the kernel has no such key. */
export function readSysctl(key: string): string | undefined {
  let fd: number;
  try {
    fd = openSysctl(key, O_RDONLY);
  } catch (error) {
    if (isErrno(error, ENOENT)) return undefined;
    throw error;
  }
  return whileOpen(fd, () => readKernelsText(fd, key).trimEnd());
}

/** As sysctl(8) writes the key. The dots of a link's name are slashes there. */
export function sysctlName(key: string): string {
  return key.replace(/[./]/g, (character) => character === "/" ? "." : "/");
}

/** Succeeds where the value is right already and /proc/sys cannot be written, as in containers that are hosts. */
export function writeSysctl(key: string, value: string): void {
  try {
    whileOpen(openSysctl(key, O_WRONLY), (fd) => writeAll(fd, utf8(value), key));
  } catch (error) {
    if (!isErrno(error, EROFS, EACCES, EPERM) || readSysctl(key) !== value) throw error;
  }
}

/** For optional settings: does nothing when the kernel lacks the key or refuses the write. */
export function tryWriteSysctl(key: string, value: string): void {
  try {
    writeSysctl(key, value);
  } catch (error) {
    if (!isErrno(error, ENOENT, EACCES, EPERM, EROFS)) throw error;
  }
}
