/**
 * The kernel of the tests' virtual machine: Debian's `linux-image-amd64`, unpacked into a directory of its own and never
 * installed. Fetched once; later runs need no network.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

export interface Kernel {
  release: string;
  image: string;
  /** Holds `lib/modules/<release>`. */
  tree: string;
  /** A static program with a shell, mount(8), modprobe(8) and switch_root(8). */
  busybox: string;
}

/** Most of the package is drivers for hardware that the virtual machine does not have. */
const WANTED = ["net", "drivers/net", "drivers/virtio", "drivers/char", "fs", "crypto", "lib", "arch"];
const UNWANTED = ["drivers/net/ethernet", "drivers/net/wireless"];

/** Returns the newest kernel under `cache`. */
export function findKernel(cache: string): Kernel | undefined {
  const found = existsSync(cache) ? readdirSync(cache).filter((name) => /^linux-\d/.test(name)) : [];
  const newest = found.toSorted(Intl.Collator("en", { numeric: true }).compare).at(-1);
  if (newest === undefined) return undefined;
  const tree = join(cache, newest);
  const release = newest.slice("linux-".length);
  return { release, image: join(tree, `boot/vmlinuz-${release}`), tree, busybox: join(tree, "bin/busybox") };
}

export function fetchKernel(cache: string): Kernel {
  const download = join(cache, `download.${process.pid}`);
  mkdirSync(download, { recursive: true });
  try {
    const kernelPackage = kernelPackageName();
    const apt = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", kernelPackage, "busybox-static"];
    run(apt, download);
    const [busybox, linux] = readdirSync(download).filter((name) => name.endsWith(".deb")).sort() as [string, string];
    const tree = join(download, "tree");
    mkdirSync(tree);
    const release = kernelPackage.slice("linux-image-".length);
    const modules = `./lib/modules/${release}`;
    const wanted = WANTED.map((part) => `${modules}/kernel/${part}`);
    const unwanted = UNWANTED.map((part) => `--exclude=${modules}/kernel/${part}`);
    unpack(linux, [...unwanted, `./boot/vmlinuz-${release}`, `${modules}/modules.builtin`, ...wanted]);
    unpack(busybox, ["./bin/busybox"]);
    run([join(tree, "bin/busybox"), "depmod", "-b", tree, release], download);
    renameSync(tree, join(cache, `linux-${release}`));
  } finally {
    rmSync(download, { recursive: true, force: true });
  }
  return findKernel(cache)!;

  function unpack(archive: string, members: string[]) {
    run(["sh", "-ec", `dpkg-deb --fsys-tarfile "$0" | tar -x -C tree "$@"`, archive, ...members], download);
  }
}

/** The package that `linux-image-amd64` depends on. */
function kernelPackageName(): string {
  for (const update of [false, true]) {
    if (update) run(["apt-get", "-qq", "update"], "/");
    const shown = Bun.spawnSync(["apt-cache", "show", "--no-all-versions", "linux-image-amd64"]).stdout.toString();
    const name = shown.match(/^Depends: (linux-image-\S+)/m)?.[1];
    if (name !== undefined) return name;
  }
  throw new Error("apt knows no package linux-image-amd64");
}

function run(command: string[], cwd: string): void {
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd, stdin: "ignore" });
  if (exitCode !== 0) throw new Error(`${command.slice(0, 6).join(" ")} …: exit ${exitCode}\n${stderr}`);
}
