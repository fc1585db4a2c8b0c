/** The processors of the tests' virtual machine: what Debian, qemu and the kernel call each, and what they need. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

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
    debian: "amd64",
    qemu: "qemu-system-x86_64",
    qemuPackage: "qemu-system-x86",
    qemuMachine: ["-cpu", "max"],
    console: "ttyS0",
  },
  arm64: {
    debian: "arm64",
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
  const asRoot = ["-qq", "-o", "APT::Sandbox::User=root"];
  if (isOwn(name)) return asRoot;
  const { debian } = processors[name], directory = join(cache, `apt-${debian}`);
  for (const part of ["state/lists/partial", "cache/archives/partial"]) {
    mkdirSync(join(directory, part), { recursive: true });
  }
  const nothingInstalled = join(directory, "status");
  writeFileSync(nothingInstalled, "");
  const settings = {
    "APT::Architecture": debian,
    "APT::Architectures::": debian,
    "Dir::State": join(directory, "state"),
    "Dir::State::status": nothingInstalled,
    "Dir::Cache": join(directory, "cache"),
  };
  return [...asRoot, ...Object.entries(settings).flatMap(([key, value]) => ["-o", `${key}=${value}`])];
}
