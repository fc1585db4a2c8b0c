/**
 * ADD and DEL of bridge and host-local, killed at every system call between reading the configuration and the end.
 *
 * After each kill another container is added while the wreck still lies there, and must get addresses nobody has.
 * Then DEL or, every other time, GC clears up, and nothing may be left: no link, address, rule, lease or file.
 * PATCHBAY_TEST_FULL_SWEEP=1 does each point twice, once with each.
 */
import { expect, test } from "bun:test";
import { killAt, type Point, pointsOf } from "../support/injection.ts";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, type Moment, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { type Network, network } from "../support/network.ts";
import { type Call, patchbayPlugins } from "../support/plugins.ts";

const LANES = 3;

// Three addresses a family: the keeper's, and one for each of the two others. A lost one is missed at once.
const ipam = {
  type: "host-local",
  ranges: [
    [{ subnet: "10.20.0.0/24", rangeStart: "10.20.0.2", rangeEnd: "10.20.0.4" }],
    [{ subnet: "fd20::/64", rangeStart: "fd20::2", rangeEnd: "fd20::4" }],
  ],
};
const spoofGuard = lacks("nftables bridge family") ? {} : { macspoofchk: true };
const confs = {
  bridge: { type: "bridge", bridge: "br0", isDefaultGateway: true, ipMasq: true, ...spoofGuard, ipam },
  "host-local": { type: "host-local", ipam },
};

/** How often these are called depends on the runtime's threads and on timing: a run may end before the nth. */
const UNSTEADY = /^(futex|madvise|mmap|munmap|mprotect|sched_yield|clock_nanosleep|poll|recvfrom|sendto|getrusage)$/;

interface Sweep {
  plugin: keyof typeof confs;
  verb: "ADD" | "DEL";
  /** On a used machine an attachment stays, and another has come and gone; on a fresh one everything is made anew. */
  machine: "used" | "fresh";
}

const sweeps: Sweep[] = (["host-local", "bridge"] as const).flatMap((plugin) => [
  { plugin, verb: "ADD", machine: "used" },
  { plugin, verb: "ADD", machine: "fresh" },
  { plugin, verb: "DEL", machine: "used" },
]);

interface Stage extends AsyncDisposable {
  machine: Machine;
  net: Network;
  call: Call;
  keeper: Container;
  victim: Container;
  other: Container;
  /** What there is when nobody but the keeper is attached. */
  moment: Moment;
}

async function openStage({ plugin, verb, machine: state }: Sweep): Promise<Stage> {
  const machine = await openMachine();
  const conf = confs[plugin];
  const net = network(machine, conf);
  const keeper = await machine.container("c0"), victim = await machine.container("c1");
  const other = await machine.container("c2");
  if (state === "used") {
    await net.add(keeper);
    await net.add(victim);
    await net.del(victim);
  }
  const call = { plugin, command: verb, container: victim, conf: { cniVersion: "1.1.0", name: "net", ...conf } };
  const dispose = () => machine[Symbol.asyncDispose]();
  const moment = await quietMoment(machine);
  return { machine, net, call, keeper, victim, other, moment, [Symbol.asyncDispose]: dispose };
}

/** Every point, and whether each run must reach it: what three runs had in common. */
async function survey(sweep: Sweep): Promise<(Point & { required: boolean })[]> {
  const runs: Map<string, number>[] = [];
  for (let run = 0; run < 3; run++) {
    await using stage = await openStage(sweep);
    if (sweep.verb === "DEL") await stage.net.add(stage.victim);
    const points = await pointsOf(stage.machine, patchbayPlugins(), stage.call);
    runs.push(new Map(points.map(({ syscall, nth }) => [syscall, nth])));
  }
  return [...new Set(runs.flatMap((run) => [...run.keys()]))].flatMap((syscall) => {
    const reached = runs.map((run) => run.get(syscall) ?? 0);
    const steady = UNSTEADY.test(syscall) ? 0 : Math.min(...reached);
    return Array.from({ length: Math.max(...reached) }, (_, index) => ({
      syscall,
      nth: index + 1,
      required: index < steady,
    }));
  });
}

/** Addresses in the container's kernel, without their prefix; link-local ones aside. */
async function addressesIn({ machine }: Stage, container: Container): Promise<string[]> {
  const text = await machine.sh("ip -o address show scope global", { in: container });
  return text.split("\n").flatMap((line) => line.match(/inet6? ([^/]+)\//)?.[1] ?? []);
}

/** Kills at the point and clears up. Answers what was wrong afterwards, or undefined when the point was not reached. */
async function killAndClear(stage: Stage, sweep: Sweep, point: Point, clearBy: "DEL" | "GC", shared: Moment) {
  const { machine, net, call, keeper, victim, other, moment } = stage;
  if (sweep.verb === "DEL") await net.add(victim);
  const { hit } = await killAt(machine, patchbayPlugins(), call, point);
  const wrong: string[] = [];
  const taken = [...await addressesIn(stage, keeper), ...await addressesIn(stage, victim)];
  const added = await net.call("ADD", other);
  if (added.code !== 0) wrong.push(`ADD of another container failed: ${added.stdout}`);
  const given: string[] = (added.json.ips ?? []).map(({ address }: { address: string }) => address.split("/")[0]);
  wrong.push(...given.filter((one) => taken.includes(one)).map((one) => `${one} was given twice`));

  if (clearBy === "GC") await net.gc(sweep.machine === "used" ? [keeper] : []);
  else for (const one of [victim, other]) await net.del(one);
  if (!hit) return undefined;
  const left = sweep.machine === "used" ? await leftSince(moment, machine) : await leftSince(shared, machine, /^-/);
  return [...wrong, ...left].map((line) => `${point.syscall} ${point.nth}, then ${clearBy}: ${line}`);
}

/** What a machine holds once its first attachment came and went. */
async function sharedThings(sweep: Sweep): Promise<Moment> {
  await using stage = await openStage(sweep);
  await stage.net.add(stage.victim);
  await stage.net.del(stage.victim);
  return await quietMoment(stage.machine);
}

test.each(sweeps)("nothing is lost: $plugin $verb killed on a $machine machine", async (sweep) => {
  const points = await survey(sweep);
  const shared = await sharedThings(sweep);
  const full = process.env.PATCHBAY_TEST_FULL_SWEEP === "1";
  const queue = points.flatMap((point, index) =>
    (["DEL", "GC"] as const).filter((_, way) => full || index % 2 === way).map((clearBy) => ({ ...point, clearBy }))
  );
  const total = queue.length;
  const wrong: string[] = [];
  let hits = 0;

  async function lane() {
    let stage: Stage | undefined;
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      let found: string[] | undefined;
      for (let attempt = 0; found === undefined && attempt < 3; attempt++) {
        stage ??= await openStage(sweep);
        found = await killAndClear(stage, sweep, next, next.clearBy, shared);
        if (sweep.machine === "used" && (found ?? []).length === 0) continue;
        await stage[Symbol.asyncDispose]();
        stage = undefined;
      }
      if (found !== undefined) hits++;
      else if (next.required) wrong.push(`${next.syscall} ${next.nth} was not reached`);
      wrong.push(...(found ?? []));
    }
    await stage?.[Symbol.asyncDispose]();
  }
  await Promise.all(Array.from({ length: LANES }, lane));
  console.log(`${sweep.plugin} ${sweep.verb} on a ${sweep.machine} machine: killed at ${hits} of ${total} points`);
  expect(wrong.slice(0, 40)).toEqual([]);
  expect(hits).toBeGreaterThan(total * 0.8);
}, 600_000);
