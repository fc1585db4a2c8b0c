/**
 * Every system call of the plugins in subjects.ts fails once, after the configuration is read. ADD then succeeds or
 * answers one error document. DEL may fail, and succeeds when called again. In the end nothing is left.
 *
 * Some calls also fail from then on, so that ADD cannot undo what it made. Then the ledger must stay.
 */
import { afterAll, expect, test } from "bun:test";
import { failAt, pointsOf } from "../support/injection.ts";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, type Moment, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import type { Network } from "../support/network.ts";
import { type Call, patchbayPlugins } from "../support/plugins.ts";
import { isThroughResident } from "../support/resident.ts";
import {
  expectMost,
  isFullSweep,
  LANES,
  stage,
  type Subject,
  subjects,
  SWEEP_TIMEOUT_MS,
  taken,
} from "./subjects.ts";

/** What each call may really answer. Calls that only the runtime makes for itself are not here. */
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

/** Calls that ADD needs to take back, each with a failure that lasts: a full disk, no memory for sockets, processes, files. */
const lasting: Record<string, string> = {
  write: "ENOSPC",
  sendto: "ENOBUFS",
  recvfrom: "ENOBUFS",
  openat: "EMFILE",
  vfork: "EAGAIN",
  clone: "EAGAIN",
};

interface Stage {
  subject: Subject;
  machine: Machine;
  net: Network;
  container: Container;
  call: (verb: string, container: Container) => Call;
  moment: Moment;
}

async function openStage(subject: Subject): Promise<Stage> {
  const machine = await openMachine();
  const staged = await stage(subject, machine), { net, call } = staged;
  const container = await staged.container("c1");
  await net.add(container);
  await net.del(container);
  return { subject, machine, net, container, call, moment: await quietMoment(machine) };
}

/** Machines that are in order again, for the next sweep of the same subject. */
const spare: Stage[] = [];

async function takeStage(subject: Subject): Promise<Stage> {
  for (let one = spare.pop(); one !== undefined; one = spare.pop()) {
    if (one.subject === subject) return one;
    await one.machine[Symbol.asyncDispose]();
  }
  return await openStage(subject);
}

afterAll(async () => {
  for (const { machine } of spare.splice(0)) await machine[Symbol.asyncDispose]();
});

for (const subject of subjects) {
  for (const verb of ["ADD", "DEL"] as const) {
    const what = `${subject.name} ${verb} with each system call failing once`;
    // A resident leaves calls that change the older tables to processes of their own, so none of its calls is a point.
    const isDeclined = isThroughResident() && subject.name.includes("legacy iptables");
    test.skipIf(isDeclined || lacks(subject.needs))(what, () => failEverywhere(subject, verb), SWEEP_TIMEOUT_MS);
  }
}

async function failEverywhere(subject: Subject, verb: "ADD" | "DEL"): Promise<void> {
  const surveyed = await takeStage(subject);
  if (verb === "DEL") await surveyed.net.add(surveyed.container);
  const points = await pointsOf(surveyed.machine, patchbayPlugins(), surveyed.call(verb, surveyed.container));
  await surveyed.net.del(surveyed.container);
  spare.push(surveyed);
  const chosen = taken(points, subject);
  const queue = [
    ...chosen.flatMap((point, index) =>
      errnosOf(point.syscall, subject, index).map((errno) => ({ ...point, errno, lasts: false }))
    ),
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
    const run = await failAt(machine, patchbayPlugins(), call(verb, container), point, point.errno, point.lasts);
    if (run.hit) hits++;
    const found: string[] = [];
    const documents = parse(run.stdout);
    if (run.code === undefined) found.push(`ended by a signal`);
    if (run.code === 0 && verb === "ADD" && !documents?.ips) found.push(`success without a result: ${run.stdout}`);
    if (run.code === 0 && verb === "DEL" && run.stdout !== "") found.push(`DEL printed ${run.stdout}`);
    const toldError = documents?.code > 0 && documents?.msg;
    // When stdout itself fails there is nowhere to tell it. Which call is the nth may change from run to run.
    const isUntold = point.lasts ? point.syscall === "write" : /^\d+ +write\(1, "\{.*\(INJECTED\)$/m.test(run.trace);
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
      opened ??= await takeStage(subject);
      const found = await one(opened, next);
      wrong.push(...found);
      if (found.length === 0) continue;
      await opened.machine[Symbol.asyncDispose]();
      opened = undefined;
    }
    if (opened !== undefined) spare.push(opened);
  }
  await Promise.all(Array.from({ length: LANES }, lane));
  console.log(`${subject.name} ${verb}: ${hits} of ${total} faults injected`);
  expect(wrong.slice(0, 40)).toEqual([]);
  expectMost(hits, total);
}

/** Where points are few, one for each in turn. */
function errnosOf(syscall: string, { few }: Subject, index: number): string[] {
  const all = failures[syscall] ?? [];
  return few !== undefined && !isFullSweep ? all.slice(index % all.length, index % all.length + 1) : all;
}

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
