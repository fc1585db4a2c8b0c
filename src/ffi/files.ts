/**
 * Small files: opening, reading, writing, replacing, listing. What one call writes for a later one is in state-file.ts;
 * `readTextFile` follows symbolic links and judges nothing, because users' own files may be links and belong to anybody.
 *
 * Longer than 300 lines: a dozen short functions, each around one or two system calls, that share few lines.
 */
import {
  EAGAIN,
  EEXIST,
  EFBIG,
  EINTR,
  EINVAL,
  ENAMETOOLONG,
  ENOENT,
  ENOTDIR,
  ESRCH,
  ETIMEDOUT,
  isErrno,
  SyscallError,
} from "./errno.ts";
import { bind, bindLater, check, cString, fromUtf8, lastErrno, libc, retrying, utf8 } from "./libc.ts";
import { FFIType } from "./native.ts";
import { getdents64, statx } from "./system-calls.ts";

// open(2) on Linux, asm-generic/fcntl.h; O_DIRECTORY and O_NOFOLLOW differ on arm64.
const arm = process.arch === "arm64";
export const O_RDONLY = 0;
export const O_WRONLY = 1;
export const O_RDWR = 2;
export const O_CREAT = 0o100;
export const O_EXCL = 0o200;
export const O_NOCTTY = 0o400;
export const O_TRUNC = 0o1000;
export const O_APPEND = 0o2000;
export const O_NONBLOCK = 0o4000;
export const O_DIRECTORY = arm ? 0o40000 : 0o200000;
export const O_NOFOLLOW = arm ? 0o100000 : 0o400000;
export const O_CLOEXEC = 0o2000000;
/** open(2) of a directory: a new file in it without a name, which goes when it is closed. */
export const O_TMPFILE = 0o20000000 | O_DIRECTORY;
/** open(2): a name for the file, which is not opened: neither a FIFO nor a device notices. */
export const O_PATH = 0o10000000;

export function openFile(path: string, flags: number, mode = 0o600): number {
  const cPath = cString(path);
  return retrying("open", () => libc.open(cPath, flags | O_CLOEXEC, mode), path);
}

/**
 * Like `openFile`, but answers undefined when the file does not exist (or its name is too long to exist): an exception
 * would cost ten times as much as the call.
 */
export function openExisting(path: string, flags: number): number | undefined {
  const cPath = cString(path);
  for (;;) {
    const fd = libc.open(cPath, flags | O_CLOEXEC, 0);
    if (fd >= 0) return fd;
    const errno = lastErrno();
    if (errno === ENOENT || errno === ENAMETOOLONG) return undefined;
    if (errno !== EINTR) throw new SyscallError("open", errno, path);
  }
}

export function closeFile(fd: number): void {
  libc.close(fd);
}

/** Runs `work` with the descriptor, which is closed afterwards. */
export function whileOpen<T>(fd: number, work: (fd: number) => T): T {
  try {
    return work(fd);
  } finally {
    closeFile(fd);
  }
}

/** Guards against endless input. */
const LONGEST = 64 * 1024 * 1024;

/**
 * Reads from the descriptor's position to the end. With `expectedBytes`, the size of a regular file, it does not ask
 * again behind the end.
 */
export function readAll(
  fd: number,
  limitBytes = LONGEST,
  subject?: string,
  expectedBytes = Infinity,
  beforeEach?: () => void,
): Uint8Array {
  const read = (target: Uint8Array) => (beforeEach?.(), libc.read(fd, target, target.length));
  return collect(read, limitBytes, subject, expectedBytes);
}

const KERNELS_TEXT_BYTES = 2048;

/**
 * Reads a file that the kernel writes as a whole when it is read, as one value or one record (proc(5)). A read that leaves
 * room has got all of it, and need not be repeated to see the end.
 */
export function readKernelsText(fd: number, subject: string): string {
  const start = new Uint8Array(KERNELS_TEXT_BYTES);
  const length = retrying("read", () => Number(libc.read(fd, start, start.length)), subject);
  if (length < start.length) return fromUtf8(start.subarray(0, length));
  return fromUtf8(new Uint8Array([...start, ...readAll(fd, undefined, subject)]));
}

/** Reads from there to the end, and leaves the descriptor's position, which other processes may share, where it is. */
export function readAllFrom(offset: number, fd: number, subject: string): Uint8Array {
  return collect((target, length) => readAt(fd, target, offset + length), LONGEST, subject, Infinity);
}

/** Reads once, and leaves the position where it is. Returns how much was read, or a negative number (errno(3)). */
export function readAt(fd: number, target: Uint8Array, offset: number): number {
  pread ??= bind({ pread: { args: ["i32", "ptr", "usize", FFIType.i64_fast], returns: FFIType.i64_fast } }).pread;
  return Number(pread(fd, target, target.length, offset));
}

/** Writes once, and leaves the position where it is. Returns how much was written, or a negative number (errno(3)). */
export function writeAt(fd: number, bytes: Uint8Array, offset: number): number {
  pwrite ??= bind({ pwrite: { args: ["i32", "ptr", "usize", FFIType.i64_fast], returns: FFIType.i64_fast } }).pwrite;
  return Number(pwrite(fd, bytes, bytes.length, offset));
}

let pwrite: typeof pread;
let pread: ((fd: number, target: Uint8Array, length: number, offset: number) => number | bigint) | undefined;

function collect(
  read: (target: Uint8Array, length: number) => number | bigint,
  limitBytes: number,
  subject: string | undefined,
  expectedBytes: number,
): Uint8Array {
  const isExpected = expectedBytes !== Infinity;
  if (isExpected && expectedBytes > limitBytes) throw new SyscallError("read", EFBIG, subject);
  let buffer = new Uint8Array(isExpected ? expectedBytes + 1 : 8192);
  let length = 0;
  for (;;) {
    if (length === buffer.length) {
      if (length >= limitBytes) throw new SyscallError("read", EFBIG, subject);
      const wanted = buffer.length * 4;
      const larger = new Uint8Array(wanted < limitBytes ? wanted : limitBytes);
      larger.set(buffer);
      buffer = larger;
    }
    const target = buffer.subarray(length);
    const got = retrying("read", () => Number(read(target, length)), subject);
    length += got;
    if (got === 0 || (got < target.length && length >= expectedBytes)) return buffer.subarray(0, length);
  }
}

/** Writes every byte. Waits while a non-blocking descriptor is full, without end unless `patienceMs` is given. */
export function writeAll(fd: number, bytes: Uint8Array, subject?: string, patienceMs = -1): void {
  const deadline = patienceMs < 0 ? Infinity : performance.now() + patienceMs;
  let written = 0;
  while (written < bytes.length) {
    // A socket that limits how long it sends returns what it has sent by then.
    if (written > 0 && performance.now() >= deadline) throw new SyscallError("write", ETIMEDOUT, subject);
    const rest = bytes.subarray(written);
    const count = Number(libc.write(fd, rest, rest.length));
    if (count >= 0) {
      written += count;
      continue;
    }
    const errno = lastErrno();
    if (errno === EINTR) continue;
    if (errno !== EAGAIN) throw new SyscallError("write", errno, subject);
    const POLLOUT = 0x4, waitMs = patienceMs < 0 ? -1 : Math.max(0, Math.ceil(deadline - performance.now()));
    if (pollOne(fd, POLLOUT, waitMs) === 0) throw new SyscallError("write", ETIMEDOUT, subject);
  }
}

/** poll(2) of one descriptor: 0 when the time is over, negative on failure (errno(3)). For several there is poll.ts. */
export function pollOne(fd: number, events: number, timeoutMs: number): number {
  const pollfd = new Uint8Array(8), view = new DataView(pollfd.buffer);
  view.setInt32(0, fd, true);
  view.setInt16(4, events, true);
  return libc.poll(pollfd, 1, timeoutMs);
}

/** The file's text, or undefined when there is no such file. A process's has gone when that has ended (proc(5)). */
export function readTextFile(path: string): string | undefined {
  const fd = openExisting(path, O_RDONLY);
  if (fd === undefined) return undefined;
  try {
    return fromUtf8(readAll(fd, undefined, path));
  } catch (error) {
    if (isErrno(error, ESRCH)) return undefined;
    throw error;
  } finally {
    closeFile(fd);
  }
}

/** The text of a file that a configuration names: a regular file, so that nothing waits and no device is opened. */
export function readConfiguredFile(path: string, limitBytes = 1024 * 1024): string | undefined {
  if (!exists(path)) return undefined;
  if (!isRegularFile(identify(path))) throw new SyscallError("open", EINVAL, `${path}: not a regular file`);
  const fd = openExisting(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  return fd === undefined ? undefined : whileOpen(fd, () => fromUtf8(readAll(fd, limitBytes, path)));
}

/** Makes the directory and its missing parents, each with `mode`. */
export function makeDirectories(path: string, mode = 0o700): void {
  if (libc.mkdir(cString(path), mode) === 0) return;
  const errno = lastErrno();
  if (errno === EEXIST) return;
  const parent = path.slice(0, path.lastIndexOf("/"));
  if (errno !== ENOENT || parent === "") throw new SyscallError("mkdir", errno, path);
  makeDirectories(parent, mode);
  if (libc.mkdir(cString(path), mode) !== 0 && lastErrno() !== EEXIST) {
    throw new SyscallError("mkdir", lastErrno(), path);
  }
}

/** Returns whether the file existed. */
export function removeFile(path: string): boolean {
  if (libc.unlink(cString(path)) === 0) return true;
  const errno = lastErrno();
  if (errno === ENOENT || errno === ENAMETOOLONG || errno === ENOTDIR) return false;
  throw new SyscallError("unlink", errno, path);
}

const ATTEMPTS = 100;

/** Makes a new file that nobody else has opened. What has the name, left by a process that was killed, is removed first. */
export function createFile(path: string, flags: number, mode = 0o600): number {
  for (let attempt = 1;; attempt++) {
    try {
      return openFile(path, flags | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    } catch (error) {
      // Another program may make the file again and again.
      if (!isErrno(error, EEXIST) || attempt === ATTEMPTS) throw error;
      removeFile(path);
    }
  }
}

/** Runs `work` with the new file, which is closed afterwards, and removed when that fails. */
export function unlessFailing(path: string, fd: number, work: (fd: number) => void): void {
  try {
    whileOpen(fd, work);
  } catch (error) {
    libc.unlink(cString(path));
    throw error;
  }
}

/**
 * Replaces the file's content atomically: readers see the old text or the new, even after a crash of this process.
 * With `durable`, also after a power cut.
 */
export function replaceFile(
  path: string,
  text: string,
  options: { mode?: number; durable?: boolean; temporary?: string } = {},
) {
  const temporary = options.temporary ?? `${path}.${writerId()}.tmp`;
  unlessFailing(temporary, createFile(temporary, O_WRONLY, options.mode), (fd) => {
    writeAll(fd, utf8(text), temporary);
    if (options.durable) syncDescriptor(fd, temporary);
    check("rename", libc.rename(cString(temporary), cString(path)), path);
  });
  if (options.durable) syncDirectory(path.slice(0, path.lastIndexOf("/")) || "/");
}

const AT_FDCWD = -100, AT_SYMLINK_FOLLOW = 0x400;

/**
 * Makes a file with all of its bytes, or none: only its owner may read it. Fails with EEXIST when anything has the name, also
 * a link that leads nowhere. It gets its name last, by its descriptor: what others put in the draft's place does not count.
 */
export function writeNewFile(path: string, bytes: Uint8Array): void {
  const draft = `${path}.${writerId()}.tmp`;
  unlessFailing(draft, createFile(draft, O_WRONLY), (fd) => {
    writeAll(fd, bytes, path);
    syncDescriptor(fd, path);
    const own = cString(`/proc/self/fd/${fd}`);
    check("link", rare().linkat(AT_FDCWD, own, AT_FDCWD, cString(path), AT_SYMLINK_FOLLOW), path);
  });
  removeFile(draft);
}

const rare = bindLater({
  linkat: { args: ["i32", "ptr", "i32", "ptr", "i32"], returns: "i32" },
  fsync: { args: ["i32"], returns: "i32" },
  ftruncate: { args: ["i32", FFIType.i64_fast], returns: "i32" },
  rmdir: { args: ["ptr"], returns: "i32" },
});

export function truncateFile(fd: number, length: number, subject?: string): void {
  check("ftruncate", rare().ftruncate(fd, length), subject);
}

export function syncDescriptor(fd: number, subject: string): void {
  check("fsync", rare().fsync(fd), subject);
}

export function syncDirectory(path: string): void {
  whileOpen(openFile(path, O_RDONLY | O_DIRECTORY), (fd) => syncDescriptor(fd, path));
}

/** Removes the directory if it is empty; answers whether it did. */
export function removeEmptyDirectory(path: string): boolean {
  return rare().rmdir(cString(path)) === 0;
}

/** Names in the directory, without "." and "..", sorted; empty when there is no such directory. */
export function listDirectory(path: string): string[] {
  return namesIn(path).sort();
}

/** Like `listDirectory`, but unsorted. */
export function namesIn(path: string): string[] {
  return entriesIn(path).map(({ name }) => name);
}

interface DirectoryEntry {
  name: string;
  kind: "file" | "directory" | "other";
}

// dirent.h
const DT_UNKNOWN = 0, DT_DIR = 4, DT_REG = 8;

/** Like `namesIn`, with what has each name. Nothing is opened for it, and no link is followed. */
export function entriesIn(path: string): DirectoryEntry[] {
  const entries: DirectoryEntry[] = [];
  const fd = openExisting(path, O_RDONLY | O_DIRECTORY);
  if (fd === undefined) return entries;
  return whileOpen(fd, () => {
    const buffer = new Uint8Array(32768);
    const view = new DataView(buffer.buffer);
    for (;;) {
      const length = getdents64(fd, buffer);
      // Removed since it was opened, so it was empty.
      if (length === 0 || (length < 0 && lastErrno() === ENOENT)) return entries;
      check("getdents64", length, path);
      // struct linux_dirent64: ino u64, off u64, reclen u16, type u8, name
      for (let at = 0; at < length; at += view.getUint16(at + 16, true)) {
        const nameEnd = buffer.indexOf(0, at + 19);
        const name = fromUtf8(buffer.subarray(at + 19, nameEnd));
        if (name === "." || name === "..") continue;
        entries.push({ name, kind: kindOf(buffer[at + 18]!, `${path}/${name}`) });
      }
    }
  });
}

/** Some file systems do not tell the type with the name. */
function kindOf(type: number, path: string): DirectoryEntry["kind"] {
  if (type !== DT_UNKNOWN) return type === DT_REG ? "file" : type === DT_DIR ? "directory" : "other";
  try {
    const file = identify(path, false);
    return isRegularFile(file) ? "file" : isDirectory(file) ? "directory" : "other";
  } catch {
    return "other"; // Removed meanwhile.
  }
}

export interface FileIdentity {
  /** S_IFMT bits and permissions, as in stat(2). */
  mode: number;
  size: number;
  /** Device and inode: the same for all names of one file. */
  id: string;
  links: number;
  uid: number;
  /** Seconds since 1970. */
  modified: number;
}

/** stat(2) of an open descriptor or an absolute path. */
export function identify(target: number | string, followLinks = true): FileIdentity {
  const view = statusOf(target, followLinks);
  return {
    links: view.getUint32(16, true),
    uid: view.getUint32(20, true),
    modified: u64(view, 112),
    mode: view.getUint16(28, true),
    size: u64(view, 40),
    id: idIn(view),
  };
}

function idIn(view: DataView): string {
  // The inode as two halves: it may exceed 2^53.
  return `${u64(view, 136)}:${view.getUint32(36, true)}:${view.getUint32(32, true)}`;
}

/** Which directory it is, and by which mount: a bind mount of the same directory is another place (Linux 5.8). */
export function placeOf(path: string): string {
  const view = statusOf(path, true, STATX_BASIC_STATS | STATX_MNT_ID);
  return `${idIn(view)}:${u64(view, 144)}`;
}

const STATX_BASIC_STATS = 0x7ff, STATX_MNT_ID = 0x1000;
const S_IFMT = 0o170000, S_IFDIR = 0o040000, S_IFREG = 0o100000, S_IFLNK = 0o120000, S_IFSOCK = 0o140000;

export function exists(path: string): boolean {
  try {
    identify(path);
    return true;
  } catch {
    return false;
  }
}

/** The path, or the deepest directory of it that there is. */
export function existingPartOf(path: string): string {
  let place = path;
  while (place !== "/" && !exists(place)) place = place.slice(0, place.lastIndexOf("/")) || "/";
  return place;
}

/** What is there itself, unless links are followed; undefined when nothing is. */
export function idAt(target: number | string, followLinks = false): string | undefined {
  try {
    return identify(target, followLinks).id;
  } catch {
    return undefined;
  }
}

export function isDirectory({ mode }: FileIdentity): boolean {
  return (mode & S_IFMT) === S_IFDIR;
}

export function isRegularFile({ mode }: FileIdentity): boolean {
  return (mode & S_IFMT) === S_IFREG;
}

export function isLink({ mode }: FileIdentity): boolean {
  return (mode & S_IFMT) === S_IFLNK;
}

export function isSocket({ mode }: FileIdentity): boolean {
  return (mode & S_IFMT) === S_IFSOCK;
}

function u64(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32;
}

/** struct statx, linux/stat.h */
function statusOf(target: number | string, followLinks: boolean, wanted = STATX_BASIC_STATS): DataView {
  const buffer = new Uint8Array(256);
  const byPath = typeof target === "string";
  const flags = byPath ? (followLinks ? 0 : 0x100) : 0x1000; // AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH
  check(
    "stat",
    statx(byPath ? -100 : target, cString(byPath ? target : ""), flags, wanted, buffer),
    byPath ? target : `descriptor ${target}`,
  );
  return new DataView(buffer.buffer);
}

let thread: string | undefined;

/** Part of the name of a temporary file: no two threads of this host that write at the same time have the same. */
export function writerId(): string {
  if (Bun.isMainThread) return `${process.pid}`;
  return thread ??= `${process.pid}-${Math.random().toString(36).slice(2)}`;
}
