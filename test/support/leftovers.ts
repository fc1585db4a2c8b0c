/**
 * What is left of an attachment: everything the kernel and the state directories hold beyond a moment before it.
 *
 * Bridges, their gateway addresses, forwarding and empty base chains are shared and stay behind the first
 * attachment; so the moment to compare with is taken after one that came and went.
 */
import type { Machine } from "./machine.ts";
import { difference, settled, snapshot } from "./snapshot.ts";

export type Moment = string[];

export async function momentOf(machine: Machine): Promise<Moment> {
  const [kernel, files] = await Promise.all([
    snapshot(machine),
    machine.sh(`find /run /var/lib \\( -path /run/netns -o -path /run/mount \\) -prune -o ! -type d -print`),
  ]);
  return [
    ...kernel.lines.flatMap(steady),
    ...files.split("\n").filter((path) => path !== "").map((path) => `file ${path}`),
  ];
}

/** The kernel tells carrier changes up to a second late: what hangs on them is no difference between two moments. */
function steady(line: string): string[] {
  if (/ link \S+ operstate=/.test(line)) return [];
  return [line.replace(/"NO-CARRIER",|,"LOWER_UP"/g, "").replace(/"(dead|linkdown)",?/g, "")];
}

/** Waits for what passes by itself, and answers what does not; lines that match `except` do not count. */
export function leftSince(moment: Moment, machine: Machine, except?: RegExp): Promise<string[]> {
  return settled(async () => difference(moment, await momentOf(machine)).filter((line) => !except?.test(line)));
}

/** The moment when nothing changes any more. */
export async function quietMoment(machine: Machine): Promise<Moment> {
  let last = await momentOf(machine);
  await settled(async () => {
    const now = await momentOf(machine);
    const changed = difference(last, now);
    last = now;
    return changed;
  });
  return last;
}
