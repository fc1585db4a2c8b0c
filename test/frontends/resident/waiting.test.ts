/**
 * Whether a call waits for the resident: for workers that will take it soon, and for nobody else. And how many workers
 * there are, and until when.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { type Machine, openMachine } from "../../support/machine.ts";
import { untilListening } from "../../support/listening.ts";
import { LoneWorker, requestOf } from "../../support/lone-worker.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import {
  BOARD,
  childrenOf,
  readyWorkersOf,
  SOCKET,
  startResident,
  startServe,
  terminate,
} from "../../support/resident.ts";
import { blockedCall } from "../../support/blocked-call.ts";
import { statusOf, untilServed } from "../../support/resident-status.ts";
import { talking } from "../../support/talking.ts";
import { untilTrue } from "../../support/until-true.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

const conf = { type: "bridge", ipam: { type: "host-local", subnet: "10.1.0.0/24" } };

/** Who ran a call, and how often it looked at the board before. */
async function callOf(machine: Machine): Promise<{ ranBy: "resident" | "itself"; looks: number }> {
  const { stderr, code } = await machine.run(["strace", "-e", "trace=openat", PATCHBAY, "version"]);
  expect(code).toBe(0);
  return {
    ranBy: stderr.includes("ld-linux") ? "itself" : "resident",
    looks: stderr.split("serve~board").length - 1,
  };
}

const atOnce = { ranBy: "itself", looks: 1 } as const;

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) process.kill(pid, signal);
}

describe("a call whose resident does not take it runs by itself", () => {
  test("at once when all workers are stopped", async () => {
    await using machine = await openMachine();
    await using resident = await startResident(machine);
    const workers = childrenOf(resident.pid);
    signalAll(workers, "SIGSTOP");
    await untilTrue(() => workers.map(stateOf), (states) => states.every((state) => state === "T"));
    expect(await callOf(machine)).toEqual(atOnce);
    signalAll(workers, "SIGCONT");
    await untilTrue(() => callOf(machine), ({ ranBy }) => ranBy === "resident");
  });

  test("at once when the service starts, and has no workers yet", async () => {
    await using machine = await openMachine();
    await machine.sh("mkdir -p /run/patchbay");
    // It listens, and never becomes the resident.
    await using _activator = machine.start([
      "systemd-socket-activate",
      "--seqpacket",
      "-l",
      SOCKET,
      "/bin/sleep",
      "60",
    ]);
    await untilListening(machine, SOCKET);
    expect(await callOf(machine)).toEqual(atOnce);
  });

  test("at once when the only worker has had its call for long", async () => {
    await using machine = await openMachine();
    await using _resident = await startResident(machine, 1);
    const { workers } = await untilServed(machine), { release } = await blockedCall(machine, conf, workers);
    await untilTrue(() => callOf(machine), ({ looks }) => looks === 1);
    expect(await callOf(machine)).toEqual(atOnce);
    expect(await release()).toEqual({ code: 0, ranBy: "resident" });
    await untilTrue(() => callOf(machine), ({ ranBy }) => ranBy === "resident");
  });
});

const stateOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)![0];

test("a burst is served by workers that have short calls, however many wait", async () => {
  await using machine = await openMachine();
  await using _resident = await startResident(machine, 2);
  const burst = async () => {
    const before = (await statusOf(machine)).served;
    await machine.sh(`for i in $(seq 60); do ${PATCHBAY} version >/dev/null & done; wait`);
    return (await statusOf(machine)).served - before;
  };
  // A machine that is busy with other things may let some run by themselves.
  await untilTrue(burst, (served) => served > 30);
});

test("one worker at first, more while calls wait, and it says so", async () => {
  await using machine = await openMachine();
  const resident = startServe(machine, []);
  await untilTrue(() => readyWorkersOf(resident.pid), (count) => count === 1);
  expect(childrenOf(resident.pid).length).toBe(1);
  const most = Math.min(navigator.hardwareConcurrency, 4);
  const many = `${talking()}
    const many = Array.from({ length: 40 }, open);
    for (const fd of many) send(fd, version);
    for (const fd of many) if (hear(fd)[0] !== 1) throw new Error("not ready");
    for (const fd of many) if (hear(fd)[0] !== 3) throw new Error("not done");`;
  const burst = async () => {
    const { stderr, code } = await machine.run([process.execPath, "-e", many]);
    expect([stderr, code]).toEqual(["", 0]);
    return childrenOf(resident.pid).length;
  };
  await untilTrue(burst, (count) => count === most);
  await burst();
  expect(childrenOf(resident.pid).length).toBe(most);
  await terminate(resident);
  expect(await resident.stderr.text()).toContain(most === 1 ? "(workers: 1)" : `(workers: 1 to ${most})`);
  expect(await machine.sh("ls -A /run/patchbay")).toBe("");
});

test("a resident that nobody calls ends, and the socket stays the manager's", async () => {
  await using machine = await openMachine();
  await machine.sh("mkdir -p /run/patchbay");
  const serve = [PATCHBAY, "serve", "--idle=1", "--rehearsals=0"];
  const resident = machine.start(["systemd-socket-activate", "--seqpacket", "-l", SOCKET, ...serve]);
  await untilListening(machine, SOCKET);
  await machine.run([PATCHBAY, "version"]);
  expect(await resident.exited).toBe(0);
  expect(await resident.stderr.text()).toContain("no call served for 1 s; the resident ends");
  expect(await machine.sh("ls -A /run/patchbay")).toBe("serve.sock\nserve~turns\n");
  expect(await machine.run([PATCHBAY, "version"])).toMatchObject({ code: 0 });
});

test("a resident of its own takes its socket along", async () => {
  await using machine = await openMachine();
  const resident = startServe(machine, ["--idle=1"]);
  expect(await resident.exited).toBe(0);
  expect(await machine.sh("ls -A /run/patchbay")).toBe("");
});

/** A descriptor may be closed meanwhile. */
function isBoard(fd: string): boolean {
  try {
    return readlinkSync(fd).includes("serve~board");
  } catch {
    return false;
  }
}

test("a board that is removed is made again", async () => {
  await using machine = await openMachine();
  await using resident = await startResident(machine);
  const before = childrenOf(resident.pid);
  const boards = () =>
    readdirSync(`/proc/${resident.pid}/fd`).filter((fd) => isBoard(`/proc/${resident.pid}/fd/${fd}`));
  await machine.sh("rm /run/patchbay/serve~board");
  await untilTrue(() => readyWorkersOf(resident.pid), (count) => count === 2);
  await untilTrue(() => childrenOf(resident.pid), (now) => before.every((pid) => !now.includes(pid)));
  // The old one is closed when its last worker has ended.
  await untilTrue(boards, (found) => found.length === 1);
  await untilTrue(() => callOf(machine), ({ ranBy }) => ranBy === "resident");
});

test("what is in the board's place is said once, takes nothing, and goes", async () => {
  await using machine = await openMachine();
  const resident = await startResident(machine);
  let said = "";
  const listening = (async () => {
    for await (const chunk of resident.stderr) said += new TextDecoder().decode(chunk);
  })();
  const open = () => readdirSync(`/proc/${resident.pid}/fd`).length, before = open();
  await machine.sh(`until rm -f ${BOARD} && mkdir ${BOARD}; do :; done 2>/dev/null`);
  await untilTrue(() => said, (text) => text.includes("calls run by themselves: "));
  expect((await machine.run([PATCHBAY, "version"])).code).toBe(0);
  await Bun.sleep(2500);
  expect(said.split("calls run by themselves").length).toBe(2);
  expect(open()).toBeLessThanOrEqual(before);
  await machine.sh(`rmdir ${BOARD}`);
  await untilTrue(() => callOf(machine), ({ ranBy }) => ranBy === "resident");
  await terminate(resident);
  await listening;
});

test("--idle and --dhcp exclude each other, and numbers have limits", async () => {
  await using machine = await openMachine();
  const refused = async (...options: string[]) => (await machine.run([PATCHBAY, "serve", ...options])).stderr;
  expect(await refused("--idle=5", "--dhcp")).toContain("--idle and --dhcp exclude each other: leases are renewed");
  expect(await refused("--idle=-1")).toContain("--idle takes a number from 0 to 31536000, not -1");
});

test("a worker says on the board what it does, and tells when calls wait two in a row", () => {
  using worker = new LoneWorker(`
    if (argv[1] === "wait") while (!isCallerGone()) Bun.sleepSync(1);
    return 0;`);
  worker.call();
  expect(worker.slot()).toEqual({ process: worker.pid, isBusy: false, calls: 1 });
  {
    using launcher = worker.ask(requestOf({ argv: ["/opt/loopback", "wait"] }));
    launcher.hear();
    expect(worker.slot()).toMatchObject({ process: worker.pid, isBusy: true });
  }
  const launchers = worker.stopped(() => [1, 2, 3].map(() => worker.ask(requestOf())));
  for (const launcher of launchers) {
    launcher.hear();
    launcher.hear();
    launcher[Symbol.dispose]();
  }
  worker.call();
  expect(worker.hasToldQueue()).toBe(true);
});

test("a worker that begins in a burst says in its first call that others wait, and not for one call", async () => {
  using worker = new LoneWorker("while (!isCallerGone()) Bun.sleepSync(1);");
  const launchers = worker.stopped(() => [1, 2].map(() => worker.ask(requestOf())));
  await untilTrue(() => worker.hasToldQueue(), (told) => told);
  for (const launcher of launchers) launcher[Symbol.dispose]();
  using alone = new LoneWorker("");
  alone.call();
  expect(alone.hasToldQueue()).toBe(false);
});
