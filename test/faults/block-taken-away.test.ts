/**
 * A block is taken away while ADD leases from it. ADD stands still behind each of its system calls in turn, and the agent then
 * writes down that the block is gone, and counts its leases. Either it finds ADD's lease, or ADD gives an address of another
 * block, or none: what the agent has not seen may be another node's by now.
 */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { type Point, pointsOf } from "../support/injection.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { type Call, patchbayPlugins } from "../support/plugins.ts";
import { POOLS, serve } from "../support/served-pool.ts";
import { ownShare } from "../support/share.ts";
import { stopAt } from "../support/stopped-at.ts";
import { SWEEP_TIMEOUT_MS } from "./subjects.ts";

const AGENT = resolve(import.meta.dir, "../support/taking-agent.ts");
const ranges = [{ cidr: "10.50.0.0/24", from: "10.50.0.0", to: "10.50.0.255", blockSize: 4 }];
/** Addresses .4 to .7 are taken away, .8 to .11 come. */
const before = { ranges, blocks: [1] }, after = { ranges, blocks: [2] };
const isTakenAway = (address: string) => ["4", "5", "6", "7"].includes(address.split(".")[3]!);

interface Case {
  /** A script before ADD. */
  prepare: string;
  args?: string;
}

const directory = `${POOLS}/lan`;
const leaseFiles = (...last: number[]) =>
  `mkdir -p -m 755 ${directory}; for n in ${
    last.join(" ")
  }; do printf 'x\\r\\neth0\\r\\nnet' >${directory}/10.50.0.$n; done`;
/** The index has what is no longer there: ADD looks again with the lock alone, and lets go of it before. */
const staleIndex = `${leaseFiles(4, 5, 6, 7)}; INDEX; rm ${directory}/10.50.0.6`;

const cases: Record<string, Case> = {
  "the first ADD, which makes the index": { prepare: "true" },
  "an ADD like most": { prepare: `${leaseFiles(4)}; INDEX` },
  "the last address, of which the index knows nothing": { prepare: staleIndex },
  "an address that is asked for": { prepare: `${leaseFiles(4)}; INDEX`, args: "IP=10.50.0.6" },
  "one that is asked for, of which the index knows nothing": { prepare: staleIndex, args: "IP=10.50.0.6" },
};

class Stage implements AsyncDisposable {
  private readonly agent;
  private readonly said;

  private constructor(readonly machine: Machine, readonly container: Container) {
    this.agent = machine.start([process.execPath, AGENT]);
    this.said = this.agent.stdout.getReader();
  }

  static async open(): Promise<Stage> {
    const machine = await openMachine();
    return new Stage(machine, await machine.container());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.agent.stdin.end();
    await this.agent.exited;
    await this.machine[Symbol.asyncDispose]();
  }

  /** What the agent finds when it has written this down; null while an ADD is under way. */
  async take(given: object): Promise<string[] | null> {
    this.agent.stdin.write(`${JSON.stringify(given)}\n`);
    await this.agent.stdin.flush();
    const { value } = await this.said.read();
    return JSON.parse(new TextDecoder().decode(value));
  }

  async leased(): Promise<string[]> {
    return (await this.machine.sh(`ls ${directory} | grep ^10 || true`)).split("\n").slice(0, -1);
  }

  call({ args }: Case, containerId: string): Call {
    const ipam = { type: "patchbay-cluster", pool: "lan" }, conf = { cniVersion: "1.1.0", name: "net", ipam };
    return { plugin: "patchbay-cluster", command: "ADD", container: this.container, containerId, args, conf };
  }

  /** As the case has it before ADD. */
  async prepare({ prepare }: Case): Promise<void> {
    await this.machine.sh(`rm -rf ${POOLS}`);
    await serve(this.machine, before);
    const [files, rest] = prepare.split("INDEX");
    await this.machine.sh(files!);
    // Counting makes no index; an ADD and a DEL of another container do.
    if (rest === undefined) return;
    await this.machine.run([`${patchbayPlugins()}/patchbay-cluster`], this.options("ADD"));
    await this.machine.run([`${patchbayPlugins()}/patchbay-cluster`], this.options("DEL"));
    await this.machine.sh(`true${rest}`);
  }

  private options(command: string) {
    const { conf } = this.call({ prepare: "" }, "maker");
    const env = { CNI_COMMAND: command, CNI_CONTAINERID: "maker", CNI_IFNAME: "eth0", CNI_NETNS: "/dev/null" };
    return { stdin: JSON.stringify(conf), env: { ...env, CNI_PATH: patchbayPlugins(), PATCHBAY_RESIDENT: "off" } };
  }
}

/** Stops ADD there, takes its block away, and lets it go on, or kills it. Returns what is wrong; undefined when it was not reached. */
async function takeAwayAt(stage: Stage, one: Case, point: Point, isKilled: boolean): Promise<string[] | undefined> {
  await stage.prepare(one);
  const adding = await stopAt(stage.machine, patchbayPlugins(), stage.call(one, "victim"), point);
  const { isStopped } = adding, early = await stage.take(after);
  if (isKilled) await adding.kill();
  const answer = isKilled ? undefined : await adding.goOn();
  const seen = early ?? await stage.take(after);
  if (seen === null) return ["no ADD is under way, and the lock is taken"];
  if (!isStopped) return undefined;
  const given: string[] = answer?.code === 0 ? [answer.json.ips[0].address.split("/")[0]] : [];
  if (answer !== undefined && answer.code !== 0 && one.args === undefined) return [`ADD: ${answer.stdout}`];
  const unseen = (address: string) => isTakenAway(address) && !seen.includes(address);
  return [
    ...given.filter(unseen).map((address) => `${address} was given, and nobody saw it`),
    ...(await stage.leased()).filter(unseen).map((address) => `${address} is leased, and nobody saw it`),
  ];
}

test.each(Object.entries(cases))("%s: no address is leased that the agent does not see", async (name, one) => {
  await using stage = await Stage.open();
  await stage.prepare(one);
  const all = await pointsOf(stage.machine, patchbayPlugins(), {
    ...stage.call(one, "surveyor"),
    env: { PATCHBAY_RESIDENT: "off" },
  });
  const first = all.findIndex(({ line }) => line.includes('read(0, "{'));
  const points = ownShare(
    all.slice(first).filter(({ syscall }) =>
      !/^(futex|madvise|mmap|munmap|mprotect|rt_sig\w+|gettid|brk|prctl|clone3?|sched_\w+)$/.test(syscall)
    ),
  );
  const wrong: string[] = [];
  let reached = 0;
  const runs = points.flatMap((
    point,
    index,
  ) => [{ point, isKilled: false }, ...index % 4 === 0 ? [{ point, isKilled: true }] : []]);
  for (const { point, isKilled } of runs) {
    const found = await takeAwayAt(stage, one, point, isKilled);
    if (found === undefined) continue;
    reached++;
    wrong.push(...found.map((line) => `${point.syscall} ${point.nth}: ${line}`));
  }
  console.log(`${name}: the block was taken away at ${reached} of ${runs.length} points`);
  expect(wrong).toEqual([]);
  expect(reached).toBeGreaterThan(runs.length / 2);
}, SWEEP_TIMEOUT_MS);
