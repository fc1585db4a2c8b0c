/** What is in /proc of a process, which may end at any moment. */
import { readFileSync, readlinkSync } from "node:fs";

/** "" where there is no such file. */
export function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Where the link leads; "" where there is none. */
export function targetOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
