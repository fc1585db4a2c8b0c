/** What stories of Patchbay in the place of netavark begin and end with, whatever release of podman calls it. */
import { expect } from "bun:test";
import { debianPodman5 } from "../../hosts/roots.ts";
import { lacks } from "../kernel-features.ts";
import { leftSince, type Moment, quietMoment } from "../leftovers.ts";
import type { MachineOptions } from "../machine.ts";
import { settled } from "../snapshot.ts";
import { EngineMachine, GATEWAY, NETWORK, PROGRAM } from "./engine-machine.ts";
import { KEPT, Podman } from "./podman.ts";

export interface PodmanHost {
  /** Makes the directory with podman's files, where they are not this machine's. */
  root?: () => string;
  /** Whether the netavark of the same release writes nftables, as ours does, or iptables. */
  writesNftables: boolean;
}

export const debian12: PodmanHost = { writesNftables: false };
export const debian13: PodmanHost = { root: debianPodman5, writesNftables: true };

/** Debian's netavark, in either. */
export const THEIRS = "/usr/lib/podman/netavark";

export const cannotRun = lacks("overlay file systems") || lacks("cgroups of version 2");

export function openRoom({ root }: PodmanHost, options?: MachineOptions): Promise<EngineMachine> {
  return EngineMachine.open({ ...options, root: root?.() });
}

export async function openPodman(room: EngineMachine, netavark = PROGRAM, ...options: string[]): Promise<Podman> {
  const podman = await Podman.open(room, { netavark });
  await podman.call("network", "create", "--subnet", "10.1.0.0/24", "--gateway", GATEWAY, ...options, NETWORK);
  return podman;
}

/** The table with its base chains stays after the first container, as with netavark. */
export async function momentAfterFirst(podman: Podman): Promise<Moment> {
  await podman.serve("first", 8000);
  await podman.remove("first");
  expect(await settled(() => podman.left())).toEqual([]);
  return await quietMoment(podman.room.machine);
}

export async function expectNothingLeft(podman: Podman, since: Moment): Promise<void> {
  expect(await settled(() => podman.left())).toEqual([]);
  expect(await leftSince(since, podman.room.machine, KEPT)).toEqual([]);
}

export async function addressOf(podman: Podman, name: string, network = NETWORK): Promise<string> {
  return await podman.call("inspect", "-f", `{{.NetworkSettings.Networks.${network}.IPAddress}}`, name);
}
