/**
 * One boot of the virtual machine: qemu in software emulation (/dev/kvm may exist and hang), Debian's kernel, and the
 * host's files, or Debian's for another processor and the checkout. Writes stay in memory. Runs a script inside, streams
 * its output, and returns its exit status.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { initramfs } from "./initramfs.ts";
import type { Kernel } from "./kernel.ts";
import type { Processor } from "./processors.ts";

export interface Hardware {
  processor: Processor;
  kernel: Kernel;
  /** The directory that becomes the root. */
  root: string;
  /** A directory that the machine has under the same path. Undefined when the root has it. */
  checkout: string | undefined;
}

export interface Outcome {
  status: number;
  /** Files that the script left in `SHARE`, by name. */
  files: Map<string, string>;
  /** Processor time of the emulation. Unlike the time it takes, that does not depend on other load. */
  processorSeconds: number;
}

/** The path inside of a directory that both sides can write. */
export const SHARE = "/run/vm/share";

const BOOT_MODULES = ["virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay"];
const MEMORY_MIB = 2048;
/**
 * A second one saves 8 % of the time on a quiet machine. On a busy one it costs half as much again, because one waits in
 * a loop for what the other holds while that one is not running.
 */
const PROCESSORS = 1;
/**
 * Options that the kernel does not know go to init, as arguments or environment. With norandmaps programs have the same
 * addresses each time, so qemu need not translate them again: that makes the tests several times faster.
 */
const KERNEL_OPTIONS = "panic=-1 mitigations=off init_on_alloc=0 norandmaps quiet";
const LINES_SHOWN_OF_CONSOLE = 40;

export async function boot(hardware: Hardware, cache: string, script: string, limitMs: number): Promise<Outcome> {
  const share = join(cache, `run.${process.pid}`);
  const path = (name: string) => join(share, name);
  mkdirSync(share);
  try {
    writeFileSync(path("command"), script);
    writeFileSync(path("initrd"), initramfs(bootFiles(hardware.kernel)));
    // The virtual machine must end with this process, also when this process is killed.
    const words = [hardware.processor.qemu, ...qemuArguments(hardware, share)];
    const command = ["setpriv", "--pdeathsig", "KILL", ...words];
    const qemu = Bun.spawn(command, {
      // Stays open and empty: when stdin ends, qemu closes the port that carries the output.
      stdin: "pipe",
      stdout: "inherit",
      stderr: "inherit",
      timeout: limitMs,
      killSignal: "SIGKILL",
    });
    // An interrupted machine ends without a result, and its files are removed as usual.
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => qemu.kill("SIGKILL"));
    await qemu.exited;
    const files = new Map(readdirSync(share).map((name) => [name, readFileSync(path(name), "utf8")]));
    const status = files.get("status");
    if (status !== undefined) {
      const processorSeconds = Number(qemu.resourceUsage()!.cpuTime.total) / 1e6;
      return { status: Number(status), files, processorSeconds };
    }
    const ending = qemu.signalCode === "SIGKILL"
      ? `killed after ${limitMs / 1000} s`
      : `qemu's exit ${qemu.exitCode}`;
    const said = (files.get("console.log") ?? "").trimEnd().split("\n").slice(-LINES_SHOWN_OF_CONSOLE).join("\n");
    throw new Error(`the virtual machine ended without a result (${ending}); its console said last:\n${said}`);
  } finally {
    rmSync(share, { recursive: true, force: true });
  }
}

function qemuArguments({ processor, kernel, root, checkout }: Hardware, share: string): string[] {
  const shared = (id: string, path: string, options: string) => [
    "-fsdev",
    `local,id=${id},path=${path},security_model=none,multidevs=remap${options}`,
    "-device",
    `virtio-9p-pci,fsdev=${id},mount_tag=${id}`,
  ];
  const card = (mac: string) => {
    const id = `card${mac.slice(-2)}`;
    return ["-netdev", `hubport,id=${id},hubid=0`, "-device", `virtio-net-pci,netdev=${id},mac=${mac},romfile=`];
  };
  const variables = [`tree=${resolve(kernel.tree)}`, ...(checkout === undefined ? [] : [`checkout=${checkout}`])];
  return [
    ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"],
    ...processor.qemuMachine,
    ...["-accel", "tcg,thread=multi", "-smp", `${PROCESSORS}`, "-m", `${MEMORY_MIB}`],
    ...["-kernel", kernel.image, "-initrd", join(share, "initrd")],
    ...["-append", `console=${processor.console} ${KERNEL_OPTIONS} ${variables.join(" ")}`],
    ...["-serial", `file:${join(share, "console.log")}`],
    ...["-device", "virtio-serial-pci", "-chardev", "stdio,id=output,signal=off"],
    ...["-device", "virtserialport,chardev=output,nr=1"],
    // For the tests of host-device: two network cards on one hub, which reach only each other.
    ...card("52:54:00:00:00:10"),
    ...card("52:54:00:00:00:11"),
    ...shared("host", root, ",readonly=on"),
    ...(checkout === undefined ? [] : shared("checkout", checkout, ",readonly=on")),
    ...shared("share", share, ""),
  ];
}

function bootFiles(kernel: Kernel) {
  const modules = `lib/modules/${kernel.release}`;
  const dependencies = readFileSync(join(kernel.tree, modules, "modules.dep"), "utf8").split("\n");
  const lines = closure(dependencies, BOOT_MODULES);
  const needed = lines.flatMap((line) => line.split(":")[0]!);
  const directories = new Set(["bin", ...needed.map((path) => `${modules}/${path}`).flatMap(parents)]);
  const file = (path: string, from = join(kernel.tree, path)) => ({ path, content: readFileSync(from) });
  return [
    ...[...directories].map((path) => ({ path })),
    file("bin/busybox"),
    file("init", join(import.meta.dir, "init.sh")),
    { path: "modules", content: Buffer.from(BOOT_MODULES.join(" ")) },
    { path: `${modules}/modules.dep`, content: Buffer.from(lines.join("\n") + "\n") },
    ...needed.map((path) => file(`${modules}/${path}`)),
  ];
}

/** The lines of modules.dep for these modules and all they need. */
function closure(dependencies: string[], names: string[]): string[] {
  const wanted = new Set<string>();
  const take = (line: string) => {
    if (wanted.has(line)) return;
    wanted.add(line);
    for (const path of line.split(":")[1]!.trim().split(" ").filter(Boolean)) {
      take(dependencies.find((other) => other.startsWith(`${path}:`))!);
    }
  };
  for (const name of names) {
    const line = dependencies.find((other) => basename(other.split(":")[0]!) === `${name}.ko`);
    if (line === undefined) throw new Error(`the kernel has no module ${name}`);
    take(line);
  }
  return [...wanted];
}

/** Each directory above a path, the topmost first. */
function parents(path: string): string[] {
  const parts = path.split("/");
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
}
