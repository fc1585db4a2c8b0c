/**
 * System calls by their numbers (syscall(2)), for which the oldest C libraries that we run with, glibc 2.17 and musl 1.2.4,
 * have no function. Each returns what the C library's function would; `lastErrno` says why it failed.
 */
import { bind, bindLater } from "./libc.ts";
import { FFIType } from "./native.ts";

// asm/unistd_64.h on x86-64, asm-generic/unistd.h on arm64.
const numbers = process.arch === "arm64"
  ? { getdents64: 61, getrandom: 278, memfd_create: 279, statx: 291 }
  : { getdents64: 217, getrandom: 318, memfd_create: 319, statx: 332 };

const onPath = bind({ syscall: { args: ["i32", "i32", "ptr", "i32", "u32", "ptr"], returns: "i32" } });
const onBuffer = bindLater({ syscall: { args: ["i32", "ptr", "usize", "u32"], returns: FFIType.i64_fast } });
const onDirectory = bindLater({ syscall: { args: ["i32", "i32", "ptr", "usize"], returns: FFIType.i64_fast } });
const onName = bindLater({ syscall: { args: ["i32", "ptr", "u32"], returns: "i32" } });

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
