/**
 * Files that several processes work on at once, mapped shared into memory (mmap(2)), and files that are only there
 * (memfd_create(2)).
 *
 * A store into a page that the file system cannot back raises SIGBUS and kills the process. Callers therefore allocate
 * the whole length on disk before they map it, and never shorten a mapped file.
 */
import type { Pointer } from "bun:ffi";
import { EINVAL, SyscallError } from "./errno.ts";
import { bind, check, cString, lastErrno, libc } from "./libc.ts";
import { FFIType, ptr, toArrayBuffer } from "./native.ts";
import { memfd_create } from "./system-calls.ts";

/** Allocates the file's first `sizeBytes` on disk, so that no store into them can fail. */
export function allocateOnDisk(fd: number, sizeBytes: number, subject: string): void {
  const { posix_fallocate } = bind({
    posix_fallocate: { args: ["i32", FFIType.i64_fast, FFIType.i64_fast], returns: "i32" },
  });
  // It returns the errno instead of setting it.
  const errno = posix_fallocate(fd, 0, sizeBytes);
  if (errno !== 0) throw new SyscallError("posix_fallocate", errno, subject);
}

/** Maps the first `sizeBytes` of the file for reading and writing. */
export function mapShared(fd: number, sizeBytes: number, subject: string): ArrayBuffer {
  const PROT_READ = 1, PROT_WRITE = 2, MAP_SHARED = 1;
  const address = libc.mmap(null, sizeBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  // MAP_FAILED is -1, which reads as the largest pointer.
  if (address === null || address > Number.MAX_SAFE_INTEGER || address < 0) {
    throw new SyscallError("mmap", lastErrno(), subject);
  }
  return toArrayBuffer(address as Pointer, 0, sizeBytes);
}

/** Ends the mapping. Touching the buffer or a view of it afterwards raises SIGSEGV. */
export function unmap(buffer: ArrayBuffer): void {
  check("munmap", libc.munmap(ptr(buffer), buffer.byteLength));
}

const MFD_CLOEXEC = 1, MFD_EXEC = 0x10;

/** A file in memory, without a name. Negative when there can be none; then `lastErrno` says why. */
export function memoryFile(name: string, isProgram = false): number {
  const text = cString(name);
  const fd = memfd_create(text, isProgram ? MFD_CLOEXEC | MFD_EXEC : MFD_CLOEXEC);
  // Kernels before 6.3 do not know MFD_EXEC; all their memory files are executable.
  return fd < 0 && isProgram && lastErrno() === EINVAL ? memfd_create(text, MFD_CLOEXEC) : fd;
}
