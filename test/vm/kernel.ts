/**
 * The kernel of the tests' virtual machine: Debian's `linux-image-amd64` or `linux-image-arm64`, unpacked into a directory
 * of its own and never installed. Fetched once; later runs need no network.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { aptOptions, isOwn, type ProcessorName, processors } from "./processors.ts";

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
export function findKernel(cache: string, processor: ProcessorName): Kernel | undefined {
  const isForIt = new RegExp(`^linux-\\d.*-${processors[processor].debian}$`);
  const found = existsSync(cache) ? readdirSync(cache).filter((name) => isForIt.test(name)) : [];
  const newest = found.toSorted(Intl.Collator("en", { numeric: true }).compare).at(-1);
  if (newest === undefined) return undefined;
  const tree = join(cache, newest);
  const release = newest.slice("linux-".length);
  return { release, image: join(tree, `boot/vmlinuz-${release}`), tree, busybox: join(tree, "bin/busybox") };
}

export function fetchKernel(cache: string, processor: ProcessorName): Kernel {
  const download = join(cache, `download.${process.pid}`), tree = join(download, "tree");
  mkdirSync(tree, { recursive: true });
  try {
    const kernelPackage = kernelPackageName(cache, processor);
    const release = kernelPackage.slice("linux-image-".length);
    const modules = `./lib/modules/${release}`;
    const wanted = WANTED.map((part) => `${modules}/kernel/${part}`);
    const unwanted = UNWANTED.map((part) => `--exclude=${modules}/kernel/${part}`);
    unpack(kernelPackage, tree, [
      ...unwanted,
      `./boot/vmlinuz-${release}`,
      `${modules}/modules.builtin`,
      ...wanted,
    ]);
    unpack("busybox-static", tree, ["./bin/busybox"]);
    run([join(runnableBusybox(), "bin/busybox"), "depmod", "-b", tree, release], download);
    renameSync(tree, join(cache, `linux-${release}`));
  } finally {
    rmSync(download, { recursive: true, force: true });
  }
  return findKernel(cache, processor)!;

  function unpack(name: string, into: string, members: string[], of = processor) {
    const directory = join(download, `${name}-${of}`);
    mkdirSync(directory);
    run(["apt-get", ...aptOptions(of, cache), "download", name], directory);
    run(["sh", "-ec", `dpkg-deb --fsys-tarfile *.deb | tar -x -C "$0" "$@"`, into, ...members], directory);
  }

  /** A directory with one that runs on this machine. */
  function runnableBusybox(): string {
    if (isOwn(processor)) return tree;
    const own = join(download, "own");
    mkdirSync(own);
    unpack("busybox-static", own, ["./bin/busybox"], process.arch as ProcessorName);
    return own;
  }
}

/** The package that `linux-image-amd64`, or its like, depends on. */
function kernelPackageName(cache: string, processor: ProcessorName): string {
  const options = aptOptions(processor, cache), name = `linux-image-${processors[processor].debian}`;
  for (const update of [false, true]) {
    if (update) run(["apt-get", ...options, "update"], "/");
    const shown = Bun.spawnSync(["apt-cache", ...options, "show", "--no-all-versions", name]).stdout.toString();
    const found = shown.match(/^Depends: (linux-image-\S+)/m)?.[1];
    if (found !== undefined) return found;
  }
  throw new Error(`apt knows no package ${name}`);
}

export function run(command: string[], cwd: string): void {
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd, stdin: "ignore" });
  if (exitCode !== 0) throw new Error(`${command.slice(0, 6).join(" ")} …: exit ${exitCode}\n${stderr}`);
}
