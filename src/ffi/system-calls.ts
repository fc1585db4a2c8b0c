/**
 * System calls by their numbers (syscall(2)), for which the oldest C libraries that we run with, glibc 2.17 and musl 1.2.4,
 * have no function, or one that does nothing (`sched_setscheduler` of musl). Each returns what the C library's function
 * would; `lastErrno` says why it failed.
 */
import { bind, bindLater } from "./libc.ts";
import { FFIType } from "./native.ts";

// asm/unistd_64.h on x86-64, asm-generic/unistd.h on arm64.
const arm = process.arch === "arm64";
const numbers = {
  getdents64: arm ? 61 : 217,
  getrandom: arm ? 278 : 318,
  ioprio_set: arm ? 30 : 251,
  memfd_create: arm ? 279 : 319,
  mlock2: arm ? 284 : 325,
  sched_setscheduler: arm ? 119 : 144,
  statx: arm ? 291 : 332,
};

const onPath = bind({ syscall: { args: ["i32", "i32", "ptr", "i32", "u32", "ptr"], returns: "i32" } });
const onBuffer = bindLater({ syscall: { args: ["i32", "ptr", "usize", "u32"], returns: FFIType.i64_fast } });
const onDirectory = bindLater({ syscall: { args: ["i32", "i32", "ptr", "usize"], returns: FFIType.i64_fast } });
const onName = bindLater({ syscall: { args: ["i32", "ptr", "u32"], returns: "i32" } });
const onRange = bindLater({ syscall: { args: ["i32", FFIType.u64_fast, FFIType.u64_fast, "u32"], returns: "i32" } });
const onProcess = bindLater({ syscall: { args: ["i32", "i32", "i32", "ptr"], returns: "i32" } });
const onNumbers = bindLater({ syscall: { args: ["i32", "i32", "i32", "i32"], returns: "i32" } });

export function mlock2(start: number, length: number, flags: number): number {
  return onRange().syscall(numbers.mlock2, start, length, flags);
}

export function sched_setscheduler(process: number, policy: number, priority: Int32Array): number {
  return onProcess().syscall(numbers.sched_setscheduler, process, policy, priority);
}

export function ioprio_set(which: number, who: number, priority: number): number {
  return onNumbers().syscall(numbers.ioprio_set, which, who, priority);
}

export function statx(directory: number, path: Uint8Array, flags: number, wanted: number, into: Uint8Array): number {
  return onPath.syscall(numbers.statx, directory, path, flags, wanted, into);
}

export function getrandom(into: Uint8Array, count: number): number {
  return Number(onBuffer().syscall(numbers.getrandom, into, count, 0));
}

export function getdents64(directory: number, into: Uint8Array): number {
  return Number(onDirectory().syscall(numbers.getdents64, directory, into, into.length));
}

export function memfd_create(name: Uint8Array, flags: number): number {
  return onName().syscall(numbers.memfd_create, name, flags);
}
