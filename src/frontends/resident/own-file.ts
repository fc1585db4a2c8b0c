/** The file that this program is started from, which an upgrade replaces. */
import { errorText } from "../../cni/error.ts";
import { moveUp } from "../../ffi/descriptors.ts";
import { linkTarget } from "../../ffi/directory-entries.ts";
import { closeFile, identify, O_PATH, openFile } from "../../ffi/files.ts";
import { SIGKILL } from "../../ffi/signals.ts";
import { describeEnding, type Ending, hasSucceeded } from "../../ffi/spawn.ts";
import { Overdue, runProgram } from "../../process/run-program.ts";
import { onlyOurs, UntrustedFile, withJudged } from "../../process/trusted-executable.ts";
import { warn } from "../../process/warn.ts";

/** The longest time that copying a file into the place of another may take. */
const MISSING_MS = 10_000;
/** How long a program may take to say its version. */
const PATIENCE_MS = 10_000;

/** The kernel appends this to the path of a removed file. */
const DELETED = / \(deleted\)$/;

export class OwnFile {
  readonly path = process.execPath.replace(DELETED, "");
  private readonly id = identify("/proc/self/exe").id;
  private missingSince: number | undefined;
  private refused: string | undefined;
  private warnedOf: string | undefined;

  get directory(): string {
    return this.path.slice(0, this.path.lastIndexOf("/")) || "/";
  }

  /** Something has changed in the directory: a file that did not run may be complete now. */
  forgetRefused(): void {
    this.refused = undefined;
  }

  /** Calls `execute` when another file has the place and runs. */
  executeReplacement(execute: (program: string) => never): void {
    const present = this.present();
    this.missingSince = present === undefined ? this.missingSince ?? performance.now() : undefined;
    if (present === undefined || present.id === this.id || present.state === this.refused) return;
    this.refused = present.state;
    this.warnOnce(obstacleTo(this.path, execute)!, present.file);
  }

  /** Whether what has the place now is another file, or nothing. */
  get isOther(): boolean {
    return this.present()?.id !== this.id;
  }

  /** At the last look there was no file, and none has been there for long. */
  get isGone(): boolean {
    return this.missingSince !== undefined && performance.now() - this.missingSince > MISSING_MS;
  }

  /** Not again for a file that grows: somebody is copying it, as `mv` does from another file system. */
  private warnOnce(obstacle: string, file: string): void {
    const warning = `${this.path} was replaced by a file that ${obstacle}; the resident goes on with the old program`;
    if (this.warnedOf === warning + file) return;
    this.warnedOf = warning + file;
    warn(warning);
  }

  private present(): { id: string; file: string; state: string } | undefined {
    try {
      const { id, size, mode, uid } = identify(this.path), file = `${id} ${mode} ${uid}`;
      return { id, file, state: `${file} ${size}` };
    } catch {
      return undefined;
    }
  }
}

/**
 * Returns why no resident executes the file, and calls `execute` when nothing is in the way. Nobody names the file, so it
 * has to be root's or our own. The file that said its version is the one that is executed.
 */
function obstacleTo(path: string, execute: (program: string) => void): string | undefined {
  try {
    return withJudged(path, onlyOurs(), ({ file }) => {
      // The first numbers are given to other files before the execution.
      const fd = moveUp(openFile(`/proc/self/fd/${file}`, O_PATH)), program = `/proc/self/fd/${fd}`;
      try {
        const why = whyItDoesNotRun(path, program);
        if (why === undefined) execute(program);
        return why && `does not run: ${why}`;
      } finally {
        closeFile(fd);
      }
    });
  } catch (error) {
    if (!(error instanceof UntrustedFile)) return `does not run: ${errorText(error)}`;
    const { path, why, nextStep } = error;
    return `a resident does not execute unasked: ${path}: ${why} (${nextStep}, or restart the resident)`;
  }
}

/** Returns what keeps a resident from executing the file that has the place of its own. `pid` is the resident's. */
export function refusedUpgradeOf(pid: number): string | undefined {
  const running = `/proc/${pid}/exe`, path = linkTarget(running)?.replace(DELETED, "");
  if (path === undefined || isSameFile(running, path)) return undefined;
  const obstacle = obstacleTo(path, () => {});
  return obstacle && `${path} was replaced by a file that ${obstacle}`;
}

/** True also when one of the files is gone: the process may end at any moment. */
function isSameFile(one: string, other: string): boolean {
  try {
    return identify(one).id === identify(other).id;
  } catch {
    return true;
  }
}

function whyItDoesNotRun(path: string, executed: string): string | undefined {
  const program = { path, executed, argv: ["patchbay", "version"], environment: [], patienceMs: PATIENCE_MS };
  let ending: Ending;
  try {
    ({ ending } = runProgram(program, new Uint8Array()));
  } catch (error) {
    if (!(error instanceof Overdue)) throw error;
    ending = { signal: SIGKILL };
  }
  return hasSucceeded(ending) ? undefined : `its command \`version\` ended with ${describeEnding(ending)}`;
}
