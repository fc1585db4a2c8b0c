/** The environment this process was started with, as the bytes it is: `NAME=value` entries, each ended by a NUL. */
import { closeFile, O_RDONLY, openFile, readAll } from "./files.ts";

/** Not process.env, which loses entries that are no UTF-8 and merges those that occur twice. */
export function environmentBlock(): Uint8Array {
  const fd = openFile("/proc/self/environ", O_RDONLY);
  try {
    return readAll(fd, undefined, "/proc/self/environ");
  } finally {
    closeFile(fd);
  }
}
