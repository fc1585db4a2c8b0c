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
    if (!existsSync(folder)) rename(unfinished, folder);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return folder;
}

function rename(unfinished: string, folder: string): void {
  try {
    renameSync(unfinished, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  }
}
