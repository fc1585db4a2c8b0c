/** Gives a machine a /usr and a database of dpkg of its own, with what this host has in them, to install packages. */
import type { Machine } from "./machine.ts";

/** Where what is written to them goes. */
const OWN = "/run/own-packages";

export async function ownPackages(machine: Machine): Promise<void> {
  await machine.sh(`
    mkdir ${OWN}
    mount -t tmpfs tmpfs ${OWN}
    for folder in usr etc opt; do
      mkdir -p ${OWN}/$folder/files ${OWN}/$folder/work
      mount -t overlay overlay -o lowerdir=/$folder,upperdir=${OWN}/$folder/files,workdir=${OWN}/$folder/work /$folder
    done
    mount -t tmpfs tmpfs /var/log
    # This host may say that packages start no services.
    printf '#!/bin/sh\\nexit 0\\n' >/usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
  `);
  // The machine's own /var/lib hides the host's.
  const copied = Bun.spawnSync(["cp", "-a", "/var/lib/dpkg", `/proc/${machine.pid}/root/var/lib/`], {
    stderr: "pipe",
  });
  if (copied.exitCode !== 0) throw new Error(copied.stderr.toString());
}

/**
 * Files below /usr, /etc and /opt that were made or changed since, without what dpkg's triggers make. Character devices say that a
 * file of this host is gone.
 */
export async function changedFiles(machine: Machine): Promise<string[]> {
  const found = await machine.sh(`cd ${OWN}; find */files ! -type d ! -type c | sed 's#/files/#/#'`);
  return found.split("\n").filter((path) => path !== "" && !OF_TRIGGERS.test(path)).sort();
}

const OF_TRIGGERS = /^etc\/ld.so.cache|^usr\/sbin\/policy-rc.d/;
