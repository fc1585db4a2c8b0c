/**
 * Stdin, stdout and stderr of the call that is served. Stdin is the caller's. The outputs are files in memory: the
 * launcher writes them, when the call has ended, so a worker that dies has said nothing.
 */
import { closeFile, O_RDONLY, openFile, readAllFrom, readAt, truncateFile, writeAll } from "../../ffi/files.ts";
import { bind, check } from "../../ffi/libc.ts";
import { memoryFile } from "../../ffi/memory.ts";
import { FFIType } from "../../ffi/native.ts";

const SEEK_SET = 0, SEEK_CUR = 1;

const symbols = bind({
  dup2: { args: ["i32", "i32"], returns: "i32" },
  lseek: { args: ["i32", FFIType.i64_fast, "i32"], returns: FFIType.i64_fast },
});

export class Streams {
  private readonly nothing = openFile("/dev/null", O_RDONLY);

  /** A worker begins with a stdin that has nothing in it (workers.ts). */
  constructor() {
    for (const fd of [1, 2]) newFile(fd);
  }

  /** Without a descriptor there is nothing to read. */
  takeStdin(fd: number | undefined): void {
    this.put(fd ?? this.nothing, 0);
  }

  /** For a call without a caller. */
  giveStdin(bytes: Uint8Array): void {
    const fd = check("memfd_create", memoryFile("stdin"));
    try {
      writeAll(fd, bytes);
      symbols.lseek(fd, 0, SEEK_SET);
      this.put(fd, 0);
    } finally {
      closeFile(fd);
    }
  }

  /** Reads what the caller has not read, and leaves it unread. */
  readAhead(): Uint8Array {
    return readAllFrom(Number(symbols.lseek(0, 0, SEEK_CUR)), 0, "stdin");
  }

  written(fd: 1 | 2): Uint8Array {
    const bytes = new Uint8Array(Number(symbols.lseek(fd, 0, SEEK_CUR)));
    check("pread", readAt(fd, bytes, 0));
    return bytes;
  }

  /** Hands the files themselves over; new ones take their place at `reset`. */
  files(): [stdout: number, stderr: number] {
    return [1, 2];
  }

  reset(wereHandedOver: boolean): void {
    this.put(this.nothing, 0);
    for (const fd of [1, 2]) {
      if (wereHandedOver) newFile(fd);
      else if (Number(symbols.lseek(fd, 0, SEEK_CUR)) > 0) {
        truncateFile(fd, 0);
        symbols.lseek(fd, 0, SEEK_SET);
      }
    }
  }

  private put(fd: number, at: number): void {
    check("dup2", symbols.dup2(fd, at));
  }
}

function newFile(at: number): void {
  const fd = check("memfd_create", memoryFile("output"));
  check("dup2", symbols.dup2(fd, at));
  closeFile(fd);
}
