/**
 * The files of a virtual machine whose processor is not this machine's: Debian's packages that the tests use. Fetched once.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import debianPackages from "../../compile/debian-packages.json";
import { aptOptions, type ProcessorName, processors } from "./processors.ts";
import { unpackPackages } from "./unpacked-packages.ts";

const PACKAGES = [
  ...["bash", "coreutils", "dash", "findutils", "grep", "mount", "procps", "sed", "util-linux"],
  // What compiles for this machine's processor is not for another one.
  ...debianPackages.filter(({ builds, isHostOnly }) => builds === undefined && !isHostOnly).map(({ name }) => name),
];

/** Returns the directory. */
export function debianRoot(cache: string, processor: ProcessorName, say: (text: string) => void): string {
  const { debian } = processors[processor], root = join(cache, `debian-${debian}`);
  if (existsSync(root)) return root;
  say(`fetching Debian's programs for ${debian} (130 MB)`);
  const options = aptOptions(processor, cache), unfinished = join(cache, `download.${process.pid}`);
  mkdirSync(unfinished, { recursive: true });
  try {
    unpackPackages({ options, cache: join(cache, `apt-${debian}`, "cache"), packages: PACKAGES }, unfinished);
    renameSync(unfinished, root);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return root;
}
