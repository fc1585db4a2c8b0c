/**
 * What a new worker attaches and detaches for practice: nothing of it stays, and calls that come meanwhile are served on
 * the real host.
 */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { hasMemoryLimit } from "../../../src/ffi/control-group.ts";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { network } from "../../support/network.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { random } from "../../support/random.ts";
import { childrenOf, readyWorkersOf, type Resident, startServe, terminate } from "../../support/resident.ts";
import { statusOf } from "../../support/resident-status.ts";
import { untilServed } from "../../support/served.ts";
import { untilTrue } from "../../support/until-true.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

const conf = { type: "bridge", isGateway: true, ipam: { type: "host-local", subnet: "10.1.0.0/24" } };

async function startRehearsing(machine: Machine, rounds: number): Promise<{ resident: Resident; worker: number }> {
  const resident = startServe(machine, ["--workers=1", `--rehearsals=${rounds}`]);
  await untilTrue(() => readyWorkersOf(resident.pid), (count) => count === 1);
  return { resident, worker: childrenOf(resident.pid)[0]! };
}

/** It waits for calls: it has nothing to rehearse any more. */
async function untilIdle(worker: number): Promise<void> {
  await untilTrue(() => readFileSync(`/proc/${worker}/wchan`, "utf8"), (place) => /ep_poll|epoll_wait/.test(place));
}

/** KiB of mappings whose pages stay in memory. */
const lockedBy = (pid: number) => Number(/^VmLck:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]);

const descriptorsOf = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;

test("so many times, in namespaces and files of its own; then the worker is as one that rehearses nothing", async () => {
  await using machine = await openMachine();
  const moment = await quietMoment(machine);
  const one = await startRehearsing(machine, 0);
  await untilIdle(one.worker);
  const open = descriptorsOf(one.worker);
  expect(lockedBy(one.worker)).toBe(0);
  one.resident.kill("SIGKILL");
  await one.resident.exited;
  const calls = "trace=unshare,fsmount,openat";
  const traced = machine.start(
    ["strace", "-f", "-e", calls, "-o", "/run/trace", PATCHBAY, "serve", "--workers=1", "--rehearsals=3"],
  );
  const parent = await untilTrue(() => childrenOf(traced.pid)[0] ?? 0, (pid) => readyWorkersOf(pid) === 1);
  const worker = childrenOf(parent)[0]!;
  await untilIdle(worker);
  expect(descriptorsOf(worker)).toBe(open);
  const program = statSync(PATCHBAY).size / 1024;
  if (hasMemoryLimit()) expect(lockedBy(worker)).toBe(0);
  else expect(lockedBy(worker)).toBeGreaterThan(program);
  const trace = await machine.sh("cat /run/trace; rm /run/trace");
  expect(trace.match(/fsmount\(/g)!.length).toBe(1);
  expect(trace.match(/rehearsal@eth0@ptp", O_WRONLY\|O_CREAT/g)!.length).toBe(3);
  expect(await leftSince(moment, machine)).toEqual([]);
  const { served, declined } = await statusOf(machine);
  expect([served, declined]).toEqual([0, {}]);
  traced.kill("SIGKILL");
  process.kill(parent, "SIGKILL");
  await traced.exited;
});

test("calls that come meanwhile are served, and are about the host", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), net = network(machine, conf);
  await net.once(container);
  const moment = await quietMoment(machine), { resident } = await startRehearsing(machine, 10_000);
  await untilServed(machine);
  for (let turn = 0; turn < 10; turn++) {
    const { ips } = await net.add(container);
    expect(await machine.sh("ip -o -4 addr show eth0", { in: container })).toContain(ips![0]!.address);
    await net.check(container);
    await net.del(container);
  }
  expect(await leftSince(moment, machine)).toEqual([]);
  expect((await statusOf(machine)).served).toBeGreaterThan(0);
  await terminate(resident);
});

test("killed in the middle of it, nothing stays, and no process goes on", async () => {
  await using machine = await openMachine();
  const moment = await quietMoment(machine);
  for (let round = 0; round < 10; round++) {
    const { resident, worker } = await startRehearsing(machine, 10_000);
    await Bun.sleep(random() * 100);
    process.kill(worker, "SIGKILL");
    resident.kill("SIGKILL");
    await resident.exited;
  }
  expect(await leftSince(moment, machine)).toEqual([]);
});

test.each(["fsopen:error=ENOSYS", "unshare:error=EPERM", "fsmount:error=ENOMEM"])(
  "where %s makes it impossible, calls are served without it",
  async (injection) => {
    await using machine = await openMachine();
    const serve = [PATCHBAY, "serve", "--workers=1", "--rehearsals=50"];
    const traced = machine.start(["strace", "-f", "-e", `inject=${injection}`, "-o", "/run/trace", ...serve]);
    const parent = await untilTrue(() => childrenOf(traced.pid)[0] ?? 0, (pid) => readyWorkersOf(pid) === 1);
    await untilIdle(childrenOf(parent)[0]!);
    expect(await machine.sh("cat /run/trace")).toContain("(INJECTED)");
    await untilServed(machine);
    traced.kill("SIGKILL");
    process.kill(parent, "SIGKILL");
    await traced.exited;
  },
);
