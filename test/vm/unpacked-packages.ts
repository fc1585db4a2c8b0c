/** Debian's packages, unpacked into a directory that is a root of its own. Nothing is installed on this machine. */
import { mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "./kernel.ts";

/** Each is one in `usr`, since Debian 12. */
const MERGED = ["bin", "lib", "lib64", "sbin"];
/** Links that Debian's update-alternatives makes. */
const IPTABLES = ["", "-save", "-restore"].flatMap((end) => [`iptables${end}`, `ip6tables${end}`]);

interface Fetching {
  /** For apt-get: whose lists and packages. */
  options: readonly string[];
  /** Where these options let apt-get put packages. */
  cache: string;
  packages: readonly string[];
}

/** The packages and what they depend on, into the directory. iptables is the one that writes to nf_tables. */
export function unpackPackages({ options, cache, packages }: Fetching, root: string): void {
  run(["apt-get", ...options, "update"], "/");
  run(["apt-get", ...options, "install", "--yes", "--download-only", "--no-install-recommends", ...packages], "/");
  makeFolders(root);
  const archives = join(cache, "archives");
  for (const archive of readdirSync(archives).filter((name) => name.endsWith(".deb"))) {
    unpackArchive(join(archives, archive), root);
  }
  for (const name of IPTABLES) symlinkSync("xtables-nft-multi", join(root, "usr/sbin", name));
  rmSync(archives, { recursive: true });
}

export function unpackArchive(archive: string, into: string): void {
  run(["sh", "-ec", `dpkg-deb --fsys-tarfile "$0" | tar -x --keep-directory-symlink -C "$1"`, archive, into], "/");
}

export function makeFolders(root: string): void {
  for (const name of MERGED) {
    mkdirSync(join(root, "usr", name), { recursive: true });
    symlinkSync(`usr/${name}`, join(root, name));
  }
  for (const name of ["dev", "proc", "sys", "run", "tmp", "etc", "root", "opt", "var/lib", "var/tmp"]) {
    mkdirSync(join(root, name), { recursive: true });
  }
  symlinkSync("/run", join(root, "var/run"));
  writeFileSync(join(root, "etc/hostname"), "tests\n");
  writeFileSync(join(root, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n");
  writeFileSync(join(root, "etc/group"), "root:x:0:\nnogroup:x:65534:\n");
}
