/** The file that this program is started from, which an upgrade replaces. */
import { errorText } from "../cni/error.ts";
import { closeFile, identify, O_RDONLY, O_WRONLY, openFile } from "../ffi/files.ts";
import { poll, POLLIN } from "../ffi/poll.ts";
import { sendSignal, SIGKILL } from "../ffi/signals.ts";
import { endingSoFar, openPidfd, spawn, waitFor } from "../ffi/spawn.ts";
import { warn } from "../ffi/warn.ts";

/** A file is copied into the place of another in less. */
const MISSING_MS = 10_000;
/** For a program that says its version. */
const PATIENCE_MS = 10_000;

export class OwnFile {
  readonly path = process.execPath.replace(/ \(deleted\)$/, "");
  private readonly id = identify("/proc/self/exe").id;
  private missingSince: number | undefined;
  private refused: string | undefined;

  get directory(): string {
    return this.path.slice(0, this.path.lastIndexOf("/")) || "/";
  }

  /** Something has changed in the directory: a file that did not run may be complete now. */
  forgetRefused(): void {
    this.refused = undefined;
  }

  /** "replaced" only when the new file runs. */
  look(): "as it was" | "replaced" | "gone" {
    const present = this.present();
    if (present === undefined) {
      this.missingSince ??= performance.now();
      return performance.now() - this.missingSince > MISSING_MS ? "gone" : "as it was";
    }
    this.missingSince = undefined;
    if (present.id === this.id || present.state === this.refused) return "as it was";
    const obstacle = this.whyItDoesNotRun();
    if (obstacle === undefined) return "replaced";
    this.refuse(obstacle);
    return "as it was";
  }

  /** Stays with the old one until the file changes again. */
  refuse(obstacle: string): void {
    this.refused = this.present()?.state;
    warn(`${this.path} was replaced by a file that does not run: ${obstacle}; the resident stays what it is`);
  }

  private present(): { id: string; state: string } | undefined {
    try {
      const { id, size, mode } = identify(this.path);
      return { id, state: `${id} ${size} ${mode}` };
    } catch {
      return undefined;
    }
  }

  private whyItDoesNotRun(): string | undefined {
    const input = openFile("/dev/null", O_RDONLY), output = openFile("/dev/null", O_WRONLY);
    try {
      const pid = spawn({
        path: this.path,
        argv: ["patchbay", "version"],
        environment: [],
        descriptors: [input, output, output],
      });
      const pidfd = openPidfd(pid);
      poll([{ fd: pidfd, events: POLLIN }], PATIENCE_MS);
      if (pidfd >= 0) closeFile(pidfd);
      let ending = endingSoFar(pid);
      if (ending === undefined) {
        sendSignal(pid, SIGKILL);
        ending = waitFor(pid);
      }
      return "exitStatus" in ending && ending.exitStatus === 0 ? undefined : `version: ${JSON.stringify(ending)}`;
    } catch (error) {
      return errorText(error);
    } finally {
      closeFile(input);
      closeFile(output);
    }
  }
}
