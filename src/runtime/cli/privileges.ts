/**
 * Whether this process may change namespaces and links, which root may, and so may the owner of its user namespace
 * (capabilities(7)).
 */
import { readTextFile } from "../../ffi/files.ts";

const CAP_NET_ADMIN = 1 << 12, CAP_SYS_ADMIN = 1 << 21;
const NEEDED = CAP_NET_ADMIN | CAP_SYS_ADMIN;

/** One line that says what is missing; undefined when nothing is. */
export function missingPrivileges(): string | undefined {
  // No regular expression, because every `add` runs this: docs/decisions/0005.
  const status = readTextFile("/proc/self/status") ?? "", name = "CapEff:\t";
  const start = status.indexOf(name) + name.length;
  const lowerHalf = Number(`0x${status.slice(start + 8, start + 16)}`);
  if ((lowerHalf & NEEDED) === NEEDED) return undefined;
  const uid = process.geteuid!();
  return `this needs root, or a user namespace of its own: uid ${uid} has not CAP_NET_ADMIN and CAP_SYS_ADMIN`;
}
