/**
 * The files that plugins find: the machine's, which cannot be written to, with directories of memory where plugins write.
 * The real host keeps its own, because all of it is mounted in a namespace of this process.
 */
import { linkTarget } from "../ffi/directory-entries.ts";
import {
  closeFile,
  entriesIn,
  exists,
  identify,
  isRegularFile,
  listDirectory,
  makeDirectories,
  O_DIRECTORY,
  O_PATH,
  openFile,
} from "../ffi/files.ts";
import {
  enterCopyOf,
  leaveOthersMounts,
  makeMountsReadOnly,
  mountAgain,
  mountNew,
  openOwnMounts,
} from "../ffi/namespaces.ts";
import { pluginNamed } from "../plugins/table.ts";

/** Where plugins keep what they keep, and engines the namespaces of containers. */
const SCRATCH = ["/run", "/var/lib", "/tmp"];

export const NETNS_DIRECTORY = "/run/netns";

/** Our own plugins, for those that delegate to one which the directory has not. */
export const OWN_PLUGINS = "/run/patchbay-plugins";

export class PluginFiles {
  /** Directories that would be hidden. */
  private readonly hidden: readonly string[];
  /** Of all demands: none sees what a plugin has mounted or unmounted for an earlier one. */
  private readonly mounts: number;

  /** `directories`: they stay where they are. */
  constructor(directories: readonly string[]) {
    this.hidden = directories.filter((directory) => SCRATCH.some((path) => `${directory}/`.startsWith(`${path}/`)));
    leaveOthersMounts();
    makeMountsReadOnly();
    mountNew("proc", "/proc");
    this.mounts = openOwnMounts();
  }

  /** The directories are empty. */
  renew(): void {
    enterCopyOf(this.mounts);
    const hidden = this.hidden.map((path) => ({ path, fd: openFile(path, O_PATH | O_DIRECTORY) }));
    for (const path of SCRATCH) mountNew("tmpfs", path);
    makeDirectories(NETNS_DIRECTORY, 0o755);
    for (const { path, fd } of hidden) {
      makeDirectories(path, 0o755);
      mountAgain(`/proc/self/fd/${fd}`, path);
      closeFile(fd);
    }
  }

  /** In /sys. */
  showNetworkOfThread(): void {
    mountNew("sysfs", "/sys");
  }
}

/** Every file that was written since `renew`, but the containers' namespaces and the directory of plugins. */
export function writtenFiles(): string[] {
  const filesIn = (directory: string): string[] =>
    entriesIn(directory).flatMap(({ name, kind }) => {
      const path = `${directory}/${name}`;
      if (path === NETNS_DIRECTORY || path === OWN_PLUGINS) return [];
      return kind === "directory" ? filesIn(path) : [`file ${path}`];
    });
  return SCRATCH.filter((path) => linkTarget(path) === undefined).flatMap(filesIn);
}

/** The directory's path without links, and the names of its executables, without those of this program that are no plugins. */
export function executablesIn(directory: string): { path: string; names: string[] } {
  const fd = openFile(directory, O_PATH | O_DIRECTORY);
  try {
    const path = linkTarget(`/proc/self/fd/${fd}`)!, own = identify("/proc/self/exe").id;
    const names = listDirectory(path).filter((name) => {
      if (!exists(`${path}/${name}`)) return false;
      const file = identify(`${path}/${name}`);
      if (!isRegularFile(file) || (file.mode & 0o111) === 0) return false;
      return file.id !== own || pluginNamed(name) !== undefined;
    });
    return { path, names };
  } finally {
    closeFile(fd);
  }
}
