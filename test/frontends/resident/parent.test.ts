/** The process that keeps a resident's workers and socket: what it says, watches, waits for, and does not leave open. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fromUtf8, libc } from "../../../src/ffi/libc.ts";
import { receiveMessage } from "../../../src/ffi/socket/message.ts";
import { AF_UNIX, openSocket, SOCK_DGRAM, SOCK_NONBLOCK } from "../../../src/ffi/socket/socket.ts";
import { unixAddress } from "../../../src/ffi/socket/unix.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { childrenOf, hasOwnGroup, isWaiting, SOCKET, startResident, terminate } from "../../support/resident.ts";
import { untilServed } from "../../support/resident-status.ts";
import { untilTrue } from "../../support/until-true.ts";
import { untilServed as untilACallIsServed } from "../../support/served.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

const folder = mkdtempSync(join(tmpdir(), "patchbay-manager-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A service manager that hears what it is told. */
function openManager() {
  const path = join(folder, "notify"), fd = openSocket("socket", AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK);
  const address = unixAddress(path), room = new Uint8Array(100);
  if (libc.bind(fd, address, address.length) !== 0) throw new Error("bind");
  return { path, hear: () => fromUtf8(room.subarray(0, Math.max(0, receiveMessage(fd, room)))) };
}

/** The inodes of what it watches. */
function watchedBy(pid: number): number[] {
  const texts = readdirSync(`/proc/${pid}/fdinfo`).map((fd) => readFileSync(`/proc/${pid}/fdinfo/${fd}`, "utf8"));
  return [...texts.join("").matchAll(/^inotify wd:\S+ ino:(\S+)/gm)].map(([, inode]) => parseInt(inode!, 16));
}

const descriptorsOf = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;

async function inodesOf(machine: Machine, ...paths: string[]): Promise<number[]> {
  return (await machine.sh(`stat -c %i ${paths.join(" ")}`)).trim().split("\n").map(Number);
}

test("what is taken from it comes back, is said once, and leaves nothing open; then it sleeps", async () => {
  await using machine = await openMachine();
  const manager = openManager();
  const command = ["env", `NOTIFY_SOCKET=${manager.path}`, PATCHBAY, "serve", "--workers=1", "--rehearsals=0"];
  await using resident = machine.start(["setpriv", "--pdeathsig", "KILL", ...command]);
  const { pid } = resident;
  let said = "";
  const listening = (async () => {
    for await (const chunk of resident.stderr) said += new TextDecoder().decode(chunk);
  })();
  expect(await untilTrue(manager.hear, (said) => said !== "")).toBe("READY=1");
  expect((await untilServed(machine)).workers.length).toBe(1);
  await untilTrue(() => isWaiting(pid), Boolean);
  expect(childrenOf(pid).map(hasOwnGroup)).toEqual([true]);
  const open = descriptorsOf(pid);

  const watched = [dirname(PATCHBAY), dirname(SOCKET), SOCKET];
  const losses = [
    `rm ${SOCKET}`,
    "until rm -rf /run/patchbay; do :; done 2>/dev/null",
    () => `kill -KILL ${childrenOf(pid).join(" ")}`,
  ];
  for (const loss of losses) {
    await machine.sh(typeof loss === "string" ? loss : loss());
    expect((await untilServed(machine)).workers.length).toBe(1);
    await untilACallIsServed(machine);
    const inodes = await inodesOf(machine, ...watched);
    await untilTrue(() => watchedBy(pid), (found) => inodes.every((inode) => found.includes(inode)));
    // Workers of before end after their calls.
    await untilTrue(() => descriptorsOf(pid), (count) => count === open);
    await untilTrue(() => isWaiting(pid), Boolean);
  }
  await machine.sh(`until rm -f ${SOCKET} && mkdir ${SOCKET}; do :; done 2>/dev/null`);
  await untilTrue(() => said, (all) => all.includes("calls run by themselves: "));
  await untilTrue(() => isWaiting(pid), Boolean);
  await machine.sh(`until rmdir ${SOCKET}; do :; done 2>/dev/null`);
  await untilServed(machine);
  await untilTrue(() => descriptorsOf(pid), (count) => count === open);

  await terminate(resident);
  expect([manager.hear(), manager.hear()]).toEqual(["STOPPING=1", ""]);
  await listening;
  const lines = said.split("\n"), again = `${SOCKET} was removed; the resident listens on a new one`;
  expect(lines.filter((line) => line !== `patchbay: ${again}`)).toEqual([
    expect.stringMatching(/^patchbay: calls run by themselves: /),
    "",
  ]);
  expect(lines.length).toBeGreaterThanOrEqual(5);
});

test("a worker that cannot be started is said, tried again, and leaves nothing open", async () => {
  await using machine = await openMachine();
  await using resident = await startResident(machine, 1);
  const { pid } = resident;
  await untilServed(machine);
  const open = descriptorsOf(pid), [worker] = childrenOf(pid);
  const inject = ["-e", "trace=clone,clone3,vfork", "-e", "inject=clone,clone3,vfork:error=EAGAIN:when=1"];
  const tracer = machine.start(["strace", "-qq", "-o", "/dev/null", ...inject, "-p", String(pid)]);
  await untilTrue(() => readFileSync(`/proc/${pid}/status`, "utf8"), (text) => /TracerPid:\t[1-9]/.test(text));
  process.kill(worker!, "SIGKILL");
  await untilTrue(() => childrenOf(pid), (children) => children.length === 1 && children[0] !== worker);
  tracer.kill("SIGTERM");
  await tracer.exited;
  expect((await untilServed(machine)).workersReplaced).toBe(1);
  expect(descriptorsOf(pid)).toBe(open);
  await terminate(resident);
  const lines = (await resident.stderr.text()).trim().split("\n").slice(1);
  expect(lines).toEqual([
    expect.stringMatching(/^patchbay: cannot start a worker: .*resource temporarily unavailable/),
  ]);
});
