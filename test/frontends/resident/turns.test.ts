/**
 * A resident that starts, and a burst of calls that has started it: as many run by themselves as there are processors, and
 * the others wait for the resident's workers.
 */
import { expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { untilListening } from "../../support/listening.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { SOCKET, TURNS } from "../../support/resident.ts";
import { untilTrue } from "../../support/until-true.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

const PROCESSORS = navigator.hardwareConcurrency;

/** What listens becomes this program with the first call. */
async function openActivated(program: readonly string[]) {
  const machine = await openMachine();
  await machine.sh("mkdir -p /run/patchbay");
  const activator = machine.start(["systemd-socket-activate", "--seqpacket", "-l", SOCKET, ...program]);
  await untilListening(machine, SOCKET);
  const end = async () => {
    activator.kill("SIGKILL");
    await activator.exited;
    await machine[Symbol.asyncDispose]();
  };
  return { machine, [Symbol.asyncDispose]: end };
}

const NOBODY = ["/bin/sleep", "60"];

/** Takes that many turns, as calls that run by themselves do. */
async function takeTurns(machine: Machine, count: number) {
  const holder = machine.start([
    process.execPath,
    "-e",
    `import { O_CREAT, O_RDWR, openFile } from "${import.meta.dir}/../../../src/ffi/files.ts";
    import { lockRangeExclusive } from "${import.meta.dir}/../../../src/process/lock.ts";
    const file = openFile("${TURNS}", O_RDWR | O_CREAT, 0o600);
    for (let start = 0; start < ${count}; start++) lockRangeExclusive(file, { start, length: 1 });
    console.log("taken");
    for await (const _ of Bun.stdin.stream());`,
  ]);
  await holder.stdout.getReader().read();
  return async () => {
    await holder.stdin.end();
    await holder.exited;
  };
}

/** Who runs a call, how often it asks for a turn, and how many it gets. */
async function callOf(machine: Machine): Promise<{ ranBy: "resident" | "itself"; looks: number; taken: number }> {
  const { stderr, code } = await machine.run(["strace", "-e", "trace=openat,fcntl", PATCHBAY, "version"]);
  expect(code).toBe(0);
  const asked = stderr.split("\n").filter((line) => line.includes("F_SETLK,"));
  const taken = asked.filter((line) => line.endsWith("= 0")).length;
  return { ranBy: stderr.includes("ld-linux") ? "itself" : "resident", looks: asked.length, taken };
}

test("with a turn left, a call that nobody takes runs by itself at once", async () => {
  await using stage = await openActivated(NOBODY);
  const release = await takeTurns(stage.machine, PROCESSORS - 1);
  const { ranBy, looks, taken } = await callOf(stage.machine);
  expect([ranBy, looks <= PROCESSORS, taken]).toEqual(["itself", true, 1]);
  await release();
});

test("without one, it asks again and again, and runs by itself after a second", async () => {
  await using stage = await openActivated(NOBODY);
  const release = await takeTurns(stage.machine, PROCESSORS);
  const { ranBy, looks, taken } = await callOf(stage.machine);
  expect([ranBy, looks > PROCESSORS, taken]).toEqual(["itself", true, 0]);
  await release();
});

test("without one, the call that has started the resident is served by it", async () => {
  // A busy machine may need more than the second that a call waits.
  const first = async () => {
    await using stage = await openActivated([PATCHBAY, "serve"]);
    const release = await takeTurns(stage.machine, PROCESSORS);
    const { ranBy } = await callOf(stage.machine);
    await release();
    return ranBy;
  };
  await untilTrue(first, (ranBy) => ranBy === "resident");
});

test("a call that another one waits for needs no turn, and one with closed outputs writes nothing into the file", async () => {
  await using stage = await openActivated(NOBODY);
  const { machine } = stage, container = await machine.container("c1");
  const conf = { cniVersion: "1.0.0", name: "net", plugins: [{ type: "wrapped" }] };
  await machine.sh(
    `mkdir -p /run/networks /run/bin && cat >/run/networks/net.conflist && ln -s "$OURS" /run/bin/loopback &&
    printf '%s\\n' '#!/bin/sh' 'strace -o /run/trace /run/bin/loopback' >/run/bin/wrapped && chmod 755 /run/bin/wrapped`,
    {
      stdin: JSON.stringify(conf),
      env: { OURS: PATCHBAY },
    },
  );
  const release = await takeTurns(machine, PROCESSORS - 1);
  const call = [PATCHBAY, "add", "--config-dir", "/run/networks", "net", container.netnsPath];
  expect((await machine.run(call, { env: { CNI_PATH: "/run/bin" } })).code).toBe(0);
  const trace = await machine.sh("cat /run/trace");
  expect([trace.includes("F_GETLK"), trace.match(/F_SETLK/g)!.length <= PROCESSORS]).toEqual([true, true]);
  await release();
  await machine.run(["sh", "-c", `${PATCHBAY} version >&- 2>&-`]);
  expect(await machine.sh(`wc -c <${TURNS}`)).toBe("0\n");
});

test("a call has its turn until it ends, and what it starts has none", async () => {
  await using stage = await openActivated(NOBODY);
  const { machine } = stage, container = await machine.container("c1");
  const conf = { cniVersion: "1.0.0", name: "net", plugins: [{ type: "slow" }] };
  await machine.sh(
    `mkdir -p /run/networks /run/bin && cat >/run/networks/net.conflist &&
    printf '%s\\n' '#!/bin/sh' 'cat >/dev/null' 'echo $$ >/run/child; until test -e /run/go; do sleep 0.05; done' \\
      'echo "{\\"cniVersion\\":\\"1.0.0\\"}"' >/run/bin/slow && chmod 755 /run/bin/slow`,
    {
      stdin: JSON.stringify(conf),
    },
  );
  const call = machine.run([PATCHBAY, "add", "--config-dir", "/run/networks", "net", container.netnsPath], {
    env: { CNI_PATH: "/run/bin" },
  });
  const child = await untilTrue(
    () => machine.run(["cat", "/run/child"]),
    ({ stdout }) => stdout.endsWith("\n"),
  );
  const { dev, ino } = statSync(`/proc/${machine.pid}/root${TURNS}`),
    hex = (one: number) => one.toString(16).padStart(2, "0");
  const file = ` ${hex(dev >> 8 & 0xfff)}:${hex(dev & 0xff | dev >> 12 & ~0xff)}:${ino} `;
  const holders = () => {
    const lines = readFileSync("/proc/locks", "utf8").split("\n").filter((line) => line.includes(file));
    return lines.map((line) => line.trim().split(/\s+/));
  };
  expect(holders().map(([, kind, , mode]) => `${kind} ${mode}`)).toEqual(["POSIX WRITE"]);
  expect(holders()[0]![4]).not.toBe(child.stdout.trim());
  await machine.sh("touch /run/go");
  expect((await call).code).toBe(0);
  expect(holders()).toEqual([]);
});
