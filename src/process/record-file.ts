/** A record that other programs read and replace, too, in a directory where every file is one. */
import { EXDEV, isErrno } from "../ffi/errno.ts";
import { makeDirectories, removeFile, replaceFile } from "../ffi/files.ts";
import { isTrustedDirectory, judgeStateDirectory, readTrustedState } from "./state-file.ts";

export class RecordFile {
  readonly path: string;
  private readonly drafts: readonly [above: string, within: string];

  /** `draft` is what is written first, beside the directory unless that is a mount. Only one process at a time writes it. */
  constructor(private readonly directory: string, name: string, draft: string) {
    this.path = `${directory}/${name}`;
    this.drafts = [`${directory.slice(0, directory.lastIndexOf("/"))}/${draft}`, `${directory}/${draft}`];
  }

  /** Undefined when there is none that is trusted. */
  read(): string | undefined {
    const text = readTrustedState(this.path);
    // Nobody needs to hear of a directory that has nothing to say.
    return text !== undefined && isTrustedDirectory(this.directory, "group") ? text : undefined;
  }

  /** Atomic, and not synced. */
  replace(text: string): void {
    const [above, within] = this.drafts;
    makeDirectories(this.directory);
    try {
      replaceFile(this.path, text, { temporary: above });
    } catch (error) {
      if (!isErrno(error, EXDEV)) throw error;
      replaceFile(this.path, text, { temporary: within });
    }
  }

  /** With the draft that a process has left when it was killed. */
  remove(): void {
    for (const draft of this.drafts) removeFile(draft);
    if (judgeStateDirectory(this.directory, "group")) removeFile(this.path);
  }
}
