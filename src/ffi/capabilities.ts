/**
 * Whether this process may change namespaces and links, which root may, and so may the owner of its user namespace
 * (capabilities(7)).
 */
import { readTextFile } from "./files.ts";

const NEEDED = { CAP_NET_ADMIN: 1 << 12, CAP_SYS_ADMIN: 1 << 21 };

/** One line that says what is missing; undefined when nothing is, or the kernel does not tell. */
export function missingPrivileges(): string | undefined {
  // No regular expression, because every `add` runs this: docs/decisions/0005.
  const status = readTextFile("/proc/self/status") ?? "", name = "CapEff:\t", start = status.indexOf(name);
  if (start < 0) return undefined;
  const lowerHalf = Number(`0x${status.slice(start + name.length + 8, start + name.length + 16)}`);
  const missing = Object.entries(NEEDED).filter(([, bit]) => (lowerHalf & bit) === 0).map(([capability]) =>
    capability
  );
  if (missing.length === 0) return undefined;
  const uid = process.geteuid!();
  return `this needs root, or a user namespace of its own: uid ${uid} has not ${missing.join(" and ")}`;
}

/** Whether this process was started with restricted system calls (seccomp(2)). */
export function isFiltered(): boolean {
  return (readTextFile("/proc/self/status") ?? "").includes("\nSeccomp:\t2\n");
}

/** For a process that has what is needed in its own user namespace only (setns(2)). */
export const NEEDED_TO_ENTER =
  "entering a network namespace needs CAP_SYS_ADMIN in the user namespace that owns it, which this process has not";
