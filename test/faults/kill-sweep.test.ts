/**
 * ADD and DEL of the plugins in subjects.ts are killed at every system call after the configuration is read.
 *
 * After each kill another container is added before anything is cleaned up. It must get addresses that nobody has.
 * Then DEL cleans up, or GC every other time, and no link, address, rule, lease or file may be left.
 * PATCHBAY_TEST_FULL_SWEEP=1 tries each point with both.
 *
 * Through a resident, its worker is killed, from when it has a caller until it waits for the next. The call must succeed.
 */
import { afterAll, expect, test } from "bun:test";
import { killAt, type Point, pointsOf } from "../support/injection.ts";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, type Moment, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import type { Network } from "../support/network.ts";
import { type Call, patchbayPlugins } from "../support/plugins.ts";
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

/**
 * How often these are called depends on the runtime's threads and on timing, or a child makes them too and is killed
 * first: a run may end before the nth, and a point counts when three runs in a row came so far.
 */
const UNSTEADY = new RegExp(
  "^(futex|madvise|mmap|munmap|mprotect|sched_yield|clock_nanosleep|poll|recvfrom|sendto|getrusage|rt_sigaction|newfstatat|clone3|sched_getaffinity|ioctl|wait4)$",
);

interface Sweep {
  subject: Subject;
  name: string;
  verb: "ADD" | "DEL";
  /** On a used machine an attachment stays, and another has come and gone; on a fresh one everything is made anew. */
  machine: "used" | "fresh";
}

const sweeps: Sweep[] = subjects.flatMap((subject) => [
  { subject, name: subject.name, verb: "ADD", machine: "used" },
  { subject, name: subject.name, verb: "DEL", machine: "used" },
  ...subject.sharesNothing ? [] : [{ subject, name: subject.name, verb: "ADD", machine: "fresh" } as const],
]);

interface Stage extends AsyncDisposable {
  subject: Subject;
  machine: Machine;
  net: Network;
  call: (verb: string, container: Container) => Call;
  keeper: Container;
  victim: Container;
  other: Container;
  /** The keeper's addresses. It stays as it is. */
  keeperAddresses: readonly string[];
  /** What there is when nobody but the keeper is attached; a fresh machine has no keeper. */
  moment: Moment | undefined;
}

async function openStage({ subject, machine: state }: Sweep): Promise<Stage> {
  const machine = await openMachine();
  const { net, container, call } = await stage(subject, machine);
  const keeper = await container("c0"), victim = await container("c1"), other = await container("c2");
  if (state === "used") {
    await net.add(keeper);
    await net.add(victim);
    await net.del(victim);
  }
  const dispose = () => machine[Symbol.asyncDispose]();
  const moment = state === "used" ? await quietMoment(machine) : undefined,
    keeperAddresses = await addressesIn(machine, keeper);
  const containers = { keeper, keeperAddresses, victim, other };
  return { subject, machine, net, call, ...containers, moment, [Symbol.asyncDispose]: dispose };
}

/** Used machines that are in order again, for the next sweep of the same subject. */
const spare: Stage[] = [];

async function takeStage(sweep: Sweep): Promise<Stage> {
  for (let one = spare.pop(); one !== undefined; one = spare.pop()) {
    if (one.subject === sweep.subject && sweep.machine === "used") return one;
    await one[Symbol.asyncDispose]();
  }
  return await openStage(sweep);
}

afterAll(async () => {
  for (const one of spare.splice(0)) await one[Symbol.asyncDispose]();
});

interface Surveyed extends Point {
  /** Three runs had it in common. On a busy machine one of them may make calls that no later one makes. */
  isUsual: boolean;
  /** Each run must reach it. */
  required: boolean;
}

async function survey(sweep: Sweep): Promise<Surveyed[]> {
  const runs: Map<string, number>[] = [];
  for (let run = 0; run < 3; run++) {
    const opened = await takeStage(sweep);
    const { machine, net, victim, call } = opened;
    if (sweep.verb === "DEL") await net.add(victim);
    const points = await pointsOf(machine, patchbayPlugins(), call(sweep.verb, victim));
    runs.push(new Map(points.map(({ syscall, nth }) => [syscall, nth])));
    if (sweep.machine === "fresh") {
      await opened[Symbol.asyncDispose]();
      continue;
    }
    await net.del(victim);
    spare.push(opened);
  }
  return [...new Set(runs.flatMap((run) => [...run.keys()]))].flatMap((syscall) => {
    const reached = runs.map((run) => run.get(syscall) ?? 0);
    const always = Math.min(...reached), isSteady = !UNSTEADY.test(syscall);
    return Array.from({ length: isSteady ? Math.max(...reached) : always }, (_, index) => ({
      syscall,
      nth: index + 1,
      isUsual: index < always,
      required: isSteady && index < always,
    }));
  });
}

/** Addresses in the container's kernel, without their prefix; link-local ones aside. */
async function addressesIn(machine: Machine, container: Container): Promise<string[]> {
  const text = await machine.sh("ip -o address show scope global", { in: container });
  return text.split("\n").flatMap((line) => line.match(/inet6? ([^/]+)\//)?.[1] ?? []);
}

function isSuccess(verb: "ADD" | "DEL", code: number | undefined, stdout: string): boolean {
  return code === 0 && (verb === "DEL" ? stdout === "" : JSON.parse(stdout).cniVersion !== undefined);
}

/** Kills at the point and clears up. Returns what was wrong afterwards, or undefined when the point was not reached. */
async function killAndClear(
  opened: Stage,
  sweep: Sweep,
  point: Point,
  clearBy: "DEL" | "GC",
  shared: Moment | undefined,
) {
  const { machine, net, call, keeper, keeperAddresses, victim, other, moment } = opened;
  if (sweep.verb === "DEL") await net.add(victim);
  const { hit, code, stdout } = await killAt(machine, patchbayPlugins(), call(sweep.verb, victim), point);
  const wrong: string[] = [];
  if (machine.resident !== undefined && !isSuccess(sweep.verb, code, stdout)) wrong.push(`${code}: ${stdout}`);
  const taken = [...keeperAddresses, ...await addressesIn(machine, victim)];
  const added = await net.call("ADD", other);
  if (added.code !== 0) wrong.push(`ADD of another container failed: ${added.stdout}`);
  const given: string[] = (added.json?.ips ?? []).map(({ address }: { address: string }) => address.split("/")[0]);
  wrong.push(...given.filter((one) => taken.includes(one)).map((one) => `${one} was given twice`));

  if (clearBy === "GC") await net.gc(sweep.machine === "used" ? [keeper] : []);
  else for (const one of [victim, other]) await net.del(one);
  if (!hit) return undefined;
  const left = moment === undefined ? await leftSince(shared!, machine, /^-/) : await leftSince(moment, machine);
  return [...wrong, ...left].map((line) => `${point.syscall} ${point.nth}, then ${clearBy}: ${line}`);
}

/** What a fresh machine holds once its first attachment came and went. */
async function sharedThings(sweep: Sweep): Promise<Moment | undefined> {
  if (sweep.machine === "used") return undefined;
  await using opened = await openStage(sweep);
  await opened.net.add(opened.victim);
  await opened.net.del(opened.victim);
  return await quietMoment(opened.machine);
}

for (const sweep of sweeps) {
  const { name, verb, machine, subject } = sweep;
  const what = `nothing is lost: ${name} ${verb} killed on a ${machine} machine`;
  test.skipIf(lacks(subject.needs))(what, () => killEverywhere(sweep), SWEEP_TIMEOUT_MS);
}

async function killEverywhere(sweep: Sweep): Promise<void> {
  const points = await survey(sweep);
  const shared = await sharedThings(sweep);
  const queue = taken(points, sweep.subject).flatMap((point, index) =>
    (["DEL", "GC"] as const).filter((_, way) => isFullSweep || index % 2 === way)
      .map((clearBy) => ({ ...point, clearBy }))
  );
  const total = queue.length, usual = queue.filter(({ isUsual }) => isUsual).length;
  const wrong: string[] = [], missed: string[] = [];
  let hits = 0;

  async function lane() {
    let opened: Stage | undefined;
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      let found: string[] | undefined;
      for (let attempt = 0; found === undefined && attempt < 3; attempt++) {
        opened ??= await takeStage(sweep);
        found = await killAndClear(opened, sweep, next, next.clearBy, shared);
        if (sweep.machine === "used" && (found ?? []).length === 0) continue;
        await opened[Symbol.asyncDispose]();
        opened = undefined;
      }
      if (found !== undefined) hits++;
      else if (next.required) missed.push(`${next.syscall} ${next.nth}`);
      wrong.push(...(found ?? []));
    }
    if (opened !== undefined) spare.push(opened);
  }
  await Promise.all(Array.from({ length: LANES }, lane));
  console.log(`${sweep.name} ${sweep.verb} on a ${sweep.machine} machine: killed at ${hits} of ${total} points`);
  expect(wrong.slice(0, 40)).toEqual([]);
  expectMost(hits, usual);
  // The runtime makes some calls more or less often from run to run, whatever we say above.
  if (missed.length > Math.max(1, total * 0.02)) throw new Error(`not reached: ${missed.join(", ")}`);
}
