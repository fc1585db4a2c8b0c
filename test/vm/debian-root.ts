/**
 * The files of a virtual machine whose processor is not this machine's: Debian's packages that the tests use, unpacked into
 * a directory and never installed. Fetched once.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import debianPackages from "../../compile/debian-packages.json";
import { run } from "./kernel.ts";
import { aptOptions, type ProcessorName, processors } from "./processors.ts";

const PACKAGES = [
  ...["bash", "coreutils", "dash", "findutils", "grep", "mount", "procps", "sed", "util-linux"],
  ...debianPackages.filter(({ builds }) => builds === undefined).map(({ name }) => name),
];
/** Each is one in `usr`, since Debian 12. */
const MERGED = ["bin", "lib", "sbin"];
/** Links that Debian's update-alternatives makes. */
const IPTABLES = ["", "-save", "-restore"].flatMap((end) => [`iptables${end}`, `ip6tables${end}`]);

/** Answers the directory. */
export function debianRoot(cache: string, processor: ProcessorName, say: (text: string) => void): string {
  const { debian } = processors[processor], root = join(cache, `debian-${debian}`);
  if (existsSync(root)) return root;
  say(`fetching Debian's programs for ${debian} (130 MB)`);
  const options = aptOptions(processor, cache), unfinished = join(cache, `download.${process.pid}`);
  mkdirSync(unfinished, { recursive: true });
  try {
    const install = ["install", "--yes", "--download-only", "--no-install-recommends", ...PACKAGES];
    run(["apt-get", ...options, "update"], "/");
    run(["apt-get", ...options, ...install], "/");
    makeFolders(unfinished);
    const archives = join(cache, `apt-${debian}`, "cache/archives");
    for (const archive of readdirSync(archives).filter((name) => name.endsWith(".deb"))) {
      const unpack = `dpkg-deb --fsys-tarfile "$0" | tar -x --keep-directory-symlink -C "$1"`;
      run(["sh", "-ec", unpack, join(archives, archive), unfinished], "/");
    }
    for (const name of IPTABLES) symlinkSync("xtables-nft-multi", join(unfinished, "usr/sbin", name));
    renameSync(unfinished, root);
    rmSync(archives, { recursive: true });
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return root;
}

function makeFolders(root: string): void {
  for (const name of MERGED) {
    mkdirSync(join(root, "usr", name), { recursive: true });
    symlinkSync(`usr/${name}`, join(root, name));
  }
  for (const name of ["dev", "proc", "sys", "run", "tmp", "etc", "root", "var/lib"]) {
    mkdirSync(join(root, name), { recursive: true });
  }
  symlinkSync("/run", join(root, "var/run"));
  writeFileSync(join(root, "etc/hostname"), "tests\n");
  writeFileSync(join(root, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n");
  writeFileSync(join(root, "etc/group"), "root:x:0:\nnogroup:x:65534:\n");
}
