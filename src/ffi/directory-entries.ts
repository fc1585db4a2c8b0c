/**
 * Links, renames, copies and file capabilities, for `patchbay install`. State files are in files.ts.
 */
import { FFIType } from "./native.ts";
import { ENODATA, EOPNOTSUPP, SyscallError } from "./errno.ts";
import {
  closeFile,
  identify,
  O_CREAT,
  O_EXCL,
  O_NOFOLLOW,
  O_RDONLY,
  O_WRONLY,
  openFile,
  readAll,
  removeFile,
  syncDescriptor,
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
  const from = openFile(source, O_RDONLY);
  try {
    const to = openFile(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      // One large write puts the file into the page cache in large folios (docs/decisions/0006-what-the-build-changes.md).
      writeAll(to, readAll(from, identify(from).size + 1, source), temporary);
      check("chmod", c().fchmod(to, mode), path);
      syncDescriptor(to, temporary);
    } finally {
      closeFile(to);
    }
    rename(temporary, path);
  } catch (error) {
    removeFile(temporary);
    throw error;
  } finally {
    closeFile(from);
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
