/** Where engines run: a root file system with busybox(1), Patchbay's plugins, and a host for each kind of network. */
import { copyFileSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import { command } from "../machine.ts";

/** What an engine's containers get their network from. */
export type Kind = "none" | "ours" | "theirs";
export const KINDS: readonly Kind[] = ["none", "ours", "theirs"];

export function eachKind<T>(make: (kind: Kind) => T): Record<Kind, T> {
  return { none: make("none"), ours: make("ours"), theirs: make("theirs") };
}

export interface Place {
  directory: string;
  /** The root file system of the containers. */
  root: string;
  /** Patchbay, installed as for an engine: plugins in one folder, netavark in another. */
  plugins: string;
  netavark: string;
  /** How many calls the resident has served, if there is one. */
  served?: () => number;
  /** Words before a command that runs in the network namespace of that host. */
  on(kind: Kind): string[];
}

const DIRECTORY = "/run/pod-start";

/** Packages of Debian and Ubuntu that have the program. */
const packages: Record<string, string> = {
  podman: "podman",
  conmon: "conmon",
  crun: "crun",
  containerd: "containerd",
  ctr: "containerd",
  runc: "runc",
  busybox: "busybox-static",
  nft: "nftables",
};

export function requirePrograms(names: readonly string[]): void {
  for (const name of names) {
    if (Bun.which(name) === null) {
      throw new Error(`${name} is missing: install the package ${packages[name] ?? name}`);
    }
  }
}

export function openPlace(program: string, withResident: boolean): Place {
  requirePrograms(["busybox", "nft"]);
  const root = `${DIRECTORY}/root`, plugins = `${DIRECTORY}/plugins`, netavark = `${DIRECTORY}/helpers`;
  for (const folder of ["bin", "dev", "etc", "proc", "run", "sys"]) {
    mkdirSync(`${root}/${folder}`, { recursive: true });
  }
  copyFileSync(Bun.which("busybox")!, `${root}/bin/busybox`);
  mkdirSync(plugins);
  mkdirSync(netavark);
  command([program, "install", plugins]);
  if (!existsSync(`${plugins}/patchbay`)) throw new Error(`${program} has not installed itself`);
  symlinkSync(`${plugins}/patchbay`, `${netavark}/netavark`);
  const on = (kind: Kind) => ["nsenter", `--net=/run/netns/${kind}`];
  for (const kind of KINDS) {
    command(["ip", "netns", "add", kind]);
    command([...on(kind), "ip", "link", "set", "lo", "up"]);
  }
  const place = { directory: DIRECTORY, root, plugins, netavark, on };
  return withResident ? { ...place, served: startResident([...on("ours"), `${plugins}/patchbay`]) } : place;
}

function startResident(patchbay: readonly string[]): () => number {
  const resident = Bun.spawn([...patchbay, "serve"], { stdin: "ignore", stdout: "ignore", stderr: "inherit" });
  resident.unref();
  for (const deadline = Date.now() + 60_000; !existsSync("/run/patchbay/serve.sock"); Bun.sleepSync(5)) {
    if (resident.exitCode !== null || Date.now() > deadline) throw new Error("patchbay serve does not start");
  }
  return () => JSON.parse(command([...patchbay, "serve", "--status", "--json"])).served;
}
