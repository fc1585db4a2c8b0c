/**
 * Who may open a file by its path without judging it. What one call writes for a later one is state, and goes through
 * src/process/state-file.ts; everything else is listed here, with what it is.
 */
import type { Source } from "./sources.ts";

const unjudged: Record<string, string> = {
  "src/ffi/files.ts": "makes these functions",
  "src/process/state-file.ts": "judges what it opens",
  "src/conformance/own-process-namespace.ts": "namespaces of this process in /proc",
  "src/conformance/files.ts": "directories of plugins, which are mounted where they are",
  "src/conformance/run-directories.ts": "directories of plugins, to learn their paths",
  "src/services/node/foreign.ts": "a link's facts in /sys",
  "src/services/node/self.ts": "what the kernel says of this machine, /etc/machine-id",
  "src/services/daemon/listener.ts": "processes in /proc",
  "src/engine/open-host.ts": "the state directory, to lock it",
  "src/ffi/control-group.ts": "control groups in /sys",
  "src/ffi/session.ts": "this process in /proc",
  "src/ffi/kept-pages.ts": "this process in /proc",
  "src/ffi/boot.ts": "the id of the boot in /proc",
  "src/process/calls.ts": "processes in /proc",
  "src/ffi/capabilities.ts": "this process in /proc",
  "src/ffi/namespaces.ts": "this process's namespace in /proc",
  "src/process/lock.ts": "a directory, to lock it",
  "src/ffi/directory-entries.ts": "the program that is installed, and a new file in its place",
  "src/ffi/environment.ts": "the environment in /proc",
  "src/process/kept-open.ts": "files in /proc",
  "src/ffi/lock-holder.ts": "locks and processes in /proc",
  "src/ffi/netns.ts": "network namespaces, which are judged as such",
  "src/ffi/netns-in-sight.ts": "mounts in /proc",
  "src/ffi/other-namespaces.ts": "network namespaces, which are judged as such",
  "src/ffi/process-files.ts": "processes in /proc",
  "src/ffi/signals.ts": "processes in /proc",
  "src/ffi/sysctl.ts": "sysctls in /proc/sys",
  "src/process/trusted-executable.ts": "executables, which are judged as such",
  "src/ffi/tun.ts": "the kernel's device for taps",
  "src/ffi/xtables/legacy-tables.ts": "the kernel's tables in /proc",
  "src/ffi/vlan-links.ts": "the kernel's list of VLAN links in /proc",
  "src/ipam/go-directory.ts": "new lease files, made with O_EXCL",
  "src/resources/netavark/aardvark-names/daemon.ts": "processes in /proc, /dev/null",
  "src/frontends/library/events.ts": "the directory of cached results, which is not read through it",
  "src/frontends/netavark/program/command-line.ts": "a file that the caller names",
  "src/plugins/ipam/dhcp/lease-options.ts": "/etc/machine-id",
  "src/plugins/meta/tuning/tuning.ts": "the operator's list of sysctls",
  "src/engine/build.ts": "this program",
  "src/frontends/resident/lease-service.ts": "/dev/null",
  "src/frontends/resident/by-call.ts": "processes in /proc, /dev/null",
  "src/frontends/resident/status.ts": "processes in /proc",
  "src/frontends/resident/own-file.ts": "the program file that was judged",
  "src/frontends/resident/board.ts": "makes it, in the directory of the socket",
  "src/frontends/resident/streams.ts": "/dev/null",
  "src/frontends/resident/workers.ts": "/dev/null",
  "src/resources/link/link-settings.ts": "a new backup file, made with O_EXCL",
  "src/resources/link/tap/selinux-tap.ts": "this process's attributes in /proc",
  "src/frontends/cli/commands/conformance.ts": "a file that the caller names",
  "src/install/units.ts": "systemd's units, which operators mask by links",
};

const OPENS = /\b(openFile|openExisting|readTextFile|libc\.open)\(/;

export function openedFiles(sources: readonly Source[]): string[] {
  const opening = sources.filter(({ code }) => OPENS.test(code)).map(({ path }) => path);
  const listed = Object.keys(unjudged), present = sources.map(({ path }) => path);
  return [
    ...opening.filter((path) => !listed.includes(path)).map((path) =>
      `${path}: opens files without judging them: use src/process/state-file.ts, or say in compile/structure/opened-files.ts what they are`
    ),
    ...listed.filter((path) => present.includes(path) && !opening.includes(path)).map((path) =>
      `compile/structure/opened-files.ts: ${path} opens no file any more`
    ),
  ];
}
