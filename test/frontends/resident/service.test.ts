/**
 * The resident as a service: what `patchbay serve --status` says, and that no call fails and nothing is left while it is
 * ended or robbed of its socket. upgrade.test.ts has other builds, systemd.test.ts has systemd's part.
 */
import { expect, test } from "bun:test";
import { blockedCall } from "../../support/blocked-call.ts";
import { keepCalling } from "../../support/keep-calling.ts";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { untilListening } from "../../support/listening.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { network } from "../../support/network.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { BEGUN, SOCKET, startResident, terminate } from "../../support/resident.ts";
import { type Status, statusOf, untilServed } from "../../support/resident-status.ts";
import { untilTrue } from "../../support/until-true.ts";

const ipam = { type: "host-local", subnet: "10.1.0.0/24" };
const conf = { type: "bridge", isGateway: true, ipMasq: true, ipam };

async function attached(machine: Machine, name: string) {
  const container = await machine.container(name), net = network(machine, conf);
  return async () => {
    await net.once(container);
  };
}

test("the status of a resident: none, what it served and declined, and why", async () => {
  await using machine = await openMachine();
  const { code, stdout } = await machine.run([PATCHBAY, "serve", "--status"]);
  expect([code, stdout.split("\n")[0]]).toEqual([1, `no resident listens on ${SOCKET}`]);
  expect((await machine.run([PATCHBAY, "serve", "--status", "--json"])).code).toBe(1);

  await using resident = await startResident(machine);
  const before = await untilServed(machine);
  expect(before).toMatchObject({ pid: resident.pid, build: "this", takenBack: 0 });
  expect(before.problem).toBeUndefined();
  const container = await machine.container("c1"), net = network(machine, conf);
  await net.once(container);
  for (let count = 0; count < 3; count++) await machine.sh(`${PATCHBAY} version`);
  await machine.sh(`${PATCHBAY} version`, { in: container });
  await machine.sh(`setpriv --bounding-set=-net_admin ${PATCHBAY} version`);
  await machine.sh(`setpriv --reuid=0 --regid=7 --clear-groups ${PATCHBAY} version`);
  const after = await statusOf(machine);
  expect(after.served - before.served).toBe(5);
  expect(after.declined).toMatchObject({ namespace: 1, capabilities: 1, uid: 1 });

  // What a worker has counted does not end with it.
  const killed = new Set(after.workers.map(({ pid }) => pid));
  for (const pid of killed) process.kill(pid, "SIGKILL");
  const isAnew = ({ workers }: Status) =>
    workers.length === killed.size && !workers.some(({ pid }) => killed.has(pid));
  const later = await untilTrue(() => statusOf(machine), isAnew);
  expect(later.served).toBe(after.served);
  expect(later.declined).toEqual(after.declined);
  expect(later.workersReplaced).toBe(before.workersReplaced + after.workers.length);
  for (const { memoryKib, ownMemoryKib } of later.workers) expect(memoryKib).toBeGreaterThan(ownMemoryKib);

  const text = await machine.sh(`${PATCHBAY} serve --status`);
  expect(text).toContain(`process ${resident.pid} listens on ${SOCKET}, for `);
  expect(text).toContain("calls of this program are served\n");
  expect(text).toContain(`calls: ${later.served} served, `);
  for (const { pid } of later.workers) expect(text).toContain(`  process ${pid}: `);
  const asUser = await machine.sh(`! setpriv --reuid=1000 --regid=1000 --clear-groups ${PATCHBAY} serve --status`);
  expect(asUser).toBe(`uid 1000 may not connect to ${SOCKET}\nIts calls run by themselves.\n`);
  const inside = await machine.run([PATCHBAY, "serve", "--status"], { in: container });
  expect(inside.code).toBe(1);
  expect(inside.stdout).toContain(
    "calls of this program run by themselves: it serves callers with another mount, network, process or user " +
      "namespace, or root directory\n",
  );
});

test("a caller that waits no longer does not count as declined", async () => {
  await using machine = await openMachine();
  await using _resident = await startResident(machine, 1);
  const { workers } = await untilServed(machine);
  process.kill(workers[0]!.pid, "SIGSTOP");
  await machine.sh(`${PATCHBAY} version`);
  process.kill(workers[0]!.pid, "SIGCONT");
  await machine.sh(`${PATCHBAY} version`);
  const { served, declined } = await untilServed(machine);
  expect({ served, declined }).toEqual({ served: 1, declined: {} });
});

test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("%s ends it again and again while calls run", async (signal) => {
  await using machine = await openMachine();
  const calls = await Promise.all(["c1", "c2"].map((name) => attached(machine, name)));
  await calls[0]!();
  const moment = await quietMoment(machine);
  const calling = calls.map(keepCalling);
  for (let turn = 0; turn < 8; turn++) {
    const resident = await startResident(machine);
    await untilServed(machine);
    await Bun.sleep(turn * 7);
    resident.kill(signal);
    expect([await resident.exited, await resident.stderr.text()]).toEqual([0, expect.stringMatching(BEGUN)]);
    expect(await machine.sh(`ls ${SOCKET} 2>/dev/null || true`)).toBe("");
  }
  for (const { stop } of calling) expect(await stop()).toBeGreaterThan(0);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("a call that runs when the resident is told to end ends first; signals to its group and its workers do no harm", async () => {
  await using machine = await openMachine();
  // A group of its own, as a terminal gives it: the test's is another.
  const resident = machine.start(["setsid", PATCHBAY, "serve", "--rehearsals=0"]);
  const { workers } = await untilServed(machine);
  const { release, busy } = await blockedCall(machine, conf, workers);
  process.kill(-resident.pid, "SIGINT");
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.kill(busy.pid, signal);
  await untilTrue(() => machine.sh(`ls ${SOCKET} 2>/dev/null || true`), (found) => found === "");
  const others = workers.filter(({ pid }) => pid !== busy.pid);
  await untilTrue(() => others.filter(({ pid }) => isAlive(pid)), (found) => found.length === 0);
  expect([resident.exitCode, isAlive(busy.pid)]).toEqual([null, true]);
  expect(await release()).toEqual({ code: 0, ranBy: "resident" });
  expect(await resident.exited).toBe(0);
});

test("the second signal does not wait for calls, and the call ends all the same", async () => {
  await using machine = await openMachine();
  const resident = await startResident(machine);
  const { workers } = await untilServed(machine);
  const { release } = await blockedCall(machine, conf, workers);
  resident.kill("SIGTERM");
  await untilTrue(() => machine.sh(`ls ${SOCKET} 2>/dev/null || true`), (found) => found === "");
  resident.kill("SIGTERM");
  expect(await resident.exited).toBe(1);
  expect(await release()).toEqual({ code: 0, ranBy: "resident" });
});

test("another resident takes the place of one that was killed, though a worker still runs its call", async () => {
  await using machine = await openMachine();
  const first = await startResident(machine);
  const { workers } = await untilServed(machine);
  const { release } = await blockedCall(machine, conf, workers);
  first.kill("SIGKILL");
  await first.exited;
  const second = await startResident(machine);
  expect((await untilServed(machine)).pid).toBe(second.pid);
  expect(await release()).toEqual({ code: 0, ranBy: "resident" });
  second.kill("SIGTERM");
  expect([await second.exited, await second.stderr.text()]).toEqual([0, expect.stringMatching(BEGUN)]);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const losses: [what: string, script: string, turns?: number][] = [
  ["the socket is removed", `rm -f ${SOCKET}`],
  // The resident may listen again before all of it is removed.
  ["its directory is removed", "until rm -rf /run/patchbay; do :; done 2>/dev/null"],
  ["its directory is moved away", "rm -rf /run/away; mv /run/patchbay /run/away"],
  ["a file takes its place", `echo >/run/other; mv /run/other ${SOCKET}`],
  ["an empty tmpfs is mounted over it", "mount -t tmpfs -o mode=700 tmpfs /run/patchbay", 1],
];

test.each(losses)("%s: the resident listens again, and no call fails", async (_what, script, turns = 5) => {
  await using machine = await openMachine();
  const resident = await startResident(machine);
  await untilServed(machine);
  // It makes no ledger, which is in the same directory.
  const calling = [1, 2].map(() => keepCalling(async () => void (await machine.sh(`${PATCHBAY} version`))));
  const served: number[] = [];
  for (let turn = 0; turn < turns; turn++) {
    await machine.sh(script);
    const { pid, served: count } = await untilServed(machine);
    expect(pid).toBe(resident.pid);
    served.push(count);
  }
  for (const { stop } of calling) expect(await stop()).toBeGreaterThan(0);
  // It is one resident all along: its counters go on.
  expect(served).toEqual(served.toSorted((one, other) => one - other));
  await terminate(resident);
  expect(await machine.sh(`find /run/patchbay -type s`)).toBe("");
});

test("a directory in the socket's place: calls run by themselves until it is gone", async () => {
  await using machine = await openMachine();
  const resident = await startResident(machine), call = await attached(machine, "c1");
  await untilServed(machine);
  await machine.sh(`until rm -f ${SOCKET} && mkdir ${SOCKET}; do :; done 2>/dev/null`);
  await call();
  await machine.sh(`until rmdir ${SOCKET}; do :; done 2>/dev/null`);
  expect((await untilServed(machine)).pid).toBe(resident.pid);
  await terminate(resident);
});

test("removing the socket while containers are attached fails no call and leaves nothing", async () => {
  await using machine = await openMachine();
  const call = await attached(machine, "c1");
  await call();
  const moment = await quietMoment(machine);
  const resident = await startResident(machine);
  const calling = keepCalling(call);
  for (let turn = 0; turn < 10; turn++) {
    await untilServed(machine);
    await Bun.sleep(turn * 5);
    await machine.sh(`rm -f ${SOCKET}`);
  }
  expect(await calling.stop()).toBeGreaterThan(0);
  await terminate(resident);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("a second resident says that there is one, and does no harm", async () => {
  await using machine = await openMachine();
  const resident = await startResident(machine);
  const before = await untilServed(machine);
  const second = await machine.run([PATCHBAY, "serve"]);
  expect([second.code, second.stderr]).toEqual([
    1,
    `patchbay serve: another resident (process ${resident.pid}) listens on ${SOCKET}\n`,
  ]);
  const after = await untilServed(machine);
  expect(after.workers.map(({ pid }) => pid)).toEqual(before.workers.map(({ pid }) => pid));
  await terminate(resident);
});

test("of two that start at once one stays, and it serves", async () => {
  await using machine = await openMachine();
  for (let turn = 0; turn < 5; turn++) {
    const both = [machine.start([PATCHBAY, "serve"]), machine.start([PATCHBAY, "serve"])];
    await Promise.race(both.map(({ exited }) => exited));
    const { pid } = await untilServed(machine);
    const stays = both.filter(({ exitCode }) => exitCode === null);
    expect(stays.map((one) => one.pid)).toEqual([pid]);
    await terminate(stays[0]!);
  }
});

test("a resident whose place is taken while it starts ends, and leaves the other's socket alone", async () => {
  await using machine = await openMachine();
  // It stops when it has been given its socket, and has executed itself.
  const stopping = ["-P", "/proc/self/exe", "-e", "trace=execve", "-e", "inject=execve:signal=STOP"];
  const activate = ["systemd-socket-activate", "--seqpacket", "-l", SOCKET, PATCHBAY, "serve"];
  await machine.sh("mkdir -p /run/patchbay");
  const first = machine.start(["strace", "-D", "-qq", "-o", "/dev/null", ...stopping, ...activate]);
  await untilListening(machine, SOCKET);
  await machine.sh(`${PATCHBAY} version`);
  await machine.sh(`until grep -qz PATCHBAY_PREPARED /proc/${first.pid}/environ; do sleep 0.01; done; rm ${SOCKET}`);
  const second = await startResident(machine);
  await untilServed(machine);
  process.kill(first.pid, "SIGCONT");
  expect(await untilTrue(() => first.exitCode, (code) => code !== null)).toBe(0);
  expect(await first.stderr.text()).toContain(`process ${second.pid} listens on ${SOCKET} now; this resident ends\n`);
  expect((await untilServed(machine)).pid).toBe(second.pid);
  await terminate(second);
});

test("a resident whose place another one has taken ends, and leaves the other's socket alone", async () => {
  await using machine = await openMachine();
  const first = await startResident(machine);
  await untilServed(machine);
  process.kill(first.pid, "SIGSTOP");
  await machine.sh(`rm ${SOCKET}`);
  const second = await startResident(machine);
  process.kill(first.pid, "SIGCONT");
  expect(await first.exited).toBe(0);
  expect(await first.stderr.text()).toContain(`process ${second.pid} listens on ${SOCKET} now; this resident ends\n`);
  expect((await untilServed(machine)).pid).toBe(second.pid);
  await terminate(second);
});

test("a resident does not listen in a directory that others can write to, and says what to do", async () => {
  await using machine = await openMachine();
  const spoilings = { "chmod 777": "chmod go-w", "chown 65534": "chown 0" };
  for (const [spoil, remedy] of Object.entries(spoilings)) {
    await machine.sh(`mkdir -m 700 /run/patchbay; ${spoil} /run/patchbay`);
    const { code, stderr } = await machine.run([PATCHBAY, "serve"]);
    const says = "it must belong to uid 0 and be writable by nobody else";
    expect({ spoil, code, stderr }).toEqual({
      spoil,
      code: 1,
      stderr: expect.stringMatching(
        new RegExp(`^patchbay serve: /run/patchbay is not trusted: .*; ${says}: ${remedy} /run/patchbay\n$`),
      ),
    });
    await machine.sh("rmdir /run/patchbay");
  }
});
