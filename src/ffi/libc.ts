/**
 * The C library functions this program calls, and the rules for calling them.
 *
 * Each row is a function of section 2 or 3 of the manual pages, under its own name, that glibc 2.17 has; what is newer is
 * in system-calls.ts. Only functions that
 * a plain ADD or DEL calls belong here, because every row is bound when the table is loaded (about 3 µs each);
 * rarer functions are bound where they are used, through `bindLater`.
 *
 * Everything is synchronous. Code that enters another network namespace relies on it: nothing else may run
 * on the thread between entering and leaving.
 */
import type { FFIFunction, Pointer } from "bun:ffi";
import { EINTR, EINVAL, SyscallError } from "./errno.ts";
import { dlopen, FFIType, read } from "./native.ts";

/** musl takes each of these names for itself. */
const LIBC = "libc.so.6";
/** Where functions are that glibc has in libc.so.6 since 2.34 alone. The runtime has loaded both. */
export const LIBDL = "libdl.so.2", LIBPTHREAD = "libpthread.so.0";

const { symbols } = dlopen(LIBC, {
  __errno_location: { args: [], returns: "ptr" },
  _exit: { args: ["i32"], returns: "void" },
  open: { args: ["ptr", "i32", "i32"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
  read: { args: ["i32", "ptr", "usize"], returns: FFIType.i64_fast },
  write: { args: ["i32", "ptr", "usize"], returns: FFIType.i64_fast },
  rename: { args: ["ptr", "ptr"], returns: "i32" },
  unlink: { args: ["ptr"], returns: "i32" },
  mkdir: { args: ["ptr", "i32"], returns: "i32" },
  umask: { args: ["u32"], returns: "u32" },
  flock: { args: ["i32", "i32"], returns: "i32" },
  fcntl: { args: ["i32", "i32", "ptr"], returns: "i32" },
  mmap: { args: ["ptr", "usize", "i32", "i32", "i32", FFIType.i64_fast], returns: "ptr" },
  munmap: { args: ["ptr", "usize"], returns: "i32" },
  fstatfs: { args: ["i32", "ptr"], returns: "i32" },
  ioctl: { args: ["i32", FFIType.u64_fast, "ptr"], returns: "i32" },
  setns: { args: ["i32", "i32"], returns: "i32" },
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
  connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
  setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
  getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
  getsockname: { args: ["i32", "ptr", "ptr"], returns: "i32" },
  sendto: { args: ["i32", "ptr", "usize", "i32", "ptr", "u32"], returns: FFIType.i64_fast },
  recvfrom: { args: ["i32", "ptr", "usize", "i32", "ptr", "ptr"], returns: FFIType.i64_fast },
  poll: { args: ["ptr", FFIType.u64_fast, "i32"], returns: "i32" },
});

export const libc = symbols;

// errno(3) is one address for the life of a thread, and everything here runs on the main thread.
const errnoAddress = symbols.__errno_location() as Pointer;

/** Why the last call failed. Read it at once: the next call may overwrite it. */
export function lastErrno(): number {
  return read.i32(errnoAddress, 0);
}

/** Returns what the call returned, or throws its errno. `subject` names what the call worked on: a path, a name. */
export function check(call: string, returned: number, subject?: string): number {
  if (returned < 0) throw new SyscallError(call, lastErrno(), subject);
  return returned;
}

/** Like `check`, but repeats the call when a signal interrupted it before it did anything. */
export function retrying(call: string, attempt: () => number, subject?: string): number {
  for (;;) {
    const returned = attempt();
    if (returned >= 0) return returned;
    const errno = lastErrno();
    if (errno !== EINTR) throw new SyscallError(call, errno, subject);
  }
}

/** Binds functions that a plain ADD or DEL does not need. */
export function bind<T extends Record<string, FFIFunction>>(table: T, library = LIBC) {
  return dlopen(library, table).symbols;
}

/** The same once, when they are first asked for. */
export function bindLater<T extends Record<string, FFIFunction>>(table: T, library = LIBC) {
  let bound: ReturnType<typeof bind<T>> | undefined;
  return () => bound ??= bind(table, library);
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A C string: UTF-8 with a terminating NUL. Throws when the text contains NUL, which would name another file. */
export function cString(text: string): Uint8Array {
  if (text.includes("\0")) throw new SyscallError("encode", EINVAL, JSON.stringify(text));
  return encoder.encode(text + "\0");
}

export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

export function fromUtf8(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** Ends the process without the exit work of the JavaScript runtime. */
export function exitNow(status: number): never {
  symbols._exit(status);
  throw new Error("unreachable");
}
