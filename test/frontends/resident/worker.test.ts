/**
 * A worker by itself: what a call gets of its caller, what the caller gets of the call, and what of both is left. What
 * it says of other processes is in reborn.test.ts and resident.test.ts.
 */
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ownProcessId } from "../../../src/process/calls.ts";
import { closeFile, O_RDONLY, openFile } from "../../../src/ffi/files.ts";
import { fromUtf8, libc } from "../../../src/ffi/libc.ts";
import { DECLINED, DONE, DONE_IN_FILES, READY } from "../../../src/frontends/resident/protocol.ts";
import { nameOf } from "../../../src/frontends/resident/protocol.ts";
import { LoneWorker, requestOf } from "../../support/lone-worker.ts";

const served = [READY, DONE], declined = { answers: [DECLINED], last: expect.anything() };

test("a call has the caller's arguments, environment, directory and stdin; the caller gets its outputs and status", () => {
  using worker = new LoneWorker(`
    const stdin = readFileSync(0, "utf8");
    say(JSON.stringify({ argv, directory: process.cwd(), variables: [variable("A"), variable("HOME")], stdin }));
    say("problem", 2);
    return 7;`);
  using folder = new Folder();
  const stdin = folder.opened("first line\nsecond line\n", "first line\n".length);
  const argv = ["/opt/loopback", "two words", ""];
  const { answers, last } = worker.call({ argv, environment: ["A=1=2"], directory: folder.path }, stdin);
  expect([answers, last.status, last.stderr]).toEqual([served, 7, "problem"]);
  const seen = { argv, directory: folder.path, variables: ["1=2", null], stdin: "second line\n" };
  expect(JSON.parse(last.stdout)).toEqual(seen);
  // The next one has nothing of it.
  const next = worker.call({ argv: ["loopback"], directory: "/" });
  expect(next.answers).toEqual(served);
  expect(JSON.parse(next.last.stdout)).toEqual({
    argv: ["loopback"],
    directory: "/",
    variables: [null, null],
    stdin: "",
  });
});

test("between two calls it is as it was before", () => {
  using worker = new LoneWorker(`for (const text of argv.slice(2)) say(text, Number(argv[1])); return 0;`);
  using folder = new Folder();
  const lengths = () =>
    [1, 2].map((fd) => /^pos:\s*(\d+)/m.exec(readFileSync(`/proc/${worker.pid}/fdinfo/${fd}`, "utf8"))![1]);
  const state = () => ({
    cwd: readlinkSync(`/proc/${worker.pid}/cwd`),
    lengths: lengths(),
    open: worker.descriptors(),
  });
  // A call that is not served before the first one ends has ended: it has closed its connection.
  worker.said("1", "a");
  expect(worker.said("1", "b")).toBe("b");
  const before = state(), stdin = folder.opened("text", 0);
  expect(before).toMatchObject({ cwd: "/", lengths: ["0", "0"], open: expect.arrayContaining(["0 /dev/null"]) });
  for (const [words, directory] of [[["1", "longer"], folder.path], [["2", "x"], "/tmp"], [[], "/"]] as const) {
    worker.call({ argv: ["/opt/loopback", ...words], directory }, stdin);
    expect(state()).toEqual(before);
  }
  worker.call({ argv: ["dhcp"], directory: folder.path }, stdin);
  expect(state()).toEqual(before);
});

test("outputs that are too long for a message come as files, which stay as they are", () => {
  using worker = new LoneWorker(`say(argv[1].repeat(Number(argv[2]))); say(argv[3] ?? "", 2); return 3;`);
  worker.call({ argv: ["/opt/loopback", "x", "1", "an earlier problem"] });
  const open = worker.descriptors();
  using launcher = worker.ask(requestOf({ argv: ["/opt/loopback", "longer ", "100000"] }));
  expect(launcher.hear().answer).toBe(READY);
  const { answer, status, files } = launcher.hear();
  expect([answer, status, files.length]).toEqual([DONE_IN_FILES, 3, 2]);
  expect(worker.said("later ", "2")).toBe("later later ");
  const texts = files.map((fd) => readFileSync(`/proc/self/fd/${fd}`, "utf8"));
  expect([texts[0] === "longer ".repeat(100_000), texts[1]]).toEqual([true, ""]);
  for (const fd of files) closeFile(fd);
  expect(worker.descriptors()).toEqual(open);
});

test("what is declined has not begun, and is counted by its reason", () => {
  using worker = new LoneWorker(
    `try { if (argv[1] === "leave") leaveToCaller("somebody"); } catch {} say("begun"); return 0;`,
  );
  using folder = new Folder();
  const stdin = folder.opened('first line\n{"ipam":{"type":"dhcp"}}', "first line\n".length);
  const other = [0, 255].map((byte) => ({ build: new Uint8Array(20).fill(byte) }));
  for (const request of [...other, { directory: "/nowhere" }, { argv: ["patchbay", "del", "net", "/dev/fd/9"] }]) {
    expect(worker.call(request)).toEqual(declined);
  }
  expect(worker.call({ argv: ["/opt/macvlan"] }, stdin)).toEqual(declined);
  // The caller reads it.
  const rest = new Uint8Array(100), length = Number(libc.read(stdin, rest, rest.length));
  expect(fromUtf8(rest.subarray(0, length))).toBe('{"ipam":{"type":"dhcp"}}');
  const begun = worker.call({ argv: ["/opt/loopback", "leave"] });
  expect([begun.answers, begun.last.stdout]).toEqual([[READY, DECLINED], ""]);
  expect(worker.said()).toBe("begun");
  const counts = { "build": 2, "directory": 1, "path of the process": 1, "DHCP": 1, "somebody": 1 };
  const declinedBecause = Object.entries(counts).map(([reason, times]) => [`declined: ${reason}`, times]);
  expect(worker.counts()).toEqual({ ...Object.fromEntries(declinedBecause), served: 1 });
});

test("a caller that is unlike the worker is declined", () => {
  const begin = `
    const { symbols } = (await import("bun:ffi")).dlopen("libc.so.6", { prctl: { args: ["i32", "u64", "u64", "u64", "u64"] } });
    symbols.prctl(38, 1, 0, 0, 0); // PR_SET_NO_NEW_PRIVS`;
  using worker = new LoneWorker("return 0;", begin);
  expect(worker.call()).toEqual(declined);
  expect(worker.counts()).toEqual({ "declined: confinement": 1 });
});

test("what is no request, or has two descriptors, is not answered; who says nothing keeps nobody waiting", () => {
  using worker = new LoneWorker("return 0;");
  worker.call();
  const open = worker.descriptors();
  using silent = worker.launcher();
  for (const [message, descriptors] of [[new Uint8Array(), 0], [new Uint8Array(40), 1], [requestOf(), 2]] as const) {
    using launcher = worker.askWith(Array(descriptors).fill(0), message);
    expect(launcher.hear().answer).toBeUndefined();
  }
  expect(silent.hear().answer).toBeUndefined();
  expect(worker.call().answers).toEqual(served);
  expect([worker.descriptors(), worker.counts()]).toEqual([open, { served: 2 }]);
});

test("a call knows its caller, and when it is gone; what is left to one that is gone counts as taken back alone", () => {
  using worker = new LoneWorker(`
    if (argv[1] === "wait") {
      while (!isCallerGone()) Bun.sleepSync(1);
      leaveToCaller("nobody");
    }
    say(JSON.stringify([callerId(), isCallerGone()]));
    return 0;`);
  expect(JSON.parse(worker.said())).toEqual([ownProcessId(), false]);
  // More than it waits for does not mean that it is gone.
  using _talkative = worker.ask(requestOf(), requestOf());
  worker.call();
  expect(worker.counts()).toEqual({ served: 3 });
  {
    using leaving = worker.ask(requestOf({ argv: ["/opt/loopback", "wait"] }));
    expect(leaving.hear().answer).toBe(READY);
  }
  worker.call();
  expect(worker.counts()).toEqual({ served: 4, "taken back": 1 });
});

test("a caller that has gone before READY is not served", () => {
  using worker = new LoneWorker(`
    if (argv[1] !== undefined) while (readdirSync(argv[1]).length === 0) Bun.sleepSync(1);
    say("begun");
    return 0;`);
  using folder = new Folder(), waiting = worker.ask(requestOf({ argv: ["/opt/loopback", folder.path] }));
  expect(waiting.hear().answer).toBe(READY);
  for (const argv of [["/opt/loopback"], ["patchbay", "dhcp"]]) {
    using _leaving = worker.ask(requestOf({ argv }));
  }
  closeFile(folder.opened("", 0));
  expect(waiting.hear().answer).toBe(DONE);
  worker.call();
  expect(worker.counts()).toEqual({ served: 2 });
});

test("modules forget after each call, and children that have ended are forgotten", () => {
  const begin = `
    import { ownNetns } from "${import.meta.dir}/../../../src/process/kept-open.ts";
    import { spawn } from "${import.meta.dir}/../../../src/ffi/spawn.ts";
    let ended = 0;
    forgetAfterCall(() => ended += isHandedOver() ? 100 : 1);`;
  using worker = new LoneWorker(
    `
    const open = () => readdirSync("/proc/self/fd").length, before = open();
    ownNetns.giveBack(ownNetns.take());
    const pid = spawn({ path: "/bin/true", argv: ["true"], environment: [], descriptors: [] });
    while (!/\\) Z /.test(readFileSync("/proc/" + pid + "/stat", "utf8"))) Bun.sleepSync(1);
    say(JSON.stringify({ ended, kept: open() - before, children: readFileSync("/proc/thread-self/children", "utf8") }));
    return 0;`,
    begin,
  );
  const calls = [1, 2, 3].map(() => JSON.parse(worker.said()));
  // What is kept from call to call is opened by the first one.
  expect(calls.map(({ ended, kept }) => ({ ended, kept }))).toEqual([0, 1, 2].map((ended) => ({
    ended,
    kept: ended === 0 ? 1 : 0,
  })));
  for (const { children } of calls) expect(children.trim().split(" ")).toHaveLength(1);
});

test("it ends when its resident has, before it serves the next caller", () => {
  using worker = new LoneWorker("return 0;");
  expect(worker.call().answers).toEqual(served);
  using _late = worker.stopped(() => {
    worker.closeLifeline();
    return worker.ask(requestOf());
  });
  expect(worker.end()).toEqual({ exitStatus: 0 });
  expect(worker.counts()).toEqual({ served: 1 });
});

test("it looks at its size every 256 calls, and makes room when it has grown", () => {
  using worker = new LoneWorker(`
    if (argv[1] === "grow") globalThis.kept = new Uint8Array(200 << 20).fill(1);
    return 0;`);
  const callAll = (count: number) => {
    const all = worker.stopped(() => Array.from({ length: count }, () => worker.ask(requestOf())));
    for (const one of all) {
      expect([one.hear().answer, one.hear().answer]).toEqual(served);
      one[Symbol.dispose]();
    }
  };
  // Who asks for nothing is no call; who asks wrongly is one.
  worker.launcher()[Symbol.dispose]();
  callAll(256);
  worker.ask(new Uint8Array(1))[Symbol.dispose]();
  worker.said("grow");
  callAll(254);
  expect(worker.end()).toEqual({ exitStatus: 0 });
  expect(worker.counts()).toEqual({ served: 256 + 255 });
});

test("the name of a call is the last part of the path that it was called by", () => {
  expect(["/opt/cni/bin/bridge", "bridge", "./bridge"].map((path) => nameOf({ argv: [path, "/x/y"] }))).toEqual(
    Array(3).fill("bridge"),
  );
});

class Folder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "patchbay-caller-"));
  private readonly open: number[] = [];

  /** A file that was read as far as `position`. */
  opened(text: string, position: number): number {
    writeFileSync(join(this.path, "stdin"), text);
    const fd = openFile(join(this.path, "stdin"), O_RDONLY);
    libc.read(fd, new Uint8Array(position), position);
    this.open.push(fd);
    return fd;
  }

  [Symbol.dispose](): void {
    for (const fd of this.open) closeFile(fd);
    rmSync(this.path, { recursive: true });
  }
}
