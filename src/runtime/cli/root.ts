/** Whether this process may change namespaces and links: as root, or as who made its user namespace (capabilities(7)). */
import { readTextFile } from "../../ffi/files.ts";

const CAP_NET_ADMIN = 1 << 12, CAP_SYS_ADMIN = 1 << 21;
const NEEDED = CAP_NET_ADMIN | CAP_SYS_ADMIN;

/** What is missing, in one line; undefined when nothing is. */
export function whyNotRoot(): string | undefined {
  // Searched by hand, as every `add` does it: docs/decisions/0005.
  const status = readTextFile("/proc/self/status") ?? "", name = "CapEff:\t";
  const start = status.indexOf(name) + name.length;
  const lower = Number(`0x${status.slice(start + 8, start + 16)}`); // Of 64 bits, in hexadecimal.
  if ((lower & NEEDED) === NEEDED) return undefined;
  const uid = process.geteuid!();
  return `this needs root, or a user namespace of its own: uid ${uid} has not CAP_NET_ADMIN and CAP_SYS_ADMIN`;
}
