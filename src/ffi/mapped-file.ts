/**
 * Files that several processes work on at once: mapped shared into memory (mmap(2)), with locks on ranges of them.
 *
 * A store into a page the file system cannot back is a SIGBUS, which no program survives: the whole length is
 * therefore allocated on disk before it is mapped, and a mapped file is never made shorter.
 */
import type { Pointer } from "bun:ffi";
import { EACCES, EAGAIN, SyscallError } from "./errno.ts";
import { bind, check, lastErrno, libc, retrying } from "./libc.ts";
import { FFIType, ptr, toArrayBuffer } from "./native.ts";

/** Makes sure that the file's first `sizeBytes` exist on disk, so that no store into them can fail. */
export function allocateOnDisk(fd: number, sizeBytes: number, subject: string): void {
  const { posix_fallocate } = bind({
    posix_fallocate: { args: ["i32", FFIType.i64_fast, FFIType.i64_fast], returns: "i32" },
  });
  // It answers the errno instead of setting it.
  const errno = posix_fallocate(fd, 0, sizeBytes);
  if (errno !== 0) throw new SyscallError("posix_fallocate", errno, subject);
}

/** Maps the first `sizeBytes` of the file, to be read and written until `unmap`. */
export function mapShared(fd: number, sizeBytes: number, subject: string): ArrayBuffer {
  const PROT_READ = 1, PROT_WRITE = 2, MAP_SHARED = 1;
  const address = libc.mmap(null, sizeBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  // MAP_FAILED is -1, which reads as the largest pointer.
  if (address === null || address > Number.MAX_SAFE_INTEGER || address < 0) {
    throw new SyscallError("mmap", lastErrno(), subject);
  }
  return toArrayBuffer(address as Pointer, 0, sizeBytes);
}

/** Ends the mapping. The buffer, and every view of it, must not be touched any more: that would be a SIGSEGV. */
export function unmap(buffer: ArrayBuffer): void {
  check("munmap", libc.munmap(ptr(buffer), buffer.byteLength));
}

// Open file description locks, fcntl(2): they belong to the descriptor, so they also hold between two users in one
// process, and the kernel drops them when the process dies, however that happens.
const F_OFD_SETLK = 37, F_OFD_SETLKW = 38;
const F_RDLCK = 0, F_WRLCK = 1, F_UNLCK = 2;

const request = new Uint8Array(32);
const requestView = new DataView(request.buffer);

/** struct flock on 64-bit Linux: type i16, whence i16, start i64 at 8, len i64 at 16, pid i32 at 24. */
function lockByte(command: number, type: number, fd: number, offset: number): number {
  requestView.setInt16(0, type, true);
  requestView.setUint32(8, offset, true);
  requestView.setUint32(12, offset / 2 ** 32, true);
  requestView.setUint32(16, 1, true);
  return libc.fcntl(fd, command, request);
}

/** Locks one byte, which need not exist, against everybody else; answers false when somebody has it. */
export function tryLock(fd: number, offset: number): boolean {
  if (lockByte(F_OFD_SETLK, F_WRLCK, fd, offset) === 0) return true;
  const errno = lastErrno();
  if (errno === EAGAIN || errno === EACCES) return false;
  throw new SyscallError("fcntl F_OFD_SETLK", errno, `descriptor ${fd}`);
}

/** Waits until nobody has the byte, or for `share`, until nobody has it to himself. Changes a lock already held. */
export function waitForLock(fd: number, offset: number, mode: "share" | "exclude"): void {
  const type = mode === "share" ? F_RDLCK : F_WRLCK;
  retrying("fcntl F_OFD_SETLKW", () => lockByte(F_OFD_SETLKW, type, fd, offset));
}

export function unlock(fd: number, offset: number): void {
  check("fcntl F_OFD_SETLK", lockByte(F_OFD_SETLK, F_UNLCK, fd, offset));
}
