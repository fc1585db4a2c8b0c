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
import { leaveOthersMounts, makeMountsReadOnly, mountAgain, mountNew, unmount } from "../ffi/namespaces.ts";
import { pluginNamed } from "../plugins/table.ts";

/** Where plugins keep what they keep, and engines the namespaces of containers. */
const SCRATCH = ["/run", "/var/lib", "/tmp"];

export const NETNS_DIRECTORY = "/run/netns";

/** Our own plugins, for those that delegate to one which the directory has not. */
export const OWN_PLUGINS = "/run/patchbay-plugins";

export class PluginFiles {
  /** Descriptors of directories that would be hidden, by their paths. */
  private readonly hidden = new Map<string, number>();
  private readonly mounted: string[] = [];

  /** `directories`: they stay where they are. */
  constructor(directories: readonly string[]) {
    leaveOthersMounts();
    for (const directory of directories) {
      if (!SCRATCH.some((path) => `${directory}/`.startsWith(`${path}/`))) continue;
      this.hidden.set(directory, openFile(directory, O_PATH | O_DIRECTORY));
    }
    makeMountsReadOnly();
    mountNew("proc", "/proc");
  }

  /** The directories are empty. */
  renew(): void {
    this.close();
    for (const path of SCRATCH) this.mount("tmpfs", path);
    makeDirectories(NETNS_DIRECTORY, 0o755);
    for (const [path, fd] of this.hidden) {
      makeDirectories(path, 0o755);
      mountAgain(`/proc/self/fd/${fd}`, path);
    }
  }

  /** In /sys. */
  showNetworkOfThread(): void {
    this.mount("sysfs", "/sys");
  }

  private mount(type: "tmpfs" | "sysfs", path: string): void {
    mountNew(type, path);
    this.mounted.push(path);
  }

  private close(): void {
    this.mounted.splice(0).reverse().forEach(unmount);
  }

  end(): void {
    this.close();
    this.hidden.forEach(closeFile);
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
