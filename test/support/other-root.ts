/**
 * Another root directory inside of a machine, as the file system of another host: what runs in it has its files, its C library
 * and its tools, and of the machine /run, /proc, /sys and /dev. What it writes ends with the machine.
 */
import type { Machine } from "./machine.ts";
import { PATCHBAY } from "./plugins.ts";

/** Where the program is in it. */
export const PROGRAM = "/opt/program/patchbay";

export async function enterRoot(machine: Machine, root: string, program = PATCHBAY): Promise<Machine> {
  const inside = await mountRoot(machine, root, ["tmp", "opt", "etc", "var/lib"], []);
  await machine.sh(`
    mkdir ${root}${PROGRAM.slice(0, PROGRAM.lastIndexOf("/"))}
    touch ${root}${PROGRAM}
    mount --bind ${program} ${root}${PROGRAM}`);
  return inside;
}

/** The machine's files are there in the folders that are shared. */
export function enterSharedRoot(machine: Machine, root: string, shared: readonly string[]): Promise<Machine> {
  return mountRoot(machine, root, ["tmp", "var/tmp"], shared);
}

async function mountRoot(machine: Machine, root: string, own: readonly string[], shared: readonly string[]) {
  await machine.sh(`
    mount --make-rshared /run
    mount --bind ${root} ${root}
    mount -o remount,ro,bind ${root}
    for folder in ${own.join(" ")}; do mount -t tmpfs -o mode=755 none ${root}/$folder; done
    for folder in proc run sys dev ${shared.join(" ")}; do mount --rbind /$folder ${root}/$folder; done`);
  const enter = (command: readonly string[]) => ["chroot", root, ...command];
  const inside: Machine = {
    ...machine,
    run: (command, options) => machine.run(enter(command), options),
    start: (command) => machine.start(enter(command)),
    async sh(script, options) {
      const { code, stdout, stderr } = await inside.run(["/bin/sh", "-ec", script], options);
      if (code !== 0) throw new Error(`exit ${code}: ${stderr || stdout}\n${script}`);
      return stdout;
    },
  };
  return inside;
}
