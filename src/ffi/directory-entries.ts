/**
 * Links, renames, copies and file capabilities, for `patchbay install`. State files are in files.ts.
 *
 * The caller holds a lock, so that nobody else uses the same temporary names: every process of a container may be number 1.
 */
import { FFIType } from "./native.ts";
import { ENODATA, EOPNOTSUPP, SyscallError } from "./errno.ts";
import {
  closeFile,
  identify,
  isDirectory,
  listDirectory,
  O_CREAT,
  O_EXCL,
  O_NOFOLLOW,
  O_RDONLY,
  O_WRONLY,
  openFile,
  readAll,
  readAt,
  removeFile,
  syncDescriptor,
  whileOpen,
  writeAll,
} from "./files.ts";
import { bindLater, check, cString, fromUtf8, lastErrno, libc } from "./libc.ts";

const c = bindLater({
  symlink: { args: ["ptr", "ptr"], returns: "i32" },
  link: { args: ["ptr", "ptr"], returns: "i32" },
  readlink: { args: ["ptr", "ptr", "usize"], returns: FFIType.i64_fast },
  fchmod: { args: ["i32", "u32"], returns: "i32" },
  getxattr: { args: ["ptr", "ptr", "ptr", "usize"], returns: FFIType.i64_fast },
});

export function rename(from: string, to: string): void {
  check("rename", libc.rename(cString(from), cString(to)), to);
}

/** Makes `path` a symbolic link to `target` atomically, whatever it was before. */
export function replaceWithLink(path: string, target: string): void {
  const temporary = `${path}.${process.pid}.tmp`;
  removeFile(temporary);
  check("symlink", c().symlink(cString(target), cString(temporary)), temporary);
  rename(temporary, path);
}

/** Makes `path` a hard link to the file (or to the symbolic link itself), replacing what had that name. */
export function replaceWithHardLink(path: string, existing: string): void {
  const temporary = `${path}.${process.pid}.tmp`;
  removeFile(temporary);
  check("link", c().link(cString(existing), cString(temporary)), temporary);
  rename(temporary, path);
  removeFile(temporary); // When both were names of one file, rename(2) has left both.
}

/** What processes that were killed here have left of these names. A directory is none of it. */
export function removeTemporaries(directory: string, names: readonly string[]): void {
  for (const entry of listDirectory(directory)) {
    const name = /^(.+)\.\d+\.tmp$/.exec(entry)?.[1];
    if (name === undefined || !names.includes(name)) continue;
    const path = `${directory}/${entry}`;
    if (!isDirectory(identify(path, false))) removeFile(path);
  }
}

/** The target of a symbolic link; undefined for anything else. */
export function linkTarget(path: string): string | undefined {
  const buffer = new Uint8Array(4096);
  const length = Number(c().readlink(cString(path), buffer, buffer.length));
  return length < 0 ? undefined : fromUtf8(buffer.subarray(0, length));
}

/** Copies atomically: `path` is the old file or the complete new one, even after a power cut. */
export function replaceWithCopy(path: string, source: string, mode: number): void {
  const temporary = `${path}.${process.pid}.tmp`;
  removeFile(temporary);
  const bytes = whileOpen(openFile(source, O_RDONLY), (fd) => readAll(fd, identify(fd).size + 1, source));
  try {
    whileOpen(openFile(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600), (fd) => {
      // One large write puts the file into the page cache in large folios (docs/decisions/0006-what-the-build-changes.md).
      writeAll(fd, bytes, temporary);
      check("chmod", c().fchmod(fd, mode), path);
      syncDescriptor(fd, temporary);
    });
    rename(temporary, path);
  } catch (error) {
    removeFile(temporary);
    throw error;
  }
}

const PIECE_BYTES = 1024 * 1024;

/** A piece at a time: a container's memory may be little more than one of the files. */
export function haveSameBytes(one: string, other: string): boolean {
  const fds = [openFile(one, O_RDONLY), openFile(other, O_RDONLY)] as const;
  const pieces = [new Uint8Array(PIECE_BYTES), new Uint8Array(PIECE_BYTES)] as const;
  try {
    const { size } = identify(fds[0]);
    if (identify(fds[1]).size !== size) return false;
    for (let offset = 0; offset < size;) {
      const [got, gotOther] = fds.map((fd, index) => readAt(fd, pieces[index]!, offset)) as [number, number];
      if (
        got <= 0 || got !== gotOther || Buffer.compare(pieces[0].subarray(0, got), pieces[1].subarray(0, got)) !== 0
      ) {
        return false;
      }
      offset += got;
    }
    return true;
  } finally {
    fds.forEach(closeFile);
  }
}

/** capabilities(7), "File capabilities". */
export function hasFileCapabilities(path: string): boolean {
  const name = cString("security.capability");
  if (Number(c().getxattr(cString(path), name, null, 0)) >= 0) return true;
  const errno = lastErrno();
  if (errno === ENODATA || errno === EOPNOTSUPP) return false;
  throw new SyscallError("getxattr", errno, path);
}
