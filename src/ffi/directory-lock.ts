/** A lock on a directory itself, so that no lock file is left behind. */
import { closeFile, makeDirectories, O_DIRECTORY, O_RDONLY, openFile } from "./files.ts";
import { lockExclusive } from "./lock.ts";

/**
 * Runs `work` while nobody else has the directory. netavark locks that of --config: podman calls it for one container at a
 * time, other programs may not, and whether a network's last container leaves is only known while no other one comes.
 */
export function whileDirectoryLocked<T>(directory: string, work: () => T): T {
  makeDirectories(directory, 0o755);
  const fd = openFile(directory, O_RDONLY | O_DIRECTORY);
  try {
    lockExclusive(fd, directory);
    return work();
  } finally {
    closeFile(fd);
  }
}
