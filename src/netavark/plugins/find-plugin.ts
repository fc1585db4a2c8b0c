/** Where the program for a driver is that netavark does not have itself. */
import { identify, isRegularFile } from "../../ffi/files.ts";

const EXECUTABLE = 0o111;

/** The first file of that name that can be executed. */
export function findPlugin(directories: readonly string[], driver: string): string | undefined {
  // The name comes from a network's file, and must not lead out of the directories.
  if (driver.includes("/") || driver === "") return undefined;
  return directories.map((directory) => `${directory}/${driver}`).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    const file = identify(path);
    return isRegularFile(file) && (file.mode & EXECUTABLE) !== 0;
  } catch {
    return false;
  }
}
