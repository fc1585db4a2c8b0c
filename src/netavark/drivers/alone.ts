/** One call at a time. */
import { closeFile, makeDirectories, O_DIRECTORY, O_RDONLY, openFile } from "../../ffi/files.ts";
import { lockExclusive } from "../../ffi/lock.ts";

/**
 * Runs `work` while no other call does. podman calls for one container at a time, other programs may not, and whether a
 * network's last container leaves is only known while no other one comes. The directory of --config is the lock, so that
 * none is left behind.
 */
export function whileAlone<T>(configDirectory: string, work: () => T): T {
  makeDirectories(configDirectory, 0o755);
  const fd = openFile(configDirectory, O_RDONLY | O_DIRECTORY);
  try {
    lockExclusive(fd, configDirectory);
    return work();
  } finally {
    closeFile(fd);
  }
}
