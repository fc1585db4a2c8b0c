/**
 * Signals as something to wait for, without a handler: they are blocked and read from a descriptor (signalfd(2)).
 *
 * Blocking one holds for the calling thread and for what it starts or becomes later. The kernel hands a signal to any
 * thread that does not block it, and this runtime has threads of its own: only a process that was started with the
 * signal blocked can rely on this.
 */
import { EAGAIN, EINTR, SyscallError } from "./errno.ts";
import { bind, bindLater, check, fromUtf8, lastErrno, libc, LIBPTHREAD } from "./libc.ts";
import { O_RDONLY, openFile, readAll, whileOpen } from "./files.ts";
import { FFIType } from "./native.ts";

// asm-generic/signal.h
export const SIGHUP = 1, SIGINT = 2, SIGKILL = 9, SIGTERM = 15, SIGCHLD = 17;
const SIG_BLOCK = 0, SIG_UNBLOCK = 1;
const SFD_NONBLOCK = 0o4000, SFD_CLOEXEC = 0o2000000;
/** struct signalfd_siginfo; its first field is the signal's number. */
const SIGINFO_BYTES = 128;

const c = bindLater({
  signalfd: { args: ["i32", "ptr", "i32"], returns: "i32" },
  kill: { args: ["i32", "i32"], returns: "i32" },
});
const threads = bindLater({ pthread_sigmask: { args: ["i32", "ptr", "ptr"], returns: "i32" } }, LIBPTHREAD);

/** sigset_t */
function setOf(signals: readonly number[]): BigUint64Array {
  const set = new BigUint64Array(16);
  for (const signal of signals) set[0]! |= 1n << BigInt(signal - 1);
  return set;
}

/** Whether the process was told to ignore it, as nohup(1) does. */
export function isIgnored(signal: number): boolean {
  return isIn(["SigIgn"], signal, "self");
}

/** Whether the other process has a handler for it. Throws when there is no such process. */
export function isCaught(signal: number, pid: number): boolean {
  return isIn(["SigCgt"], signal, pid);
}

/** Whether the other process has to end, but has not had the time yet. Throws when there is no such process. */
export function isKilled(pid: number): boolean {
  return isIn(["SigPnd", "ShdPnd"], SIGKILL, pid);
}

/** proc_pid_status(5) */
function isIn(
  sets: readonly ("SigIgn" | "SigCgt" | "SigPnd" | "ShdPnd")[],
  signal: number,
  pid: number | "self",
): boolean {
  const status = whileOpen(openFile(`/proc/${pid}/status`, O_RDONLY), (fd) => fromUtf8(readAll(fd)));
  const signals = status.matchAll(new RegExp(`^(?:${sets.join("|")}):\t([0-9a-f]+)$`, "gm"));
  return [...signals].some(([, set]) => (BigInt(`0x${set}`) & setOf([signal])[0]!) !== 0n);
}

export function blockSignals(signals: readonly number[]): void {
  const errno = threads().pthread_sigmask(SIG_BLOCK, setOf(signals), null);
  if (errno !== 0) throw new SyscallError("pthread_sigmask", errno);
}

/** For this thread, which they end as always: none that begins from now on may count on them being blocked. */
export function unblockSignals(signals: readonly number[]): void {
  const errno = threads().pthread_sigmask(SIG_UNBLOCK, setOf(signals), null);
  if (errno !== 0) throw new SyscallError("pthread_sigmask", errno);
}

/** Which of the signals are blocked. */
export function blockedAmong(signals: readonly number[]): number[] {
  const blocked = new BigUint64Array(16), errno = threads().pthread_sigmask(SIG_BLOCK, null, blocked);
  if (errno !== 0) throw new SyscallError("pthread_sigmask", errno);
  return signals.filter((signal) => (blocked[0]! & setOf([signal])[0]!) !== 0n);
}

/** A descriptor that is readable when one of these blocked signals has come. */
export function openSignals(signals: readonly number[]): number {
  return check("signalfd", c().signalfd(-1, setOf(signals), SFD_CLOEXEC | SFD_NONBLOCK));
}

/** The signals that have come since. */
export function readSignals(fd: number): number[] {
  const found: number[] = [], info = new Uint8Array(SIGINFO_BYTES);
  for (;;) {
    const length = Number(libc.read(fd, info, info.length));
    if (length === SIGINFO_BYTES) found.push(new DataView(info.buffer).getUint32(0, true));
    else if (length < 0 && lastErrno() === EINTR) continue;
    else if (length < 0 && lastErrno() !== EAGAIN) throw new SyscallError("read", lastErrno(), "signals");
    else return found;
  }
}

export function sendSignal(pid: number, signal: number): void {
  check("kill", c().kill(pid, signal), `process ${pid}`);
}

const PR_SET_PDEATHSIG = 1;

/** The kernel sends this process the signal when its parent ends, or now if it has ended (prctl(2)). */
export function endWith(parent: number, signal: number): void {
  const { prctl } = bind({ prctl: { args: ["i32", FFIType.u64_fast], returns: "i32" } });
  check("prctl", prctl(PR_SET_PDEATHSIG, signal));
  if (process.ppid !== parent) sendSignal(process.pid, signal);
}
