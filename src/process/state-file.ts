/**
 * State: files that one call writes for a later one, of this program or of another that shares them, such as libcni. Root
 * does what they say, so a file is judged when it is open, by its descriptor: whatever happens to its path meanwhile does not count.
 * What is not a regular file is refused before anything is read from it, and opening it waits for nobody.
 *
 * A file of this user or root that has one name and that nobody else can write says what its owner wrote, in whose
 * directory it may be. `judgeStateDirectory` adds that nobody else can put one such file in another's place.
 */
import {
  EISDIR,
  ENAMETOOLONG,
  ENOENT,
  ENOTDIR,
  EOPNOTSUPP,
  EPERM,
  errnoText,
  isErrno,
  SyscallError,
} from "../ffi/errno.ts";
import {
  closeFile,
  existingPartOf,
  type FileIdentity,
  identify,
  isDirectory,
  isRegularFile,
  O_CREAT,
  O_NOCTTY,
  O_NOFOLLOW,
  O_NONBLOCK,
  O_RDONLY,
  O_RDWR,
  O_TMPFILE,
  O_WRONLY,
  openExisting,
  openFile,
  readAll,
  removeFile,
  truncateFile,
  whileOpen,
  writeAll,
} from "../ffi/files.ts";
import { fromUtf8, utf8 } from "../ffi/libc.ts";
import { preparing } from "../ffi/socket/socket.ts";
import { lockWithOthers } from "./lock.ts";
import { warn, warnOnce } from "./warn.ts";

/** What is at the path is not believed. The message names what it is, and the next step. */
export class UntrustedState extends SyscallError {
  constructor(path: string, readonly found: string, readonly nextStep: string) {
    super("open", EPERM, path);
    this.name = "UntrustedState";
    this.message = `${path} is not trusted: ${found}; ${nextStep}`;
  }
}

/**
 * Whose files count. Lease files may be anybody's, because they decide nothing but which address is free. The own group may
 * write to lock files, because nothing is read from them: netavark makes its own so where the umask is 002.
 */
export type Whose = "own" | "own group's" | "anybody's";

export interface OpenState {
  fd: number;
  size: number;
}

/** Without O_TRUNC, which would act before the judgement. */
export function openStateFile(path: string, flags: number, whose: Whose = "own"): OpenState {
  return judged(path, flags, whose, () => openFile(path, safe(flags)))!;
}

/** Like `openStateFile`; undefined when there is no such file. */
export function openExistingState(path: string, flags: number, whose: Whose = "own"): OpenState | undefined {
  return judged(path, flags, whose, () => openExisting(path, safe(flags)));
}

/** The file's text, or undefined when there is no such file. */
export function readStateFile(path: string, whose: Whose = "own", limitBytes?: number): string | undefined {
  const state = openExistingState(path, O_RDONLY, whose);
  if (state === undefined) return undefined;
  const { fd, size } = state;
  return whileOpen(fd, () => size === 0 ? "" : fromUtf8(readAll(fd, limitBytes, path, size)));
}

/** Like `readStateFile`, for clean-up: what is not trusted counts as lost, with a warning. */
export function readTrustedState(path: string): string | undefined {
  return unlessUntrusted(() => readStateFile(path));
}

/** Makes the file, or overwrites it. Not atomic: after a crash it may be wrong, but a reader never finds it empty. */
export function overwriteStateFile(path: string, text: string, whose: Whose = "own"): void {
  const bytes = utf8(text), { fd, size } = openStateFile(path, O_WRONLY | O_CREAT, whose);
  whileOpen(fd, () => {
    writeAll(fd, bytes, path);
    if (bytes.length < size) truncateFile(fd, bytes.length, path);
  });
}

/** Undefined, with a warning, when the work met something that is not trusted. */
export function unlessUntrusted<Value>(work: () => Value): Value | undefined {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof UntrustedState)) throw error;
    warnOnce(error.message);
    return undefined;
  }
}

/** For clean-up, which must not fail for ever: leaves a directory, which is none of ours, and warns. */
export function removeStateFile(path: string): void {
  try {
    removeFile(path);
  } catch (error) {
    if (!isErrno(error, EISDIR)) throw error;
    warn(`${path} stays: it is a directory; remove it`);
  }
}

/** Opens a file that processes lock. Undefined, with a warning, when it is not trusted: others could hold it for ever. */
export function openStateLock(path: string): number | undefined {
  return unlessUntrusted(() => openStateFile(path, O_RDWR | O_CREAT, "own group's").fd);
}

/** Runs `work` while nobody else has the lock, or without it, with a warning, when the lock file is not trusted. */
export function whileStateLocked<Value>(path: string, work: () => Value, open = openStateLock): Value {
  const fd = open(path);
  try {
    if (fd !== undefined) lockWithOthers(fd, path, "netavark's lock");
    return work();
  } finally {
    if (fd !== undefined) closeFile(fd);
  }
}

/** Who may write to a directory beside its owner. They can remove files, but what they put there is not trusted. */
export type Sharing = "private" | "group";

/** Whether there is such a directory. Throws UntrustedState when others could exchange the files in it. */
export function judgeStateDirectory(path: string, sharing: Sharing = "private"): boolean {
  let directory: FileIdentity;
  try {
    directory = identify(path, false);
  } catch (error) {
    if (isErrno(error, ENOENT, ENOTDIR, ENAMETOOLONG)) return false;
    throw error;
  }
  const { uid, mode } = directory, writers = sharing === "private" ? 0o022 : 0o002;
  if (!isDirectory(directory)) {
    throw new UntrustedState(path, `it is ${kindName(mode)}`, "put a directory in its place");
  }
  if (isOwn(uid) && (mode & writers) === 0) return true;
  const commands = commandsFor(path, directory, writers).join(" and ");
  const nextStep = `it must belong to uid ${process.geteuid!()} and be writable by nobody else: ${commands}`;
  throw new UntrustedState(path, ownerAndMode(directory), nextStep);
}

/** Like `judgeStateDirectory`, for clean-up: false, with a warning, when the directory is not trusted. */
export function isTrustedDirectory(path: string, sharing: Sharing = "private"): boolean {
  return unlessUntrusted(() => judgeStateDirectory(path, sharing)) ?? false;
}

/** As much as a file takes at least, on most file systems. */
const TRIED_BYTES = 4096;

/**
 * Throws when no file can be made and written in the directory, or in the place where it would be made. The file that
 * shows it has no name, so nothing is left; where files have to have one (NFS, FUSE) nothing is tried.
 */
export function tryStateDirectory(path: string): void {
  const place = existingPartOf(path);
  let fd: number;
  try {
    fd = openFile(place, O_WRONLY | O_TMPFILE);
  } catch (error) {
    if (isErrno(error, EOPNOTSUPP)) return;
    throw error;
  }
  whileOpen(fd, () => writeAll(fd, new Uint8Array(TRIED_BYTES), place));
}

/** O_NONBLOCK: a FIFO waits for nobody. O_NOCTTY: a terminal does not become this process's. */
function safe(flags: number): number {
  return flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
}

function judged(path: string, flags: number, whose: Whose, open: () => number | undefined): OpenState | undefined {
  const isWritten = (flags & (O_WRONLY | O_RDWR)) !== 0;
  let fd: number | undefined;
  try {
    fd = open();
  } catch (error) {
    // A link, a socket, a FIFO or a directory does not open with these flags. For any other file the error says why.
    refuseUnlessTrusted(
      path,
      identifyOr(path, error),
      whose,
      isWritten,
      ` (${errnoText((error as SyscallError).errno)})`,
    );
    throw error;
  }
  return fd === undefined ? undefined : preparing(fd, (fd) => {
    const file = identify(fd);
    refuseUnlessTrusted(path, file, whose, isWritten);
    return { fd, size: file.size };
  });
}

function identifyOr(path: string, reason: unknown): FileIdentity {
  try {
    return identify(path, false);
  } catch {
    throw reason;
  }
}

function refuseUnlessTrusted(
  path: string,
  file: FileIdentity,
  whose: Whose,
  isWritten: boolean,
  kernelSays = "",
): void {
  const found = whyUntrusted(file, whose, isWritten);
  if (found === undefined) return;
  throw new UntrustedState(path, found + kernelSays, nextStepFor(path, file, whose));
}

function nextStepFor(path: string, file: FileIdentity, whose: Whose): string {
  const commands = whose === "anybody's" ? [] : commandsFor(path, file, writersOf(whose));
  if (!isRegularFile(file)) return "remove it";
  return commands.length === 0
    ? "remove it, or its other names"
    : `remove it, or run ${commands.join(" and ")} if what it says is right`;
}

/** What makes the file or directory our own. */
function commandsFor(path: string, { uid, mode }: FileIdentity, writers: number): string[] {
  const classes = `${mode & writers & 0o020 ? "g" : ""}${mode & writers & 0o002 ? "o" : ""}`;
  return [
    ...isOwn(uid) ? [] : [`chown ${process.geteuid!()} ${path}`],
    ...classes === "" ? [] : [`chmod ${classes}-w ${path}`],
  ];
}

/** Who may not write to a file. */
function writersOf(whose: Whose): number {
  return whose === "own" ? 0o022 : 0o002;
}

function whyUntrusted(file: FileIdentity, whose: Whose, isWritten: boolean): string | undefined {
  const { mode, uid, links } = file, isAnybodys = whose === "anybody's";
  const writers = writersOf(whose);
  if (!isRegularFile(file)) return `it is ${kindName(mode)}`;
  if (!isAnybodys && (!isOwn(uid) || (mode & writers) !== 0)) return ownerAndMode(file);
  // The content is that of another file, which may have nothing to do with us.
  return links > 1 && (!isAnybodys || isWritten) ? `it has ${links} names` : undefined;
}

/** Root's files are believed by everybody: root can do all that they say. */
function isOwn(uid: number): boolean {
  return uid === 0 || uid === process.geteuid!();
}

function ownerAndMode({ uid, mode }: FileIdentity): string {
  return `it belongs to uid ${uid} with mode ${(mode & 0o7777).toString(8).padStart(4, "0")}`;
}

/** S_IFMT, inode(7) */
function kindName(mode: number): string {
  const names: Record<number, string> = {
    0o01: "a FIFO",
    0o02: "a character device",
    0o04: "a directory",
    0o06: "a block device",
    0o10: "a regular file",
    0o12: "a symbolic link",
    0o14: "a socket",
  };
  return names[mode >> 12] ?? "no file";
}
