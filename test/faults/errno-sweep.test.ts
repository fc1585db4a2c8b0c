/**
 * Every system call of bridge and host-local fails once, from reading the configuration to the end. ADD then either
 * succeeds all the same or answers one error document; DEL may fail, and succeeds when called again; and in the end
 * nothing is left.
 */
import { expect, test } from "bun:test";
import { failAt, pointsOf } from "../support/injection.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { type Network, network } from "../support/network.ts";
import { patchbayPlugins } from "../support/plugins.ts";

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

const ipam = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
const confs = {
  bridge: { type: "bridge", bridge: "br0", isDefaultGateway: true, ipMasq: true, macspoofchk: true, ipam },
  "host-local": { type: "host-local", ipam },
};

interface Stage {
  machine: Machine;
  net: Network;
  container: Container;
  moment: string[];
}

async function openStage(plugin: keyof typeof confs): Promise<Stage> {
  const machine = await openMachine();
  const container = await machine.container("c1");
  const net = network(machine, confs[plugin]);
  await net.add(container);
  await net.del(container);
  return { machine, net, container, moment: await quietMoment(machine) };
}

const rows = (["host-local", "bridge"] as const).flatMap((plugin) =>
  (["ADD", "DEL"] as const).map((verb) => ({ plugin, verb }))
);

test.each(rows)("$plugin $verb with each system call failing once", async ({ plugin, verb }) => {
  const conf = { cniVersion: "1.1.0", name: "net", ...confs[plugin] };
  const call = (container: Container) => ({ plugin, command: verb, container, conf });
  let points;
  {
    const { machine, net, container } = await openStage(plugin);
    await using _ = machine;
    if (verb === "DEL") await net.add(container);
    points = await pointsOf(machine, patchbayPlugins(), call(container));
  }
  const queue = points.flatMap((point) => (failures[point.syscall] ?? []).map((errno) => ({ ...point, errno })));
  const total = queue.length;
  const wrong: string[] = [];
  let hits = 0;

  async function one({ machine, net, container, moment }: Stage, point: (typeof queue)[number]): Promise<string[]> {
    if (verb === "DEL") await net.add(container);
    const run = await failAt(machine, patchbayPlugins(), call(container), point, point.errno);
    if (run.hit) hits++;
    const found: string[] = [];
    const documents = parse(run.stdout);
    if (run.code === undefined) found.push(`ended by a signal`);
    if (run.code === 0 && verb === "ADD" && !documents?.ips) found.push(`success without a result: ${run.stdout}`);
    if (run.code === 0 && verb === "DEL" && run.stdout !== "") found.push(`DEL printed ${run.stdout}`);
    const toldError = documents?.code > 0 && documents?.msg;
    // When stdout itself fails there is nowhere to tell it.
    if (run.code === 1 && !toldError && !/^\d+ +write\(1,/.test(point.line)) {
      found.push(`no error: ${run.stdout}`);
    }
    for (let count = 0; count < 2; count++) await net.del(container);
    found.push(...await leftSince(moment, machine));
    return found.map((line) => `${point.syscall} ${point.nth} ${point.errno}: ${line} (${point.line.slice(0, 120)})`);
  }

  async function lane() {
    let stage: Stage | undefined;
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      stage ??= await openStage(plugin);
      const found = await one(stage, next);
      wrong.push(...found);
      if (found.length === 0) continue;
      await stage.machine[Symbol.asyncDispose]();
      stage = undefined;
    }
    await stage?.machine[Symbol.asyncDispose]();
  }
  await Promise.all(Array.from({ length: LANES }, lane));
  console.log(`${plugin} ${verb}: ${hits} of ${total} faults injected`);
  expect(wrong.slice(0, 40)).toEqual([]);
  expect(hits).toBeGreaterThan(total * 0.8);
}, 600_000);

// deno-lint-ignore no-explicit-any
function parse(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
