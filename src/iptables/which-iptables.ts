/**
 * Which iptables the host has: the program that other tools on it call decides where rules must be for them to see.
 * Found without running it, because running it costs more than everything else an ADD does.
 *
 * `iptables` is a link to one of two programs that come side by side: xtables-nft-multi writes nf_tables (and so can
 * we), xtables-legacy-multi (before 1.8: xtables-multi) the older kernel tables.
 */
import { EACCES, ELOOP, ENOENT, ENOTDIR, isErrno, SyscallError } from "../ffi/errno.ts";
import { readTextFile } from "../ffi/files.ts";
import { cString, lastErrno, libc } from "../ffi/libc.ts";

export type TablesForm = "nft" | "legacy";

/** The first file of that name in PATH, or undefined. */
export function findInPath(name: string): string | undefined {
  for (const directory of (process.env.PATH ?? "").split(":")) {
    // An empty entry is the working directory, which a plugin does not choose.
    if (directory === "") continue;
    const path = `${directory}/${name}`;
    if (identity(path) !== undefined) return path;
  }
  return undefined;
}

/** Device and inode of the file, links followed; undefined when there is none: an exception costs, and misses are common. */
function identity(path: string): string | undefined {
  const AT_FDCWD = -100, STATX_INO = 0x100;
  const buffer = new Uint8Array(256);
  if (libc.statx(AT_FDCWD, cString(path), 0, STATX_INO, buffer) < 0) {
    const errno = lastErrno();
    if (errno === ENOENT || errno === ENOTDIR || errno === EACCES || errno === ELOOP) return undefined;
    throw new SyscallError("statx", errno, path);
  }
  const view = new DataView(buffer.buffer); // struct statx, linux/stat.h
  return `${view.getUint32(136, true)}:${view.getUint32(140, true)} ${view.getBigUint64(32, true)}`;
}

/**
 * Which tables the `iptables` at `path` writes. For a wrapper script or a program by itself, the tables in use in this
 * namespace tell: with a legacy nat table, that is where rules belong.
 */
export function tablesForm(path: string | undefined): TablesForm {
  const program = path && identity(path);
  if (program !== undefined) {
    const directory = path!.slice(0, path!.lastIndexOf("/"));
    if (identity(`${directory}/xtables-nft-multi`) === program) return "nft";
    if (identity(`${directory}/xtables-legacy-multi`) === program) return "legacy";
    if (identity(`${directory}/xtables-multi`) === program) return "legacy";
  }
  return hasLegacyTable(4, "nat") || hasLegacyTable(6, "nat") ? "legacy" : "nft";
}

/**
 * Whether the older kernel tables of this namespace have this one. The file is there only with those tables, and a table
 * that has been used is there until the machine restarts, even empty.
 */
export function hasLegacyTable(family: 4 | 6, name: string): boolean {
  try {
    const names = readTextFile(family === 4 ? "/proc/net/ip_tables_names" : "/proc/net/ip6_tables_names");
    return names !== undefined && names.split("\n").includes(name);
  } catch (error) {
    if (isErrno(error, EACCES)) return false;
    throw error;
  }
}
