/**
 * Runs a command as hosts confine it: a filter of system calls (seccomp(2)), as service managers and engines install it, or
 * memory that is never writable and executable (PR_SET_MDWE). Words to put before a command:
 *
 *     await machine.run([...confined({ refused: ["memfd_create"] }), PATCHBAY, "version"]);
 */
import { dlopen, ptr } from "bun:ffi";
import { constants } from "node:os";

/** By their numbers on x86-64 and arm64, asm/unistd.h. */
const numbers = {
  getrandom: [318, 278],
  memfd_create: [319, 279],
  mmap: [9, 222],
  mprotect: [10, 226],
  pidfd_open: [434, 434],
  setns: [308, 268],
  socket: [41, 198],
  statx: [332, 291],
} as const;

export interface Confinement {
  /** System calls that fail. */
  refused?: readonly (keyof typeof numbers)[];
  /** With this errno; EPERM without it. */
  errno?: "EPERM" | "ENOSYS";
  /** As a kernel without netfilter: it has no such sockets. */
  lacksNetfilter?: true;
  /** As MemoryDenyWriteExecute=yes of systemd before 254 does it, or as the kernel itself, since Linux 6.3. */
  writeOrExecute?: "by a filter" | "by the kernel";
}

export function confined(confinement: Confinement): string[] {
  return [process.execPath, import.meta.path, JSON.stringify(confinement)];
}

// linux/prctl.h
const PR_SET_SECCOMP = 22, PR_SET_NO_NEW_PRIVS = 38, PR_SET_MDWE = 65, PR_MDWE_REFUSE_EXEC_GAIN = 1;

// linux/netlink.h: no protocol that is used here has all bits of it.
const NETLINK_NETFILTER = 12;

const libc = () =>
  dlopen("libc.so.6", {
    prctl: { args: ["i32", "u64", "ptr", "u64", "u64"], returns: "i32" },
    execv: { args: ["ptr", "ptr"], returns: "i32" },
  }).symbols;

/** Whether this kernel can forbid it by itself. */
export function hasMdwe(): boolean {
  const { exitCode } = Bun.spawnSync([...confined({ writeOrExecute: "by the kernel" }), "/bin/true"]);
  return exitCode === 0;
}

if (import.meta.main) confine(JSON.parse(process.argv[2]!) as Confinement, process.argv.slice(3));

function confine(
  { refused = [], errno = "EPERM", lacksNetfilter, writeOrExecute }: Confinement,
  command: string[],
): never {
  const { prctl, execv } = libc(), code = constants.errno[errno];
  const rules = refused.map((name) => refusing(numberOf(name), code));
  if (lacksNetfilter) rules.push(refusing(numberOf("socket"), constants.errno.EPROTONOSUPPORT, NETLINK_NETFILTER));
  if (writeOrExecute === "by a filter") {
    rules.push(refusing(numberOf("mmap"), code, 6), refusing(numberOf("mprotect"), code, 4));
  }
  const path = cString(command[0]!), words = command.map(cString);
  const argv = new BigUint64Array([...words.map((word) => BigInt(ptr(word))), 0n]);
  let status = 0;
  if (rules.length > 0) {
    const filter = new Uint8Array(Buffer.concat([...rules, instruction(0x06, 0, 0, 0x7fff0000)]));
    // struct sock_fprog
    const program = new BigUint64Array([BigInt(filter.length / 8), BigInt(ptr(filter))]);
    status ||= prctl(PR_SET_NO_NEW_PRIVS, 1, null, 0, 0) || prctl(PR_SET_SECCOMP, 2, program, 0, 0);
    if (filter.length === 0) throw new Error("unreachable: it is not collected before");
  }
  if (writeOrExecute === "by the kernel") status ||= prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, null, 0, 0);
  if (status === 0) execv(path, argv);
  throw new Error(`cannot run ${words.length > 0 ? command[0] : ""} confined`);
}

/** A filter that refuses a system call when its third argument has all of these bits. */
function refusing(number: number, errno: number, bits = 0): Uint8Array {
  // linux/filter.h, linux/seccomp.h: the number is at 0, the third argument at 32.
  const jumps = bits === 0 ? [] : [
    instruction(0x20, 0, 0, 32),
    instruction(0x54, 0, 0, bits),
    instruction(0x15, 0, 1, bits),
  ];
  return new Uint8Array(Buffer.concat([
    instruction(0x20, 0, 0, 0),
    instruction(0x15, 0, jumps.length + 1, number),
    ...jumps,
    instruction(0x06, 0, 0, 0x00050000 | errno),
  ]));
}

/** struct sock_filter */
function instruction(code: number, whenTrue: number, whenFalse: number, value: number): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(8));
  bytes.setUint16(0, code, true);
  bytes.setUint8(2, whenTrue);
  bytes.setUint8(3, whenFalse);
  bytes.setUint32(4, value, true);
  return new Uint8Array(bytes.buffer);
}

function numberOf(name: keyof typeof numbers): number {
  return numbers[name][process.arch === "arm64" ? 1 : 0];
}

function cString(text: string): Uint8Array {
  return new TextEncoder().encode(`${text}\0`);
}
