/** Signals that a process blocks and reads, and that its children get or do not get; changes that a watch tells of. */
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { createServer } from "node:net";
import { expect, test } from "bun:test";
import { poll, POLLIN } from "../../src/ffi/poll.ts";
import { Watch } from "../../src/ffi/watch.ts";

const ffi = `${import.meta.dir}/../../src/ffi`;

/** Another thread of the runtime would get a signal that only the first one blocks. */
const BLOCKED = ["env", "--block-signal=TERM,CHLD"];

/** In a process of its own. */
async function run(body: string, before: string[] = []): Promise<string> {
  const script = `
    import * as signals from "${ffi}/signals.ts";
    import { spawn, waitFor, forgetEnded } from "${ffi}/spawn.ts";
    import { poll, POLLIN } from "${ffi}/poll.ts";
    const { SIGTERM, SIGHUP, SIGCHLD } = signals;
    ${body}
  `;
  const child = Bun.spawn([...before, process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
  const text = await child.stdout.text();
  expect(await child.exited).toBe(0);
  return text;
}

/** sh(1) unblocks signals for what it starts. */
const child = `
  const mask = (more) => waitFor(spawn({
    path: "/bin/grep", argv: ["grep", "^SigBlk", "/proc/self/status"], environment: [], descriptors: [undefined, 1, 2],
    ...more,
  }));
  const wait = (more) => waitFor(spawn({
    path: "/bin/sh", argv: ["sh", "-c", "cut -d' ' -f5 /proc/$$/stat; echo $$"],
    environment: [], descriptors: [undefined, 1, 2], ...more,
  }));
`;

test("blocked signals wait to be read, and children begin with none blocked, unless they inherit them", async () => {
  const lines = (await run(
    `
    ${child}
    signals.blockSignals([SIGTERM, SIGCHLD]);
    const fd = signals.openSignals([SIGTERM, SIGCHLD]);
    console.log(JSON.stringify(signals.readSignals(fd)));
    signals.sendSignal(process.pid, SIGTERM);
    mask({ inheritsBlockedSignals: true });
    console.log(JSON.stringify(signals.readSignals(fd).sort()));
    mask();
  `,
    BLOCKED,
  )).trim().split("\n");
  expect(lines).toEqual([
    "[]",
    "SigBlk:\t0000000000014000",
    "[15,17]",
    "SigBlk:\t0000000000000000",
  ]);
});

test("a child may have a process group of its own", async () => {
  const lines = (await run(`${child} wait({}); wait({ hasOwnGroup: true });`)).trim().split("\n");
  const [group, pid, ownGroup, ownPid] = lines;
  expect(group).not.toBe(pid);
  expect(ownGroup).toBe(ownPid);
});

test("what a process was told to ignore is known", async () => {
  const ask = `console.log(signals.isIgnored(SIGHUP), signals.isIgnored(SIGTERM));`;
  expect(await run(ask)).toBe("false false\n");
  expect(await run(ask, ["nohup"])).toBe("true false\n");
});

test("a signal that another process has a handler for is known", async () => {
  const handling = Bun.spawn(["bash", "-c", "trap : HUP; echo ready; read"], { stdin: "pipe", stdout: "pipe" });
  await handling.stdout.getReader().read();
  const text = await run(`
    const caught = (pid) => [SIGHUP, SIGTERM].map((signal) => signals.isCaught(signal, pid));
    console.log(JSON.stringify([caught(${handling.pid}), caught(1).length]));
    try { caught(2 ** 22 + 1) } catch (error) { console.log(error.message) }
  `);
  expect(text).toBe("[[true,false],2]\nopen /proc/4194305/status: no such file or directory\n");
  await handling.stdin.end();
  await handling.exited;
});

test("the children that have ended are named once, and whether others run", async () => {
  const lines = (await run(`
    const start = (script) =>
      spawn({ path: "/bin/sh", argv: ["sh", "-c", script], environment: [], descriptors: [0, 1, 2] });
    const next = () => { for (;;) { const found = forgetEnded(); if (found.ended.length > 0) return found; } };
    const long = start("exec sleep 1000"), short = start("exit 3");
    const first = next(), second = forgetEnded();
    signals.sendSignal(long, signals.SIGKILL);
    const third = next();
    console.log(JSON.stringify({ first, second, third, short, long }));
  `)).trim();
  const { first, second, third, short, long } = JSON.parse(lines);
  expect({ first, second, third }).toEqual({
    first: { ended: [short], areRunning: true },
    second: { ended: [], areRunning: true },
    third: { ended: [long], areRunning: false },
  });
});

test("exit statuses are kept, also where the caller ignored its children's ends", async () => {
  const body = `
    const end = (status) =>
      waitFor(spawn({ path: "/bin/sh", argv: ["sh", "-c", "exit " + status], environment: [], descriptors: [0, 1, 2] }));
    console.log(JSON.stringify([end(3), end(0)]));`;
  for (const before of [[], ["env", "--ignore-signal=CHLD"]]) {
    expect(JSON.parse(await run(body, before))).toEqual([{ exitStatus: 3 }, { exitStatus: 0 }]);
  }
});

test("children whose end does not matter are noticed when they have ended", async () => {
  const lines = (await run(`
    import { areLeftRunning, leaveRunning } from "${ffi}/spawn.ts";
    const start = (script) =>
      spawn({ path: "/bin/sh", argv: ["sh", "-c", script], environment: [], descriptors: [0, 1, 2] });
    const state = (pid) => require("node:fs").existsSync("/proc/" + pid);
    const none = areLeftRunning(), long = start("exec sleep 1000"), short = start("exit 0");
    leaveRunning(long);
    leaveRunning(short);
    while (areLeftRunning() && state(short));
    const some = areLeftRunning();
    signals.sendSignal(long, signals.SIGKILL);
    while (areLeftRunning());
    console.log(JSON.stringify([none, some, state(short), state(long), areLeftRunning()]));
  `)).trim();
  expect(JSON.parse(lines)).toEqual([false, true, false, false, false]);
});

test("a process ends with its parent, also with one that has ended already", async () => {
  const body = (parent: string) => `
    signals.endWith(${parent}, SIGTERM);
    console.log("goes on");`;
  expect(await run(body("process.ppid"))).toBe("goes on\n");
  const script = `import * as signals from "${ffi}/signals.ts";
    signals.endWith(process.ppid + 1, signals.SIGTERM);
    require("${ffi}/poll.ts").poll([], 60_000);`;
  expect(Bun.spawnSync([process.execPath, "-e", script]).signalCode).toBe("SIGTERM");
  // The parent ends when its child has said that it asks for that.
  const child = `require("${ffi}/signals.ts").endWith(process.ppid, 15);
    console.log(process.pid);
    require("${ffi}/poll.ts").poll([], 60_000);`;
  const parent = `const child = Bun.spawn([process.execPath, "-e", process.env.CHILD], { stdout: "pipe" });
    console.log(new TextDecoder().decode((await child.stdout.getReader().read()).value));
    process.exit(0);`;
  const { stdout } = Bun.spawnSync([process.execPath, "-e", parent], { env: { ...process.env, CHILD: child } });
  const pid = Number(stdout);
  const hasEnded = () => {
    try {
      return readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
    } catch {
      return true;
    }
  };
  while (!hasEnded()) await Bun.sleep(5);
  expect(pid).toBeGreaterThan(0);
});

const isTold = (watch: Watch) => {
  const told = poll([{ fd: watch.fd, events: POLLIN }], 0).size > 0;
  watch.forgetChanges();
  return told;
};

test("a watch tells of entries, and of a socket that loses its name", async () => {
  const folder = mkdtempSync(`${tmpdir()}/watch-`), watch = new Watch();
  watch.entries(folder);
  expect(isTold(watch)).toBe(false);
  writeFileSync(`${folder}/file`, "");
  expect(isTold(watch)).toBe(true);
  renameSync(`${folder}/file`, `${folder}/other`);
  expect(isTold(watch)).toBe(true);

  const below = `${folder}/below`;
  mkdirSync(below);
  const server = createServer().listen(`${below}/socket`);
  await new Promise((resolve) => server.once("listening", resolve));
  const itself = new Watch();
  itself.itself(below);
  itself.itself(`${below}/socket`);
  writeFileSync(`${below}/file`, "");
  expect(isTold(itself)).toBe(false);
  rmSync(`${below}/socket`);
  expect(isTold(itself)).toBe(true);
  renameSync(below, `${folder}/moved`);
  expect(isTold(itself)).toBe(true);
  server.close();
  rmSync(folder, { recursive: true });
});
