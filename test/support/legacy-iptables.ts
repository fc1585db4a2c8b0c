/** A PATH whose `iptables` writes the older kernel tables, as on hosts without iptables-nft. */
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { link, PATCHBAY } from "./plugins.ts";

const MULTI = "/usr/sbin/xtables-legacy-multi";
const tools = ["", "-restore", "-save"].flatMap((what) => [`iptables${what}`, `ip6tables${what}`]);

export function legacyPath(): string {
  const directory = resolve(PATCHBAY, "../test-legacy-iptables");
  mkdirSync(directory, { recursive: true });
  for (const name of ["xtables-legacy-multi", ...tools]) {
    link(join(directory, name), MULTI);
  }
  return `${directory}:/usr/sbin:/usr/bin:/sbin:/bin`;
}
