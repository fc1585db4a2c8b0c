/**
 * Files mapped shared into memory (mmap(2)), so that several processes work on the same bytes.
 *
 * A store into a page the file system cannot back is a SIGBUS, which no program survives: the whole length is
 * therefore allocated on disk before it is mapped, and a mapped file is never made shorter.
 */
import type { Pointer } from "bun:ffi";
import { SyscallError } from "./errno.ts";
import { bind, check, lastErrno } from "./libc.ts";
import { FFIType, toArrayBuffer } from "./native.ts";

const bindMapping = () =>
  bind({
    mmap: {
      args: ["ptr", "usize", "i32", "i32", "i32", FFIType.i64_fast],
      returns: "ptr",
    },
    munmap: { args: ["ptr", "usize"], returns: "i32" },
    msync: { args: ["ptr", "usize", "i32"], returns: "i32" },
    posix_fallocate: { args: ["i32", FFIType.i64_fast, FFIType.i64_fast], returns: "i32" },
    fcntl: { args: ["i32", "i32", "ptr"], returns: "i32" },
  });
let symbols: ReturnType<typeof bindMapping> | undefined;
const mapping = () => (symbols ??= bindMapping());

/** Makes sure that the file's first `sizeBytes` exist on disk, so that no store into them can fail. */
export function allocateOnDisk(fd: number, sizeBytes: number, subject: string): void {
  // posix_fallocate(3) answers the errno instead of setting it.
  const errno = mapping().posix_fallocate(fd, 0, sizeBytes);
  if (errno !== 0) throw new SyscallError("posix_fallocate", errno, subject);
}

/** Maps the first `sizeBytes` of the file. The mapping lasts until the process ends. */
export function mapShared(fd: number, sizeBytes: number, writable: boolean, subject: string): ArrayBuffer {
  const PROT_READ = 1, PROT_WRITE = 2, MAP_SHARED = 1;
  const address = mapping().mmap(null, sizeBytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  // MAP_FAILED is -1, which reads as the largest pointer.
  if (address === null || address > Number.MAX_SAFE_INTEGER || address < 0) {
    throw new SyscallError("mmap", lastErrno(), subject);
  }
  return toArrayBuffer(address as Pointer, 0, sizeBytes);
}

const F_OFD_GETLK = 36, F_OFD_SETLK = 37, F_OFD_SETLKW = 38;
const F_WRLCK = 1, F_UNLCK = 2;

/** struct flock on 64-bit Linux: type i16, whence i16, start i64 at 8, len i64 at 16, pid i32 at 24. */
function flockBytes(type: number, offset: number, length: number): Uint8Array {
  const bytes = new Uint8Array(32);
  const view = new DataView(bytes.buffer);
  view.setInt16(0, type, true);
  view.setBigInt64(8, BigInt(offset), true);
  view.setBigInt64(16, BigInt(length), true);
  return bytes;
}

/**
 * Takes an exclusive lock on a range of the file for as long as this descriptor is open (or until
 * `unlockRange`). The kernel drops it when the process dies, however that happens. Answers false when
 * another open description holds it. See fcntl(2), "Open file description locks".
 */
export function tryLockRange(fd: number, offset: number, length: number): boolean {
  if (mapping().fcntl(fd, F_OFD_SETLK, flockBytes(F_WRLCK, offset, length)) === 0) return true;
  const errno = lastErrno();
  if (errno === 11 || errno === 13) return false;
  throw new SyscallError("fcntl F_OFD_SETLK", errno, `descriptor ${fd}`);
}

/** Like `tryLockRange`, but waits for the holder. */
export function lockRange(fd: number, offset: number, length: number): void {
  check("fcntl F_OFD_SETLKW", mapping().fcntl(fd, F_OFD_SETLKW, flockBytes(F_WRLCK, offset, length)));
}

export function unlockRange(fd: number, offset: number, length: number): void {
  check("fcntl F_OFD_SETLK", mapping().fcntl(fd, F_OFD_SETLK, flockBytes(F_UNLCK, offset, length)));
}

/** Whether some other open description holds a lock on the range: its owner is alive. */
export function isRangeLocked(fd: number, offset: number, length: number): boolean {
  const bytes = flockBytes(F_WRLCK, offset, length);
  check("fcntl F_OFD_GETLK", mapping().fcntl(fd, F_OFD_GETLK, bytes));
  return new DataView(bytes.buffer).getInt16(0, true) !== F_UNLCK;
}
