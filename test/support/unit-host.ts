/** A host where `patchbay install` writes systemd's units, and a script writes down what systemctl is asked for. */
import type { Machine, Outcome } from "./machine.ts";
import { PATCHBAY } from "./plugins.ts";

type Install = (...options: string[]) => Promise<Outcome & { asked: string[] }>;

/** The directories for units and plugins are its own. `booted`: as if systemd ran. systemctl fails while /run/fail exists. */
export async function unitHost(machine: Machine, booted: boolean): Promise<Install> {
  await machine.sh(`
    mount -t tmpfs tmpfs /etc/systemd
    mkdir -p /run/bin ${booted ? "/run/systemd/system" : ""}
    printf '#!/bin/sh\\necho "$@" >>/run/asked\\ntest ! -e /run/fail\\n' >/run/bin/systemctl
    chmod +x /run/bin/systemctl
  `);
  return async (...options) => {
    await machine.sh(": >/run/asked");
    const env = { PATH: "/run/bin:/usr/bin:/bin" };
    const outcome = await machine.run([PATCHBAY, "install", ...options, "/run/cni"], { env });
    return { ...outcome, asked: (await machine.sh("cat /run/asked")).split("\n").slice(0, -1) };
  };
}
