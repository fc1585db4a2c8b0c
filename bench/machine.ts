/**
 * The isolated environment of the benchmarks: a mount namespace with its own /run, and for each side a network
 * namespace as its host and others as its containers. Neither the sides nor the machine affect each other.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { openNetns } from "../src/ffi/netns.ts";
import { readTextFile } from "../src/ffi/files.ts";
import { check, libc } from "../src/ffi/libc.ts";
import { RESIDENT_BOARD, RESIDENT_SOCKET } from "../src/process/state-directory.ts";
import { pluginNames } from "../src/plugins/table.ts";
import { residentPid } from "../src/frontends/resident/socket.ts";
import { adoptOrphans, childrenOf, isRunning } from "./process.ts";

export interface Machine {
  /** Patchbay through a resident. */
  served: Side;
  /** Patchbay, each call in its own process. */
  alone: Side;
  go: Side;
  sides: readonly Side[];
  /** A directory for the files of the run, on disk like real leases. */
  scratch: string;
  patchbay: string;
  /** Processes of a benchmark that stay while it runs. */
  services: Set<number>;
  /** Waits for processes that earlier runs left behind. */
  settle(): void;
  /** Runs `work`. Throws when the resident served clearly fewer calls meanwhile: the figures would be those of calls alone. */
  servedAtLeast<T>(calls: number, work: () => T): T;
  /** How many calls the resident has served. */
  servedCalls(): number;
  /** Ends the resident, and starts a new one, which has served nothing. */
  startAgain(): void;
  /** Ends the resident. The next call has systemd start a new one. */
  listenForFirstCall(): void;
  /** The same, and nothing listens: the next call may start a resident, which `awaitResident` waits for. */
  end(): void;
  awaitResident(): void;
  /** Ends the resident. */
  close(): void;
}

/** A network namespace as a host, and others as its containers. */
export interface Host {
  name: string;
  /** Runs `work`, and the children it starts, in the host's namespace. */
  onHost<T>(work: () => T): T;
  inContainer<T>(container: Container, work: () => T): T;
  makeContainer(name: string): Container;
}

export interface Side extends Host {
  name: "served" | "alone" | "go";
  /** The directory of the plugins. */
  bin: string;
  /** Variables of every call. */
  environment: Record<string, string>;
}

export interface Container {
  /** Also the name of its namespace. */
  id: string;
  netnsPath: string;
  netnsFd: number;
}

const CLONE_NEWNET = 0x40000000;

export function openMachine(patchbay: string, goPlugins: string, scratch: string): Machine {
  const links = join(scratch, "plugins");
  mkdirSync(links);
  for (const name of pluginNames) symlinkSync(patchbay, join(links, name));
  const served = openSide("served", links), go = openSide("go", goPlugins);
  const alone = openSide("alone", links, { PATCHBAY_RESIDENT: "off" });
  const services = new Set<number>();
  let resident: Resident = startResident(patchbay, served);
  const end = () => {
    if (isRunning(resident.pid)) resident.kill("SIGKILL");
    while (isRunning(resident.pid)) Bun.sleepSync(1);
    // A launcher takes a socket with a board for one that has workers.
    for (const path of [RESIDENT_SOCKET, RESIDENT_BOARD]) rmSync(path, { force: true });
  };
  return {
    services,
    served,
    alone,
    go,
    sides: [served, alone, go],
    scratch,
    patchbay,
    settle: adoptOrphans(() => resident.pid, services),
    servedCalls: () => statusOf(patchbay, served).served,
    servedAtLeast(calls, work) {
      const before = statusOf(patchbay, served).served, result = work();
      const now = statusOf(patchbay, served), count = now.served - before;
      // One that finds no worker within a millisecond runs by itself.
      if (count >= Math.floor(calls * 0.95)) return result;
      throw new Error(`the resident served ${count} calls of ${calls}; it declined ${JSON.stringify(now.declined)}`);
    },
    startAgain() {
      end();
      resident = startResident(patchbay, served);
    },
    listenForFirstCall() {
      end();
      resident = startActivator(patchbay, served);
    },
    end,
    awaitResident() {
      const pid = untilThere("the call has started no resident", residentPid);
      resident = { pid, kill: (signal) => process.kill(pid, signal) };
      untilThere("its worker does not start", () => isReady(pid) || undefined);
    },
    close: end,
  };
}

function statusOf(patchbay: string, { onHost }: Side): { served: number; declined: Record<string, number> } {
  return JSON.parse(onHost(() => command([patchbay, "serve", "--status", "--json"])));
}

interface Resident {
  pid: number;
  kill(signal?: NodeJS.Signals): void;
}

function startResident(patchbay: string, { onHost }: Side): Resident {
  const streams = { stdin: "ignore", stdout: "inherit", stderr: "inherit" } as const;
  const resident = onHost(() => Bun.spawn([patchbay, "serve"], streams));
  untilThere("patchbay serve does not start", () => isReady(resident.pid) || undefined);
  return resident;
}

/** It becomes the resident when somebody connects. */
function startActivator(patchbay: string, { onHost }: Side): Resident {
  const words = ["systemd-socket-activate", "--seqpacket", "-l", RESIDENT_SOCKET, patchbay, "serve"];
  const activator = onHost(() => Bun.spawn(words, { stdin: "ignore", stdout: "inherit", stderr: "ignore" }));
  untilThere(`${words[0]} does not start`, () => existsSync(RESIDENT_SOCKET) || undefined);
  return activator;
}

function untilThere<T>(otherwise: string, found: () => T | undefined): T {
  for (const deadline = Date.now() + 10_000; Date.now() < deadline; Bun.sleepSync(5)) {
    const value = found();
    if (value !== undefined) return value;
  }
  throw new Error(otherwise);
}

/** Its first worker waits for calls: the board, which this resident has made, has the worker's process id. */
function isReady(resident: number): boolean {
  const board = existsSync(RESIDENT_BOARD) ? readFileSync(RESIDENT_BOARD) : Buffer.alloc(0);
  return board.length > 4 && childrenOf(resident).includes(board.readUInt32LE(0));
}

let current: number | undefined;

/** Runs `work` in the namespace. Calls may be nested. */
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

function openSide(name: Side["name"], bin: string, environment: Side["environment"] = {}): Side {
  return { ...openHost(name), name, bin, environment };
}

export function openHost(name: string): Host {
  const makeNetns = (netns: string) => {
    command(["ip", "netns", "add", netns]);
    const netnsPath = `/run/netns/${netns}`;
    return { netnsPath, netnsFd: openNetns(netnsPath) };
  };
  const host = makeNetns(`host-${name}`);
  inside(host.netnsFd, () => command(["ip", "link", "set", "lo", "up"]));
  return {
    name,
    onHost: (work) => inside(host.netnsFd, work),
    inContainer: (container, work) => inside(container.netnsFd, work),
    makeContainer: (id) => ({ id: `${name}-${id}`, ...makeNetns(`${name}-${id}`) }),
  };
}

export function command(words: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(words, { stdout: "pipe", stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`${words.join(" ")}: ${stderr}`);
  return stdout.toString();
}

/** Names of the links in the thread's namespace, without lo. */
export function linkNames(): string[] {
  const lines = readTextFile("/proc/thread-self/net/dev")!.split("\n").slice(2);
  return lines.map((line) => line.split(":")[0]!.trim()).filter((name) => name !== "" && name !== "lo");
}

/** Whether the address is local in the thread's namespace. */
export function hasAddress(address: string): boolean {
  const trie = readTextFile("/proc/thread-self/net/fib_trie") ?? "";
  return new RegExp(`\\|-- ${address.replaceAll(".", "\\.")}\\n +/32 host LOCAL`).test(trie);
}
