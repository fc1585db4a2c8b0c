/**
 * Every system call of the plugins in subjects.ts fails once, from reading the configuration to the end. ADD then either
 * succeeds all the same or answers one error document; DEL may fail, and succeeds when called again; and in the end
 * nothing is left.
 *
 * Some also fail from then on, so that what is made cannot be taken back either: then the ledger must stay.
 */
import { expect, test } from "bun:test";
import { failAt, pointsOf } from "../support/injection.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import type { Network } from "../support/network.ts";
import { type Call, patchbayPlugins } from "../support/plugins.ts";
import { isFullSweep, stage, type Subject, subjects, taken } from "./subjects.ts";

const LANES = 3;

/** What each call may really answer. Those that only the runtime makes for itself are not here. */
const failures: Record<string, string[]> = {
  open: ["EMFILE", "EACCES"],
  openat: ["EMFILE", "EACCES"],
  read: ["EIO"],
  pread64: ["EIO"],
  write: ["ENOSPC", "EIO"],
  pwrite64: ["ENOSPC"],
  rename: ["EIO"],
  link: ["EIO"],
  linkat: ["EIO"],
  unlink: ["EIO"],
  mkdir: ["ENOSPC"],
  rmdir: ["EBUSY"],
  ftruncate: ["EIO"],
  fallocate: ["ENOSPC", "EINTR"],
  fsync: ["EIO"],
  fdatasync: ["EIO"],
  msync: ["EIO"],
  flock: ["ENOLCK", "EINTR"],
  fcntl: ["ENOLCK"],
  statx: ["EIO"],
  fstatfs: ["EIO"],
  getdents64: ["EIO"],
  socket: ["EMFILE", "EPERM"],
  bind: ["ENOMEM"],
  sendto: ["ENOBUFS", "EPERM", "EINTR"],
  recvfrom: ["ENOBUFS", "EINTR"],
  setns: ["EPERM"],
  memfd_create: ["ENOSYS"],
  vfork: ["EAGAIN"],
  clone: ["EAGAIN"],
  // Not clone3: the runtime makes threads with it, how many differs from run to run, and it aborts without them.
};

/** Those that ADD takes back by, and what then lasts: a full disk, no memory for sockets, for processes, for files. */
const lasting: Record<string, string> = {
  write: "ENOSPC",
  sendto: "ENOBUFS",
  recvfrom: "ENOBUFS",
  openat: "EMFILE",
  vfork: "EAGAIN",
  clone: "EAGAIN",
};
interface Stage {
  machine: Machine;
  net: Network;
  container: Container;
  call: Call;
  moment: string[];
}

async function openStage(subject: Subject, verb: string): Promise<Stage> {
  const machine = await openMachine();
  const staged = stage(subject, machine), { net } = staged;
  const container = await staged.container("c1");
  await net.add(container);
  await net.del(container);
  return { machine, net, container, call: staged.call(verb, container), moment: await quietMoment(machine) };
}

const rows = subjects.flatMap((subject) =>
  (["ADD", "DEL"] as const).map((verb) => ({ subject, name: subject.name, verb }))
);

test.each(rows)("$name $verb with each system call failing once", async ({ subject, name, verb }) => {
  let points;
  {
    const { machine, net, container, call } = await openStage(subject, verb);
    await using _ = machine;
    if (verb === "DEL") await net.add(container);
    points = await pointsOf(machine, patchbayPlugins(), call);
  }
  const chosen = taken(points, subject);
  const queue = [
    ...chosen.flatMap((point) => (failures[point.syscall] ?? []).map((errno) => ({ ...point, errno, lasts: false }))),
    ...everyFourth(chosen.filter(({ syscall }) => verb === "ADD" && lasting[syscall] !== undefined))
      .map((point) => ({ ...point, errno: lasting[point.syscall]!, lasts: true })),
  ];
  const total = queue.length;
  const wrong: string[] = [];
  let hits = 0;

  async function one(
    { machine, net, container, call, moment }: Stage,
    point: (typeof queue)[number],
  ): Promise<string[]> {
    if (verb === "DEL") await net.add(container);
    const run = await failAt(machine, patchbayPlugins(), call, point, point.errno, point.lasts);
    if (run.hit) hits++;
    const found: string[] = [];
    const documents = parse(run.stdout);
    if (run.code === undefined) found.push(`ended by a signal`);
    if (run.code === 0 && verb === "ADD" && !documents?.ips) found.push(`success without a result: ${run.stdout}`);
    if (run.code === 0 && verb === "DEL" && run.stdout !== "") found.push(`DEL printed ${run.stdout}`);
    const toldError = documents?.code > 0 && documents?.msg;
    // When stdout itself fails there is nowhere to tell it.
    const isUntold = point.lasts ? point.syscall === "write" : /^\d+ +write\(1,/.test(point.line);
    if (run.code === 1 && !toldError && !isUntold) {
      found.push(`no error: ${run.stdout}`);
    }
    for (let count = 0; count < 2; count++) await net.del(container);
    found.push(...await leftSince(moment, machine));
    return found.map((line) =>
      `${point.syscall} ${point.nth}${point.lasts ? "+" : ""} ${point.errno}: ${line} (${point.line.slice(0, 120)})`
    );
  }

  async function lane() {
    let opened: Stage | undefined;
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      opened ??= await openStage(subject, verb);
      const found = await one(opened, next);
      wrong.push(...found);
      if (found.length === 0) continue;
      await opened.machine[Symbol.asyncDispose]();
      opened = undefined;
    }
    await opened?.machine[Symbol.asyncDispose]();
  }
  await Promise.all(Array.from({ length: LANES }, lane));
  console.log(`${name} ${verb}: ${hits} of ${total} faults injected`);
  expect(wrong.slice(0, 40)).toEqual([]);
  expect(hits).toBeGreaterThan(total * 0.8);
}, 600_000);

function everyFourth<T>(list: readonly T[]): T[] {
  return list.filter((_, index) => isFullSweep || index % 4 === 0);
}

// deno-lint-ignore no-explicit-any
function parse(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
