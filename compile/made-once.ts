/** Folders of what is fetched once and read by every later run. */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";

/**
 * Returns the folder, and makes it where it is not there: whole, or not at all. Where several processes do so at once, the
 * first one's stays.
 */
export function madeOnce(folder: string, make: (unfinished: string) => void): string {
  if (existsSync(folder)) return folder;
  const unfinished = `${folder}.${process.pid}`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  try {
    make(unfinished);
    try {
      renameSync(unfinished, folder);
    } catch (error) {
      // Another process may have been the first.
      if (!existsSync(folder)) throw error;
    }
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return folder;
}
