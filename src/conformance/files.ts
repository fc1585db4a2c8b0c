/**
 * The files that plugins find: the machine's, mounted read-only, with directories of memory where plugins write. All of it is
 * mounted in a namespace of this process. That keeps the machine's files from mistakes alone: a plugin is root, and can mount
 * them again.
 */
import { linkTarget, replaceWithLink } from "../ffi/directory-entries.ts";
import {
  closeFile,
  createFile,
  entriesIn,
  exists,
  identify,
  isRegularFile,
  listDirectory,
  makeDirectories,
  O_DIRECTORY,
  O_PATH,
  O_WRONLY,
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
import { pluginNamed, pluginNames } from "../plugins/table.ts";
import { TrialHost } from "./host.ts";
import { shellWord } from "../process/shell-word.ts";
import { NETNS_DIRECTORY, OWN_PLUGINS, SCRATCH, withoutLinks } from "./run-directories.ts";

export class PluginFiles {
  /** The mounts that each demand begins with: it does not see what a plugin mounted or unmounted for an earlier demand. */
  private readonly mounts: number;

  private readonly program = linkTarget("/proc/self/exe")!;

  /** The directories stay where they are, and so does our program. */
  constructor(private readonly directories: readonly string[]) {
    leaveOthersMounts();
    makeMountsReadOnly();
    mountNew("proc", "/proc");
    this.mounts = openOwnMounts();
  }

  /** Makes the directories of a new host: where plugins write is nothing but our own plugins. */
  renew(): void {
    enterCopyOf(this.mounts);
    const shown = this.directories.map((path) => ({ path, fd: openFile(path, O_PATH | O_DIRECTORY) }));
    const program = openFile(this.program, O_PATH);
    for (const path of SCRATCH) mountNew("tmpfs", path);
    makeDirectories(NETNS_DIRECTORY, 0o755);
    for (const { path, fd } of shown) {
      makeDirectories(path, 0o755);
      showAgain(fd, path);
    }
    if (!exists(this.program)) {
      makeDirectories(this.program.slice(0, this.program.lastIndexOf("/")), 0o755);
      closeFile(createFile(this.program, O_WRONLY));
      showAgain(program, this.program);
    } else closeFile(program);
    makeDirectories(OWN_PLUGINS, 0o755);
    for (const name of pluginNames) replaceWithLink(`${OWN_PLUGINS}/${name}`, this.program);
  }

  onNewHost<T>(work: (host: TrialHost) => T): T {
    this.renew();
    const host = new TrialHost(this.byHand());
    try {
      mountNew("sysfs", "/sys"); // Each shows the network namespace in which it was mounted.
      return work(host);
    } finally {
      host.end();
    }
  }

  /** Commands of a shell that do the same as `renew`, in namespaces of their own. */
  private byHand(): string[] {
    const shown = this.directories.map((path, index) => ({ path: shellWord(path), fd: PROGRAM_FD + 1 + index }));
    return [
      "unshare --mount --net sh",
      `exec ${PROGRAM_FD}<${shellWord(this.program)}`,
      ...shown.map(({ path, fd }) => `exec ${fd}<${path}`),
      ...SCRATCH.map((path) => `mount -t tmpfs tmpfs ${path}`),
      "mount -t sysfs sysfs /sys",
      ...shown.map(({ path, fd }) => `mkdir -p ${path}; mount --no-canonicalize --bind /proc/self/fd/${fd} ${path}`),
      `mkdir ${NETNS_DIRECTORY}; /proc/self/fd/${PROGRAM_FD} install --no-resident ${OWN_PLUGINS} >/dev/null`,
    ];
  }
}

/** The first descriptor after the standard ones: `mount` would hide what only has a path. */
const PROGRAM_FD = 3;

function showAgain(fd: number, path: string): void {
  mountAgain(`/proc/self/fd/${fd}`, path);
  closeFile(fd);
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

/**
 * The directory's path without links, and the names of its executables, without those of this program that are no
 * plugins; besides, the names that are not UTF-8, with which nothing can be opened.
 */
export function executablesIn(directory: string): { path: string; names: string[]; unreadable: string[] } {
  const path = withoutLinks(directory), own = identify("/proc/self/exe").id;
  const all = listDirectory(path),
    unreadable = all.filter((name) => name.includes("\ufffd") && !exists(`${path}/${name}`));
  const names = all.filter((name) => {
    if (!exists(`${path}/${name}`)) return false;
    const file = identify(`${path}/${name}`);
    if (!isRegularFile(file) || (file.mode & 0o111) === 0) return false;
    return file.id !== own || pluginNamed(name) !== undefined;
  });
  return { path, names, unreadable };
}
