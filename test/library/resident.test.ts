/**
 * The package beside a resident: it hands over what the program of the same sources would serve, with the same results,
 * and whatever happens to the resident, the call is made.
 */
import { expect, test } from "bun:test";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { installedPackage, Library } from "../support/library/installed.ts";
import {
  attachmentOf,
  bridge,
  conf,
  CONFIGURATIONS,
  machineWithNetwork,
  options,
} from "../support/library/network.ts";
import type { Machine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { GO_PLUGINS, PATCHBAY, patchbayPlugins } from "../support/plugins.ts";
import { childrenOf, type Resident, SOCKET, startResident } from "../support/resident.ts";
import { statusOf, untilServed } from "../support/resident-status.ts";
import { OWN_SOCKET } from "../support/served.ts";
import {
  ALTERED,
  answer,
  DONE_IN_FILES,
  HEARD,
  makePlace,
  NOT_OURS,
  READY,
  startStranger,
} from "../support/stranger.ts";
import { buildOf } from "../../src/resident/build.ts";

// Each machine has one of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

const published = attachmentOf("c1", {
  capabilities: { portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }] },
});

/** How many calls the resident served while `work` ran, of whichever program; the look itself is none. */
async function servedWhile(machine: Machine, work: () => Promise<unknown>): Promise<number> {
  const before = (await statusOf(machine)).served;
  await work();
  return (await statusOf(machine)).served - before;
}

async function end(resident: Resident): Promise<void> {
  resident.kill("SIGKILL");
  await resident.exited;
}

test("every function answers the same through a resident, and the process stays as it was", async () => {
  await using machine = await machineWithNetwork();
  await machine.container("c1");
  await using alone = await Library.open(machine, { options: { ...options, resident: false } });
  await alone.must("add", "net", published);
  await alone.must("del", "net", published);
  const moment = await quietMoment(machine), resident = await startResident(machine, 1);
  await untilServed(machine);
  await using library = await Library.open(machine, { options });
  const calls: unknown[][] = [
    ["networks"],
    ["status", "net"],
    ["plan", "net", published],
    ["gc", "net", { live: true }],
    ["check", "net", published],
    ["inspect", { network: "net" }],
    ["add", { ...conf, plugins: [bridge, { type: "nothing" }] }, published],
    ["add", "net", { ...published, netns: "/run/netns/gone" }],
  ];
  const chosen = /veth[0-9a-f]{8}|([0-9a-f]{2}:){5}[0-9a-f]{2}|10\.1\.0\.\d+/g;
  const same = (answer: unknown) => JSON.stringify(answer).replace(chosen, "chosen");
  for (const attached of [false, true]) {
    if (attached) expect(await servedWhile(machine, () => library.must("add", "net", published))).toBe(1);
    for (const [name, ...given] of calls) {
      const here = await alone.call(name as string, ...given);
      expect(
        await servedWhile(machine, async () => {
          expect(same(await library.call(name as string, ...given))).toBe(same(here));
        }),
      ).toBe(1);
      expect(here.changed).toEqual([]);
    }
  }
  expect(await servedWhile(machine, () => library.must("del", "net", published))).toBe(1);
  expect(await servedWhile(machine, () => library.must("repeat", 50, "net", published))).toBe(100);
  expect(await servedWhile(machine, () => alone.must("repeat", 2, "net", published))).toBe(0);
  await using off = await Library.open(machine, { options, env: { PATCHBAY_RESIDENT: "off" } });
  expect(await servedWhile(machine, () => off.must("repeat", 2, "net", published))).toBe(0);
  await end(resident);
  expect(await leftSince(moment, machine, OWN_SOCKET)).toEqual([]);
});

test("add succeeds, and del leaves nothing, wherever the worker is killed", async () => {
  await using machine = await machineWithNetwork();
  await machine.container("c1");
  await using library = await Library.open(machine, { options });
  await library.must("add", "net", published);
  await library.must("del", "net", published);
  const moment = await quietMoment(machine), resident = await startResident(machine, 1);
  // The first message says that the call has begun, and the second is its answer.
  const points = ["sendmsg:signal=KILL:when=1", "sendmsg:signal=KILL:when=2"];
  for (let nth = 1; nth <= 22; nth += 3) points.push(`sendto:signal=KILL:when=${nth}`);
  for (const point of points) {
    await untilServed(machine);
    await library.must("status", "net");
    const [worker] = childrenOf(resident.pid);
    const tracer = machine.start(["strace", "-qq", "-o", "/dev/null", "-e", `inject=${point}`, "-p", String(worker)]);
    await machine.sh(`until grep -q "TracerPid:.*[1-9]" /proc/${worker}/status; do sleep 0.01; done`);
    const { ips } = await library.must("add", "net", published);
    await tracer.exited;
    expect([point, childrenOf(resident.pid)]).toEqual([point, expect.not.arrayContaining([worker])]);
    expect(await machine.sh("ip netns exec c1 ip -o -4 addr show eth0")).toContain(ips[0].address);
    await library.must("check", "net", published);
    await library.must("del", "net", published);
    expect(await leftSince(moment, machine, OWN_SOCKET)).toEqual([]);
  }
  await end(resident);
});

test("the worker forgets the name of an operation: the next call's ledger names the caller alone", async () => {
  await using machine = await machineWithNetwork();
  const container = await machine.container("c1"), resident = await startResident(machine, 1);
  await untilServed(machine);
  await using library = await Library.open(machine, { options });
  expect(await servedWhile(machine, () => library.must("status", "net"))).toBe(1);
  const net = network(machine, { type: "bridge", ipam: bridge.ipam });
  expect(await servedWhile(machine, () => net.add(container))).toBe(1);
  const [header] = (await machine.sh("head -qn 1 /run/patchbay/*/*@eth0@bridge")).trim().split("\n");
  expect(JSON.parse(header!).caller).toMatch(/^\d+ \d+$/);
  await net.del(container);
  await end(resident);
});

test("an attachment that a resident made is not taken back by a second add without one", async () => {
  await using machine = await machineWithNetwork();
  const container = await machine.container("c1"), resident = await startResident(machine, 1);
  await untilServed(machine);
  await using library = await Library.open(machine, { options });
  expect(await servedWhile(machine, () => library.must("add", "net", published))).toBe(1);
  const attached = await machine.sh("ip -o addr show eth0", { in: container });
  await end(resident);
  expect((await library.call("add", "net", published)).error?.message).toContain("already exists");
  expect(await machine.sh("ip -o addr show eth0", { in: container })).toBe(attached);
  await library.must("check", "net", published);
  await library.must("del", "net", published);
});

const ready = answer(READY, 0, 0, 0);

test.each([["of our own", [], {}], ...NOT_OURS] as typeof NOT_OURS)(
  "a listener %s: whether it hears of the environment and the operation, which it cannot change",
  async (name, as, stranger) => {
    await using machine = await machineWithNetwork();
    await makePlace(machine);
    const how = { answers: [ready], closes: true, alters: true, ...stranger };
    await using _listening = await startStranger(machine, how, as);
    await using library = await Library.open(machine, { options, env: { SECRET: "told" } });
    await library.must("status", "net");
    const heard = await machine.sh(`tr '\\0' '\\n' <${HEARD}; cat ${ALTERED}`);
    if (name === "of our own") expect(heard.split("\n").slice(-3)).toContain("SECRET=told");
    else expect(heard).toBe("");
  },
);

test("the library closes all descriptors that it does not want", async () => {
  await using machine = await machineWithNetwork();
  await makePlace(machine);
  for (const answers of [[[]], [[1]], [ready, []], [ready, [1]], [ready, answer(DONE_IN_FILES, 0, 0, 0)]]) {
    await using listening = await startStranger(machine, { answers, closes: true, gives: 12 });
    await using library = await Library.open(machine, { options });
    // The call looks whether the process has other descriptors afterwards.
    await library.must("status", "net");
    await listening.end();
    await machine.sh(`rm ${SOCKET}`);
  }
});

test("what a resident declines is done here: foreign plugins, another build", async () => {
  await using machine = await machineWithNetwork();
  await machine.container("c1");
  const resident = await startResident(machine, 1);
  await untilServed(machine);
  await using foreign = await Library.open(machine, { options: { ...options, pluginPath: GO_PLUGINS } });
  expect(await servedWhile(machine, () => foreign.must("repeat", 2, "net", published))).toBe(0);
  expect((await statusOf(machine)).declined).toMatchObject({ "foreign plugin": 4 });

  const folder = mkdtempSync(join(tmpdir(), "patchbay-other-library-"));
  try {
    cpSync(installedPackage(), folder, { recursive: true });
    const file = join(folder, "node_modules/patchbay/patchbay.js"),
      build = Buffer.from(buildOf(PATCHBAY)).toString("hex");
    writeFileSync(file, readFileSync(file, "utf8").replaceAll(build, "00".repeat(20)));
    await using other = await Library.open(machine, { options, folder });
    expect(await servedWhile(machine, () => other.must("repeat", 2, "net", published))).toBe(0);
    expect((await statusOf(machine)).declined).toMatchObject({ build: 4 });
  } finally {
    rmSync(folder, { recursive: true });
  }
  await end(resident);
});

test("from a directory that is gone, and beside a plugin directory with the same program", async () => {
  await using machine = await machineWithNetwork();
  await machine.container("c1");
  const resident = await startResident(machine, 1);
  await untilServed(machine);
  const linked = { ...options, pluginPath: patchbayPlugins() };
  await using library = await Library.open(machine, { options: linked });
  await using alone = await Library.open(machine, { options: { ...linked, resident: false } });
  // The plugins found are this very program, so nothing is executed, neither here nor there.
  for (const each of [library, alone]) expect((await each.must("plan", "net"))[0].resources).toBeArray();
  expect(await servedWhile(machine, () => library.must("repeat", 1, "net", published))).toBe(2);
  await library.call("lose", "/run/lost");
  expect(await servedWhile(machine, () => library.must("repeat", 1, "net", published))).toBe(0);
  await end(resident);
});

test("a resident that does not answer is waited for no longer than the launcher waits", async () => {
  await using machine = await machineWithNetwork();
  await machine.container("c1");
  const resident = await startResident(machine, 1);
  await untilServed(machine);
  const [worker] = childrenOf(resident.pid);
  process.kill(worker!, "SIGSTOP");
  await using library = await Library.open(machine, { options });
  await library.must("add", "net", published);
  process.kill(worker!, "SIGCONT");
  // It finds a caller that has gone on, and begins nothing.
  await untilServed(machine);
  await library.must("check", "net", published);
  await library.must("del", "net", published);
  expect(await machine.sh(`ls ${CONFIGURATIONS}; ls /run/patchbay`)).toBe("net.conflist\nserve.sock\n");
  await end(resident);
});

test("what a resident does for a program that is killed meanwhile is taken back", async () => {
  await using machine = await machineWithNetwork();
  await machine.container("c1");
  const library = await Library.open(machine, { options });
  await library.must("add", "net", published);
  await library.must("del", "net", published);
  const moment = await quietMoment(machine), resident = await startResident(machine, 1);
  await untilServed(machine);
  const [worker] = childrenOf(resident.pid), late = "inject=rename:delay_enter=2000000";
  const tracer = machine.start(["strace", "-qq", "-o", "/dev/null", "-e", late, "-p", String(worker)]);
  await machine.sh(`until grep -q "TracerPid:.*[1-9]" /proc/${worker}/status; do sleep 0.01; done`);
  const added = library.call("add", "net", published).catch(() => "killed");
  await machine.sh("until ip netns exec c1 ip -o -4 addr show eth0 2>/dev/null | grep -q inet; do sleep 0.01; done");
  library.process.kill("SIGKILL");
  expect(await added).toBe("killed");
  await machine.sh("while ip netns exec c1 ip link show eth0 >/dev/null 2>&1; do sleep 0.01; done");
  expect(await leftSince(moment, machine, OWN_SOCKET)).toEqual([]);
  tracer.kill("SIGTERM");
  await tracer.exited;
  expect((await statusOf(machine)).takenBack).toBe(1);
  await end(resident);
});
