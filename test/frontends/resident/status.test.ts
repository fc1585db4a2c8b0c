/** `patchbay serve --status` of workers that do not answer or end, and of a resident that becomes another one. */
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { afterAll, expect, test } from "bun:test";
import { linkTarget } from "../../../src/ffi/directory-entries.ts";
import { namesIn } from "../../../src/ffi/files.ts";
import { isListening } from "../../support/listening.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { writeOtherBuild } from "../../support/other-build.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { childrenOf, SOCKET, startResident } from "../../support/resident.ts";
import { statusOf, untilServed } from "../../support/resident-status.ts";
import { untilTrue } from "../../support/until-true.ts";

const folder = mkdtempSync(`${tmpdir()}/status-`);
afterAll(() => rmSync(folder, { recursive: true }));

/** The status by the program, which stops when it has opened the path. The result lets it go on, and returns what it says. */
async function stoppedAt(path: string, machine: Machine, program = PATCHBAY) {
  const stopping = ["-P", path, "-e", "inject=open,openat:signal=STOP:when=1"];
  const command = [program, "serve", "--status", "--json"];
  const status = machine.start(["strace", "-D", "-qq", "-o", "/dev/null", ...stopping, ...command]);
  const opened = () => namesIn(`/proc/${status.pid}/fd`).map((name) => linkTarget(`/proc/${status.pid}/fd/${name}`));
  await untilTrue(opened, (paths) => paths.includes(path));
  return async () => {
    process.kill(status.pid, "SIGCONT");
    const [stdout, stderr] = await Promise.all([status.stdout.text(), status.stderr.text(), status.exited]);
    return { stderr, ...JSON.parse(stdout || "{}") };
  };
}

test("the status needs no worker that answers", async () => {
  await using machine = await openMachine();
  await using _resident = await startResident(machine);
  const { workers } = await untilServed(machine);
  for (const { pid } of workers) process.kill(pid, "SIGSTOP");
  expect((await statusOf(machine)).workers.map(({ pid }) => pid)).toEqual(workers.map(({ pid }) => pid));
  for (const { pid } of workers) process.kill(pid, "SIGCONT");
});

test("a worker that ends has no memory", async () => {
  await using machine = await openMachine();
  await using resident = await startResident(machine, 1);
  const { pid } = (await untilServed(machine)).workers[0]!, goOn = await stoppedAt(`/proc/${pid}/status`, machine);
  process.kill(pid, "SIGKILL");
  await untilTrue(() => childrenOf(resident.pid), (children) => !children.includes(pid));
  expect(await goOn()).toMatchObject({ stderr: "", workers: [{ pid, memoryKib: 0 }] });
});

test("the workers of a resident are not those of the build that it becomes", async () => {
  await using machine = await openMachine();
  const own = `${folder}/own`, build = writeOtherBuild(`${folder}/next`, 1);
  copyFileSync(PATCHBAY, own);
  await using resident = await startResident(machine, 1, own);
  await untilServed(machine, own);
  // The status has looked at the workers by then.
  const goOn = await stoppedAt(`/proc/${resident.pid}`, machine, build);
  await machine.sh(`mv ${build} ${own}`);
  await untilServed(machine, own);
  expect(await goOn()).toMatchObject({ stderr: "", build: "another", problem: "it is of another build" });
});

test("within another root directory the status says that calls from there are declined", async () => {
  await using machine = await openMachine();
  await machine.sh("mkdir /run/root; mount --rbind / /run/root; mount --make-rprivate /run/root");
  await using _resident = await startResident(machine, 1);
  await untilServed(machine);
  const { code, stdout } = await machine.run(["chroot", "/run/root", PATCHBAY, "serve", "--status", "--json"]);
  expect([code, JSON.parse(stdout)]).toMatchObject([1, { declinesFromHere: "namespace" }]);
  expect((await machine.run(["chroot", "/", PATCHBAY, "serve", "--status"])).code).toBe(0);
});

test.each([[["--fork"]], [["--fork", "--mount-proc"]]])("from another process namespace (%j)", async (options) => {
  await using machine = await openMachine();
  await using _resident = await startResident(machine, 1);
  await untilServed(machine);
  expect(await machine.run(["unshare", "--pid", ...options, PATCHBAY, "serve", "--status"])).toMatchObject({
    code: 1,
    stdout: `a process of a process namespace that is not seen here listens on ${SOCKET}\n` +
      "Calls run by themselves. This command belongs where the resident runs: in its process namespace.\n",
  });
});

test("a variable that turns nothing off is noted, and changes nothing", async () => {
  await using machine = await openMachine();
  await using _resident = await startResident(machine, 1);
  await untilServed(machine);
  const noted = async (setting: string) => {
    const { code, stdout } = await machine.run([PATCHBAY, "serve", "--status"], {
      env: { PATCHBAY_RESIDENT: setting },
    });
    return [code, stdout.split("\n").filter((line) => line.includes("PATCHBAY_RESIDENT"))];
  };
  for (const setting of ["0", "no", "OFF"]) {
    const note = `PATCHBAY_RESIDENT is "${setting}" here, which says nothing: only "off" does`;
    expect(await noted(setting)).toEqual([0, [note]]);
  }
  expect(await noted("")).toEqual([0, []]);
});

/** Root without these cannot enter a directory whose mode forbids it, as on a network's file system. */
const POORER = ["override", "read_search"].map((name) => `-dac_${name}`).join(",");
const asPoorer = ["setpriv", `--inh-caps=${POORER}`, `--bounding-set=${POORER}`, "--ambient-caps=-all"];

test("the status is of calls from here: of its variables and its directory", async () => {
  await using machine = await openMachine();
  const resident = machine.start(["setpriv", "--pdeathsig", "KILL", ...asPoorer, PATCHBAY, "serve", "--workers=1"]);
  await untilTrue(() => isListening(machine, SOCKET) && childrenOf(resident.pid).length === 1, Boolean);
  const from = async (prepare: string) => {
    const words = [
      ...asPoorer,
      "sh",
      "-c",
      `${prepare}; ${PATCHBAY} inspect >&2; exec ${PATCHBAY} serve --status --json`,
    ];
    const { stdout } = await machine.run(words);
    const { problem, served, declined } = JSON.parse(stdout);
    return { problem, served, declined };
  };
  await untilTrue(() => from("cd /"), ({ problem }) => problem === undefined);
  const { served } = await from("cd /"), none = { declined: {} };
  expect(await from("export PATCHBAY_RESIDENT=off")).toEqual({
    ...none,
    problem: "PATCHBAY_RESIDENT is off here",
    served,
  });
  const gone = "mkdir -p /run/gone; cd /run/gone; rmdir /run/gone";
  // On a busy machine a call may run by itself.
  expect(await untilTrue(() => from(gone), (now) => now.served > served)).toMatchObject({
    ...none,
    problem: undefined,
  });
  await machine.sh("mkdir /run/closed");
  // Each try opens it first: another directory would be closed otherwise.
  const closed = `chmod 755 /run/closed && cd /run/closed && chmod 000 .`;
  expect(await untilTrue(() => from(closed), (now) => Object.keys(now.declined).length > 0)).toEqual({
    problem: "no worker can enter the working directory /run/closed (EACCES)",
    served: served + 1,
    declined: { directory: 1 },
  });
  resident.kill("SIGTERM");
  await resident.exited;
});
