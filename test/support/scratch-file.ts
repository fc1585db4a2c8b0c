/** A directory for one test, and a place for a file in it. */
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

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
