/**
 * Executes files that are found by their path. Root must not execute what others could have put there (SECURITY.md): so
 * the file is judged, and each directory that says which file it is, by their descriptors.
 *
 * The kernel then finds the file in the directory that was judged, by `/proc/self/fd/DIRECTORY/NAME`, wherever the path
 * leads by then. By the file's own descriptor, /proc/PID/comm would be a number, and ps, pgrep and the rules of auditors
 * go by that name; a script would not know its name either. The rule trusts
 * everybody who can change an entry of the directory.
 */
import { beforeWaitingFor } from "./patience.ts";
import { linkTarget } from "../ffi/directory-entries.ts";
import { moveDescriptor } from "../ffi/descriptors.ts";
import { ELOOP, ETXTBSY, isErrno, SyscallError } from "../ffi/errno.ts";
import {
  closeFile,
  type FileIdentity,
  identify,
  isLink,
  isRegularFile,
  O_CLOEXEC,
  O_DIRECTORY,
  O_NOFOLLOW,
  O_PATH,
  O_RDONLY,
  openFile,
} from "../ffi/files.ts";
import { cString, fromUtf8, libc } from "../ffi/libc.ts";
import { type Finished, type GivenOutputs, type ProgramToRun, runProgram } from "./run-program.ts";

/** Who may write to a file that is executed, and to the directories. */
interface Rule {
  /** Permissions that none of them may have. */
  forbidden: number;
  /** Anybody, when it is not there. */
  owners?: readonly number[];
}

/** For what an administrator or engine names: archives of plugins keep the user ids of their packers. */
export const NOT_EVERYBODYS: Rule = { forbidden: 0o002 };

/** For a file that no administrator or engine names, such as the one that takes a resident's place. */
export function onlyOurs(): Rule {
  return { forbidden: 0o022, owners: [0, process.geteuid!()] };
}

export class UntrustedFile extends Error {
  constructor(readonly path: string, readonly why: string, readonly nextStep: string) {
    super(`${path} is not executed: ${why} (${nextStep})`);
  }
}

/** Open descriptors. */
interface Judged {
  /** The directory that the path says. */
  directory: number;
  /** What the path leads to; not open for reading. */
  file: number;
}

/** path_resolution(7) */
const MOST_LINKS = 40;

/** Throws an UntrustedFile unless the rule holds, and what the kernel says when it finds nothing to execute. */
export function withJudged<T>(path: string, rule: Rule, work: (judged: Judged) => T): T {
  const open: number[] = [];
  try {
    let at = path;
    for (let links = 0; links <= MOST_LINKS; links++) {
      const directory = enter(directoryOf(at), O_DIRECTORY, path, open);
      requireRule(rule, identify(directory), links === 0 ? directoryOf(path) : directory);
      const entry = `/proc/self/fd/${directory}/${nameOf(at)}`, file = enter(entry, O_NOFOLLOW, path, open);
      const found = identify(file);
      if (!isLink(found)) {
        requireRule(rule, found, links === 0 ? path : file);
        return work({ directory: open[0]!, file });
      }
      const target = linkTarget(entry) ?? "";
      at = target.startsWith("/") ? target : `/proc/self/fd/${directory}/${target}`;
    }
    throw new SyscallError("fork/exec", ELOOP, path);
  } finally {
    open.forEach(closeFile);
  }
}

function enter(at: string, flags: number, path: string, open: number[]): number {
  try {
    const fd = openFile(at, O_PATH | flags);
    // The first three numbers are stdin, stdout and stderr of what is started.
    open.push(fd < 3 ? moveDescriptor(fd, 3) : fd);
    return open.at(-1)!;
  } catch (error) {
    throw error instanceof SyscallError ? new SyscallError("fork/exec", error.errno, path) : error;
  }
}

function requireRule({ forbidden, owners }: Rule, { mode, uid }: FileIdentity, name: string | number): void {
  const excess = mode & forbidden, isOwned = owners?.includes(uid) ?? true;
  if (excess === 0 && isOwned) return;
  const path = typeof name === "string" ? name : linkTarget(`/proc/self/fd/${name}`) ?? "";
  if ((excess & 0o002) !== 0) throw new UntrustedFile(path, "everybody may write to it", `chmod o-w ${path}`);
  if (excess !== 0) throw new UntrustedFile(path, "its group may write to it", `chmod g-w ${path}`);
  throw new UntrustedFile(path, `it belongs to user ${uid}`, `chown ${owners!.at(-1)} ${path}`);
}

function directoryOf(path: string): string {
  const end = path.lastIndexOf("/");
  return end > 0 ? path.slice(0, end) : end === 0 ? "/" : ".";
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** Where an interpreter gets the directory of its script: above the numbers that scripts use. */
const SCRIPT_DIRECTORY = 101;

/** Tries six times, a second apart, while the file is open for writing because an installer replaces it. */
export function runTrusted(
  program: ProgramToRun,
  stdin: Uint8Array,
  given?: GivenOutputs,
): Finished {
  beforeWaitingFor("another program");
  for (let attempt = 1;; attempt++) {
    try {
      return withJudged(program.path, NOT_EVERYBODYS, ({ directory, file }) => {
        const isBinary = isMachineCode(file), name = nameOf(program.path);
        const executed = `/proc/self/fd/${isBinary ? directory : SCRIPT_DIRECTORY}/${name}`;
        const inherited = isBinary ? undefined : { ours: directory, theirs: SCRIPT_DIRECTORY };
        return runProgram({ ...program, executed, inherited }, stdin, given);
      });
    } catch (error) {
      if (!isErrno(error, ETXTBSY) || attempt >= 6) throw error;
      Bun.sleepSync(1000);
    }
  }
}

/** Any other file is opened once more, by an interpreter that has only the descriptors which it inherits. */
function isMachineCode(file: number): boolean {
  if (!isRegularFile(identify(file))) return true;
  const bytes = new Uint8Array(4), fd = libc.open(cString(`/proc/self/fd/${file}`), O_RDONLY | O_CLOEXEC, 0);
  // Interpreters cannot read it either.
  if (fd < 0) return true;
  libc.read(fd, bytes, bytes.length);
  closeFile(fd);
  return fromUtf8(bytes) === "\x7fELF";
}
