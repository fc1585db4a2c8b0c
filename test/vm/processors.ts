/** The processors of the tests' virtual machine: what Debian, qemu and the kernel call each, and what they need. */
import { join } from "node:path";
import rows from "../../compile/architectures.json";
import { privateApt, quietAsRoot } from "../../compile/private-apt.ts";

export interface Processor {
  /** As Debian's packages have it. */
  debian: string;
  qemu: string;
  /** Debian's package of `qemu`. */
  qemuPackage: string;
  qemuMachine: readonly string[];
  console: string;
}

export const processors = {
  x64: {
    debian: rows.x64.distributions.debian,
    qemu: "qemu-system-x86_64",
    qemuPackage: "qemu-system-x86",
    qemuMachine: ["-cpu", "max"],
    console: "ttyS0",
  },
  arm64: {
    debian: rows.arm64.distributions.debian,
    qemu: "qemu-system-aarch64",
    qemuPackage: "qemu-system-arm",
    // Not "max": qemu would compute signatures of pointers, which takes most of the time.
    qemuMachine: ["-machine", "virt", "-cpu", "neoverse-n1"],
    console: "ttyAMA0",
  },
} satisfies Record<string, Processor>;

export type ProcessorName = keyof typeof processors;

/** Whether this machine's programs run on it. */
export function isOwn(name: ProcessorName): boolean {
  return name === process.arch;
}

/** Options for apt-get and apt-cache: for another processor, lists and packages of their own below `cache`. */
export function aptOptions(name: ProcessorName, cache: string): string[] {
  if (isOwn(name)) return quietAsRoot();
  const { debian } = processors[name];
  return privateApt({ folder: join(cache, `apt-${debian}`), architecture: debian });
}
