/** What is in /proc and /sys of a process or a link, which may end at any moment. */
import { readFileSync, readlinkSync } from "node:fs";

/** "" where there is no such file. */
export function textOf(path: string): string {
  return ifThere(() => readFileSync(path, "utf8"));
}

/** Where the link leads; "" where there is none. */
export function targetOf(path: string): string {
  return ifThere(() => readlinkSync(path));
}

/** A process or a link that is ending has files that cannot be read any more, for one of several reasons. */
function ifThere(read: () => string): string {
  try {
    return read();
  } catch (error) {
    // This process is at its own limit.
    if (["EMFILE", "ENFILE"].includes((error as { code?: string }).code ?? "")) throw error;
    return "";
  }
}
