/**
 * Where the benchmarks run: a mount namespace with a /run of its own, and in it a host network namespace and a
 * container for each side, so that neither side sees what the other left, and the machine nothing of both.
 */
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { openNetns } from "../src/ffi/netns.ts";
import { readTextFile } from "../src/ffi/files.ts";
import { check, libc } from "../src/ffi/libc.ts";
import { pluginNames } from "../src/plugins/table.ts";
import { adoptOrphans } from "./process.ts";

export interface Machine {
  ours: Side;
  go: Side;
  /** For files of the run; on disk, as leases are. */
  scratch: string;
  patchbay: string;
  /** Waits for what earlier runs left running. */
  settle(): void;
}

export interface Side {
  name: "ours" | "go";
  /** Directory of the plugins. */
  bin: string;
  /** Runs `work` in this side's host namespace, where children of it start, too. */
  onHost<T>(work: () => T): T;
  inContainer<T>(container: Container, work: () => T): T;
  makeContainer(name: string): Container;
}

export interface Container {
  id: string;
  netnsPath: string;
  netnsFd: number;
}

const CLONE_NEWNET = 0x40000000;

export function openMachine(patchbay: string, goPlugins: string, scratch: string): Machine {
  const links = join(scratch, "plugins");
  mkdirSync(links);
  for (const name of pluginNames) symlinkSync(patchbay, join(links, name));
  return {
    ours: openSide("ours", links),
    go: openSide("go", goPlugins),
    scratch,
    patchbay,
    settle: adoptOrphans(),
  };
}

let current: number | undefined;

/** Runs `work` in the namespace; such calls may be within one another. */
function inside<T>(netnsFd: number, work: () => T): T {
  const before = current ??= openNetns("/proc/thread-self/ns/net");
  check("setns", libc.setns(netnsFd, CLONE_NEWNET));
  current = netnsFd;
  try {
    return work();
  } finally {
    check("setns", libc.setns(before, CLONE_NEWNET));
    current = before;
  }
}

function openSide(name: Side["name"], bin: string): Side {
  const makeNetns = (netns: string) => {
    command(["ip", "netns", "add", netns]);
    const netnsPath = `/run/netns/${netns}`;
    return { netnsPath, netnsFd: openNetns(netnsPath) };
  };
  const host = makeNetns(`host-${name}`);
  inside(host.netnsFd, () => command(["ip", "link", "set", "lo", "up"]));
  return {
    name,
    bin,
    onHost: (work) => inside(host.netnsFd, work),
    inContainer: (container, work) => inside(container.netnsFd, work),
    makeContainer: (id) => ({ id, ...makeNetns(`${name}-${id}`) }),
  };
}

export function command(words: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(words, { stdout: "pipe", stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`${words.join(" ")}: ${stderr}`);
  return stdout.toString();
}

/** Names of the links in the namespace the thread is in, without lo. */
export function linkNames(): string[] {
  const lines = readTextFile("/proc/thread-self/net/dev")!.split("\n").slice(2);
  return lines.map((line) => line.split(":")[0]!.trim()).filter((name) => name !== "" && name !== "lo");
}

/** Whether the address is local in the namespace the thread is in. */
export function hasAddress(address: string): boolean {
  const trie = readTextFile("/proc/thread-self/net/fib_trie") ?? "";
  return new RegExp(`\\|-- ${address.replaceAll(".", "\\.")}\\n +/32 host LOCAL`).test(trie);
}
