/**
 * What the kernel says of a process (proc(5)), read through one descriptor of its directory: it stays the same process's,
 * and reading fails when that has ended, also when its number is another's by then.
 */
import { ENOENT, isErrno } from "./errno.ts";
import {
  closeFile,
  namesIn,
  O_CLOEXEC,
  O_DIRECTORY,
  O_RDONLY,
  openFile,
  readKernelsText,
  readTextFile,
  whileOpen,
} from "./files.ts";
import { bindLater, check, cString, fromUtf8 } from "./libc.ts";
import { FFIType } from "./native.ts";

const c = bindLater({
  openat: { args: ["i32", "ptr", "i32"], returns: "i32" },
  readlinkat: { args: ["i32", "ptr", "ptr", "usize"], returns: FFIType.i64_fast },
});

/** Longer than a line of the kernel's own, and than any path of a root directory. */
const target = new Uint8Array(4096);

export class ProcessFiles {
  private readonly directory: number;
  private status: string | undefined;

  /** Throws SyscallError when there is no such process, as everything here does when it has ended. */
  constructor(process: number | "self") {
    this.directory = openFile(`/proc/${process}`, O_RDONLY | O_DIRECTORY);
  }

  text(name: string): string {
    const fd = check("openat", c().openat(this.directory, cString(name), O_RDONLY | O_CLOEXEC), name);
    return whileOpen(fd, () => readKernelsText(fd, name));
  }

  /** Where a link leads, such as `ns/net`. */
  link(name: string): string {
    const length = Number(c().readlinkat(this.directory, cString(name), target, target.length));
    return fromUtf8(target.subarray(0, check("readlinkat", length, name)));
  }

  /** The inodes of its sockets. */
  sockets(): Set<number> {
    const inodes = new Set<number>();
    for (const fd of namesIn(`/proc/self/fd/${this.directory}/fd`)) {
      try {
        const [, inode] = /^socket:\[(\d+)\]$/.exec(this.link(`fd/${fd}`)) ?? [];
        if (inode !== undefined) inodes.add(Number(inode));
      } catch (error) {
        if (!isErrno(error, ENOENT)) throw error; // Otherwise it has been closed meanwhile.
      }
    }
    return inodes;
  }

  /** A value of the file `status`, such as `CapEff`; empty where the kernel does not know it. */
  value(name: string): string {
    const status = this.status ??= this.text("status"), at = status.indexOf(`\n${name}:\t`);
    return at < 0 ? "" : status.slice(at + name.length + 3, status.indexOf("\n", at + 1));
  }

  close(): void {
    closeFile(this.directory);
  }
}

/**
 * How much memory a process has. `all` includes pages of files, which processes of the same program share. Zero when
 * there is no such process.
 */
export function memoryKib(pid: number | "self"): { all: number; own: number } {
  const status = readTextFile(`/proc/${pid}/status`) ?? "";
  const kib = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, "m").exec(status)?.[1] ?? 0);
  return { all: kib("VmRSS"), own: kib("RssAnon") };
}
