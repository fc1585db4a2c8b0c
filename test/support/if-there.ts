/** What is in /proc of a process, which may end at any moment. */
import { readFileSync, readlinkSync } from "node:fs";

/** "" where there is no such file. */
export function textOf(path: string): string {
  return ifThere(() => readFileSync(path, "utf8"));
}

/** Where the link leads; "" where there is none. */
export function targetOf(path: string): string {
  return ifThere(() => readlinkSync(path));
}

/** A process that is ending has files that cannot be read any more. */
function ifThere(read: () => string): string {
  try {
    return read();
  } catch (error) {
    if (!["ENOENT", "ESRCH", "EACCES", "ENOTDIR"].includes((error as { code?: string }).code ?? "")) throw error;
    return "";
  }
}
