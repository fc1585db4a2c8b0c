/** Whether this process may change namespaces and links: as root, or as who made its user namespace (capabilities(7)). */
import { readTextFile } from "../../ffi/files.ts";

const CAP_NET_ADMIN = 12n, CAP_SYS_ADMIN = 21n;

/** What is missing, in one line; undefined when nothing is. */
export function whyNotRoot(): string | undefined {
  const status = readTextFile("/proc/self/status") ?? "";
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0"}`);
  if (isSet(effective, CAP_NET_ADMIN) && isSet(effective, CAP_SYS_ADMIN)) return undefined;
  const uid = /^Uid:\s*[0-9]+\s+([0-9]+)/m.exec(status)?.[1] ?? "?";
  return `this needs root, or a user namespace of its own: uid ${uid} has not CAP_NET_ADMIN and CAP_SYS_ADMIN`;
}

function isSet(capabilities: bigint, one: bigint): boolean {
  return ((capabilities >> one) & 1n) === 1n;
}
