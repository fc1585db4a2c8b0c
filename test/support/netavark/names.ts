/** A machine with bridges and aardvark-dns, and the calls that give containers names there. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { NamesSpec } from "../../../src/resources/netavark/aardvark-names/spec.ts";
import { targetOf } from "../if-there.ts";
import { type Machine, openMachine, type RunOptions } from "../machine.ts";
import { untilTrue } from "../until-true.ts";
import { HELPERS } from "./netavark.ts";

export interface NamesStep {
  verb: "add" | "remove";
  spec: NamesSpec;
}

export const AARDVARK = `${HELPERS}/aardvark-dns`;
/** podman's directory, and the one of aardvark-dns in it. */
export const ND = "/run/networks", DIRECTORY = `${ND}/aardvark-dns`;

/** The names of a container with one address in one network; `network` has more of the network. */
export function names(
  containerId: string,
  address: string,
  known: readonly string[],
  { network = {}, ...spec }: Partial<NamesSpec> & { network?: Partial<NamesSpec["networks"][number]> } = {},
): NamesSpec {
  return {
    directory: DIRECTORY,
    binary: AARDVARK,
    port: 53,
    isRootless: false,
    containerId,
    servers: [],
    networks: [{
      name: "n1",
      isInternal: false,
      gateways: ["10.55.0.1"],
      servers: [],
      addresses4: [address],
      addresses6: [],
      names: known,
      ...network,
    }],
    ...spec,
  };
}

/** Two containers. */
export const web = names("web1", "10.55.0.7", ["web"]), jug = names("web2", "10.55.0.8", ["jug"]);

/** The files below podman's directory when the last name is gone. */
export const LOCK = { "aardvark.lock": "" };

export async function openBridged(networks = 1): Promise<Machine> {
  const machine = await openMachine();
  await openBridges(machine, networks);
  return machine;
}

/** A bridge for each network, with its gateway; the first is 10.55.0.1. */
export async function openBridges(machine: Machine, count = 1): Promise<void> {
  const bridge = (index: number) =>
    `ip link add br${index} type bridge; ip addr add 10.5${
      5 + index
    }.0.1/24 dev br${index}; ip link set br${index} up`;
  await machine.sh([`mkdir ${ND}`, ...Array.from({ length: count }, (_, index) => bridge(index))].join("\n"));
}

/**
 * Answers for each step what it returned, or the text of its error; and its lines on stderr. `through` is a command that
 * executes another.
 */
export async function doNames(
  machine: Machine,
  steps: NamesStep[],
  { killedAfterMs, through = [], ...options }: RunOptions & { killedAfterMs?: number; through?: string[] } = {},
): Promise<{ outcomes: unknown[]; stderr: string }> {
  const killing = killedAfterMs === undefined ? [] : ["timeout", "-s", "KILL", String(killedAfterMs / 1000)];
  const command = [...through, ...killing, process.execPath, resolve(import.meta.dir, "names-driver.ts")];
  const { code, stdout, stderr } = await machine.run(command, { ...options, stdin: JSON.stringify(steps) });
  if (code !== 0) throw new Error(`names driver: ${stderr}`);
  return { outcomes: JSON.parse(stdout), stderr };
}

export async function addNames(machine: Machine, ...specs: NamesSpec[]): Promise<unknown[]> {
  return (await doNames(machine, specs.map((spec) => ({ verb: "add", spec })))).outcomes;
}

export async function removeNames(machine: Machine, ...specs: NamesSpec[]): Promise<unknown[]> {
  return (await doNames(machine, specs.map((spec) => ({ verb: "remove", spec })))).outcomes;
}

/** The IPv4 addresses that the server has for the name; none when it does not answer, or knows none. */
export async function lookUp(machine: Machine, name: string, server = "10.55.0.1"): Promise<string[]> {
  const { stdout } = await machine.run(["timeout", "20", "busybox", "nslookup", "-type=a", name, server]);
  const [, answer = ""] = stdout.split(/\n\n/);
  return [...answer.matchAll(/^Address(?: \d+)?: (\S+)/gm)].map(([, address]) => address!).sort();
}

/** aardvark-dns reads its files a moment after it was told to. */
export async function untilKnown(
  machine: Machine,
  name: string,
  addresses: string[],
  server?: string,
): Promise<void> {
  await untilTrue(() => lookUp(machine, name, server), (found) => found.join() === addresses.toSorted().join());
}

/** Every file below podman's directory with its text. */
export async function filesIn(machine: Machine): Promise<Record<string, string>> {
  const list = await machine.sh(`cd ${ND} && find . -type f | sort`);
  const files: Record<string, string> = {};
  for (const path of list.split("\n").filter(Boolean)) {
    files[path.slice(2)] = path.endsWith(".pid") ? "a number" : await machine.sh(`cat ${ND}/${path}`);
  }
  return files;
}

/** The processes of aardvark-dns in the machine. */
export async function daemons(machine: Machine): Promise<number[]> {
  const { stdout } = await machine.run(["pgrep", "-x", "aardvark-dns"]);
  const mountNamespaceOf = (pid: number) => targetOf(`/proc/${pid}/ns/mnt`), here = mountNamespaceOf(machine.pid);
  return stdout.split("\n").filter(Boolean).map(Number).filter((pid) => mountNamespaceOf(pid) === here);
}

export const pidFile = (machine: Machine) =>
  readFileSync(`/proc/${machine.pid}/root${DIRECTORY}/aardvark.pid`, "utf8");
