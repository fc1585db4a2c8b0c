/**
 * Gives a system call that may wait without end a limit: a timer's signal interrupts it (signal(7), EINTR). For locks, so
 * that the kernel's queue of those who wait stays as it is: who asks again and again is overtaken by who has just come.
 */
import { bind, check, cString, libc } from "./libc.ts";
import { FFIType } from "./native.ts";

const isArm = process.arch === "arm64";
// asm-generic/unistd.h, and asm/unistd_64.h of x86. glibc's own functions were in another library before 2.34.
const SYS_gettid = isArm ? 178 : 186;
const SYS_timer_create = isArm ? 107 : 222,
  SYS_timer_settime = isArm ? 110 : 223,
  SYS_timer_delete = isArm ? 111 : 226;
const CLOCK_MONOTONIC = 1, SIGALRM = 14, SIGEV_THREAD_ID = 4;
/** The first signal may come just before the wait begins. */
const AGAIN_MS = 50;

const bindInterrupted = () =>
  bind({
    sigaction: { args: ["i32", "ptr", "ptr"], returns: "i32" },
    syscall: {
      args: [FFIType.i64_fast, FFIType.i64_fast, "ptr", "ptr"],
      returns: FFIType.i64_fast,
    },
  });
let symbols: ReturnType<typeof bindInterrupted> | undefined;

/** From `limitMs` on, calls of this thread that wait end with EINTR. */
export function interruptedAfter<T>(limitMs: number, work: () => T): T {
  const timer = startTimer(limitMs);
  try {
    return work();
  } finally {
    symbols!.syscall(SYS_timer_delete, timer, null, null);
  }
}

function startTimer(limitMs: number): number {
  const { syscall } = symbols ??= catchSignal();
  // struct sigevent: value 8 bytes, signal i32, how i32, thread i32.
  const event = new Uint8Array(64), eventView = new DataView(event.buffer), id = new Int32Array(1);
  eventView.setInt32(8, SIGALRM, true);
  eventView.setInt32(12, SIGEV_THREAD_ID, true);
  eventView.setInt32(16, Number(syscall(SYS_gettid, 0, null, null)), true);
  check("timer_create", Number(syscall(SYS_timer_create, CLOCK_MONOTONIC, event, id)));
  // struct itimerspec: interval, then the first time; each seconds and nanoseconds.
  const times = new BigInt64Array([...timespec(AGAIN_MS), ...timespec(limitMs)]);
  const bindSettime = bind({
    syscall: {
      args: [FFIType.i64_fast, FFIType.i64_fast, FFIType.i64_fast, "ptr", "ptr"],
      returns: FFIType.i64_fast,
    },
  });
  check("timer_settime", Number(bindSettime.syscall(SYS_timer_settime, id[0]!, 0, times, null)));
  return id[0]!;
}

function timespec(ms: number): [bigint, bigint] {
  return [BigInt(Math.floor(ms / 1000)), BigInt(Math.floor(ms % 1000) * 1e6)];
}

/** Its handler does nothing: it is there to interrupt. Without SA_RESTART the kernel does not begin the call again. */
function catchSignal(): ReturnType<typeof bindInterrupted> {
  const bound = bindInterrupted();
  // struct sigaction of glibc: handler, 128 bytes of mask, flags, restorer. abs(3) takes an int and changes nothing.
  const action = new BigUint64Array(19);
  action[0] = BigInt(libc.dlsym(null, cString("abs")) as number);
  check("sigaction", bound.sigaction(SIGALRM, action, null));
  return bound;
}
