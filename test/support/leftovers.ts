/**
 * What is left of an attachment: everything in the kernel, the state directories and the machine's services that was not
 * there before it.
 *
 * Bridges, their gateway addresses, forwarding and empty base chains are shared and stay after the first attachment. So
 * compare with a moment after one attachment was added and deleted.
 */
import { fingerprint } from "./fingerprint.ts";
import type { Container, Machine } from "./machine.ts";
import { BOARD, SOCKET, TURNS } from "./resident.ts";
import { difference, settled, snapshot } from "./snapshot.ts";

export interface Moment {
  machine: Machine;
  lines: readonly string[];
  /** What the machine's services hold. */
  held: readonly string[];
  /** Undefined where it does not tell, or changed during the look. */
  fingerprint: string | undefined;
}

interface Look extends Moment {
  unfinished: string[];
}

export async function momentOf(machine: Machine): Promise<Moment> {
  return await look(machine);
}

async function look(machine: Machine): Promise<Look> {
  const before = fingerprint(machine);
  const [kernel, held, files] = await Promise.all([
    snapshot(machine),
    heldIn(machine),
    machine.sh(
      `find /run /var/lib -ignore_readdir_race \\( -path /run/netns -o -path /run/mount \\) -prune -o ! -type d -print`,
    ),
  ]);
  const lines = [
    ...kernel.lines.flatMap(steady),
    ...held,
    // A resident's socket and files are of no attachment.
    ...files.split("\n").filter((path) => !["", SOCKET, BOARD, TURNS].includes(path)).map((path) => `file ${path}`),
  ];
  const isSteady = before !== undefined && fingerprint(machine) === before;
  return { machine, lines, held, fingerprint: isSteady ? before : undefined, unfinished: kernel.unfinished };
}

async function heldIn({ services }: Machine): Promise<string[]> {
  return (await Promise.all([...services].map((service) => service.holds()))).flat();
}

/** The kernel reports carrier changes up to a second late, so what depends on them does not count as a difference. */
function steady(line: string): string[] {
  if (/ link \S+ operstate=/.test(line)) return [];
  return [line.replace(/"NO-CARRIER",|,"LOWER_UP"/g, "").replace(/"(dead|linkdown)",?/g, "")];
}

/** The same moment without a container whose namespace is removed. */
export function withoutContainer(moment: Moment, { name }: Container): Moment {
  const lines = moment.lines.filter((line) => !line.startsWith(`${name} `));
  return { ...moment, lines, fingerprint: undefined };
}

/** What is still there of the attachment, once its container is gone too if something took it away. */
export async function leftOf(
  { machine, container, moment }: { machine: Machine; container: Container; moment: Moment },
  except?: RegExp,
): Promise<string[]> {
  if ((await machine.run(["true"], { in: container })).code === 0) return await leftSince(moment, machine, except);
  await machine.removeContainer(container);
  return await leftSince(withoutContainer(moment, container), machine, except);
}

/** Waits until differences disappear, and returns those that do not. Lines that match `except` do not count. */
export function leftSince(moment: Moment, machine: Machine, except?: RegExp): Promise<string[]> {
  return settled(async () => {
    if (isAsIn(moment, machine) && difference(moment.held, await heldIn(machine)).length === 0) return [];
    return difference(moment.lines, (await momentOf(machine)).lines).filter((line) => !except?.test(line));
  });
}

function isAsIn(moment: Moment, machine: Machine): boolean {
  return moment.machine === machine && moment.fingerprint !== undefined &&
    fingerprint(machine) === moment.fingerprint;
}

/** Waits until nothing changes any more: two snapshots agree, and the kernel has no work left to do. */
export async function quietMoment(machine: Machine): Promise<Moment> {
  let last = await look(machine);
  const restless = await settled(async () => {
    const now = await look(machine);
    const changed = [...now.unfinished, ...difference(last.lines, now.lines)];
    last = now;
    return changed;
  });
  if (restless.length > 0) throw new Error(`the machine does not come to rest:\n${restless.join("\n")}`);
  return last;
}
