/** A directory for one test, and a place for a file in it. */
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closeFile, O_CREAT, O_RDWR, openFile } from "../../src/ffi/files.ts";

export class ScratchFile implements Disposable {
  readonly directory = mkdtempSync(join(tmpdir(), "files-"));
  readonly file = join(this.directory, "file");

  /** Runs `work` with the file open. */
  withFile<T>(work: (fd: number) => T, flags = "r"): T {
    const fd = openSync(this.file, flags);
    try {
      return work(fd);
    } finally {
      closeSync(fd);
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true });
  }
}

/** Whose file is there, empty, and open for reading and writing. */
export class OpenScratchFile extends ScratchFile {
  readonly fd = openFile(this.file, O_RDWR | O_CREAT);

  override [Symbol.dispose](): void {
    closeFile(this.fd);
    super[Symbol.dispose]();
  }
}
