/** A daemon's socket: its own or a service manager's, in its place or not, and whose it is. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { countHandedOver, handOver, Listener, whoListens } from "../../../src/services/daemon/listener.ts";
import { environmentEntries, takeEnvironment } from "../../../src/ffi/environment.ts";
import { closeFile, O_RDONLY, openFile } from "../../../src/ffi/files.ts";
import { libc, utf8 } from "../../../src/ffi/libc.ts";
import { poll, POLLIN } from "../../../src/ffi/poll.ts";
import { sendSignal, SIGKILL } from "../../../src/ffi/signals.ts";
import { AF_UNIX, openSocket, SOCK_SEQPACKET, SOCK_STREAM } from "../../../src/ffi/socket/socket.ts";
import { unixAddress } from "../../../src/ffi/socket/unix.ts";
import { openPidfd, openPipe, spawn, waitFor } from "../../../src/ffi/spawn.ts";

const sources = resolve(import.meta.dir, "../../../src");
let directory: string, path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "patchbay-listener-"));
  path = join(directory, "socket");
});
afterEach(() => rmSync(directory, { recursive: true }));

test("a socket of its own is removed when it is closed, unless something else is in its place", () => {
  const listener = Listener.open(path, SOCK_SEQPACKET);
  expect([listener.isOwn, listener.isInPlace]).toEqual([true, true]);
  listener.close();
  expect([existsSync(path), listener.isInPlace]).toEqual([false, false]);

  const replaced = Listener.open(path, SOCK_STREAM);
  renameSync(path, `${path}.before`);
  expect(replaced.isInPlace).toBe(false);
  writeFileSync(path, "");
  expect(replaced.isInPlace).toBe(false);
  replaced.close();
  expect(existsSync(path)).toBe(true);
});

test("who listens: nobody, or this process; asking leaves nothing open", () => {
  expect(whoListens(path, SOCK_STREAM)).toBeUndefined();
  const listener = Listener.open(path, SOCK_STREAM), before = readdirSync("/proc/self/fd");
  expect([whoListens(path, SOCK_STREAM), whoListens(path, SOCK_SEQPACKET)]).toEqual([process.pid, undefined]);
  expect(readdirSync("/proc/self/fd")).toEqual(before);
  listener.close();
});

test("who has ended does not listen, though others hold the socket", () => {
  const fd = bound(SOCK_STREAM), [stdin, held] = openPipe(), [heard, stdout] = openPipe();
  const script = `
    import { listenOn } from "${sources}/ffi/socket/unix.ts";
    listenOn(3, "");
    console.log("listens");
    await Bun.stdin.text();`;
  const argv = ["bun", "-e", script], environment = environmentEntries();
  const pid = spawn({ path: process.execPath, argv, environment, descriptors: [stdin, stdout, 2, fd] });
  closeFile(stdout);
  expect(libc.read(heard, new Uint8Array(8), 8)).toBe(8);
  expect(whoListens(path, SOCK_STREAM)).toBe(pid);
  const pidfd = openPidfd(pid);
  sendSignal(pid, SIGKILL);
  poll([{ fd: pidfd, events: POLLIN }], Infinity);
  // A zombie, until somebody asks how it ended.
  expect([existsSync(`/proc/${pid}/stat`), whoListens(path, SOCK_STREAM)]).toEqual([true, undefined]);
  waitFor(pid);
  expect([existsSync(`/proc/${pid}/stat`), whoListens(path, SOCK_STREAM)]).toEqual([false, undefined]);
  for (const one of [fd, stdin, held, heard, pidfd]) closeFile(one);
});

test("sockets are handed over to a process by its number", () => {
  const counted = (LISTEN_PID: string, LISTEN_FDS?: string) => {
    takeEnvironment(
      utf8(`LISTEN_PID=${LISTEN_PID}\0${LISTEN_FDS === undefined ? "" : `LISTEN_FDS=${LISTEN_FDS}\0`}`),
    );
    return countHandedOver();
  };
  const own = String(process.pid);
  expect([counted(own, "1"), counted(own, "3"), counted("1", "3")]).toEqual([1, 3, 0]);
  expect([counted(own), counted(own, "many"), counted("", "1")]).toEqual([0, 0, 0]);
  expect(Listener.handedOver(path, SOCK_STREAM)).toBeUndefined();
});

/** A socket with its name, on which nobody listens. */
function bound(type: number): number {
  const fd = openSocket("socket", AF_UNIX, type), address = unixAddress(path);
  expect(libc.bind(fd, address, address.length)).toBe(0);
  return fd;
}

/** What a process makes of the socket that a manager has given to it. */
function taken(fd: number, { name = "", type = SOCK_SEQPACKET, before = "" } = {}) {
  const script = `
    import { readFileSync, existsSync, rmSync } from "node:fs";
    import { handOver, Listener, whoListens } from "${sources}/services/daemon/listener.ts";
    import { environmentEntries, takeEnvironment } from "${sources}/ffi/environment.ts";
    takeEnvironment(new TextEncoder().encode("LISTEN_PID=" + process.pid + "\\0LISTEN_FDS=1\\0LISTEN_FDNAMES=${name}\\0"));
    ${before}
    try {
      const listener = Listener.handedOver("${path}", ${type}), { fd, isOwn, isInPlace } = listener;
      const flags = Number(/^flags:\\s*(\\d+)/m.exec(readFileSync("/proc/self/fdinfo/" + fd, "utf8"))[1].replace(/^0*/, "0o"));
      const seen = {
        isOwn, isInPlace, isMovedUp: fd >= 16 && !existsSync("/proc/self/fd/3"), isNonblocking: (flags & 0o4000) !== 0,
        isListening: whoListens("${path}", ${type}) === process.pid, names: handOver(listener).LISTEN_FDNAMES,
      };
      listener.close();
      console.log(JSON.stringify({ ...seen, isLeft: existsSync("${path}"), isOpen: existsSync("/proc/self/fd/" + fd) }));
    } catch (error) {
      console.log(JSON.stringify(error.message));
    }`;
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", script], {
    stdio: ["ignore", "pipe", "pipe", fd],
  });
  closeFile(fd);
  return JSON.parse(stdout.toString() || JSON.stringify(stderr.toString()));
}

const seen = { isInPlace: true, isMovedUp: true, isNonblocking: true, isListening: true, isOpen: false };

test("a manager's socket is listened on, and stays; one that the program before it had is its own", () => {
  expect(taken(bound(SOCK_SEQPACKET))).toEqual({ ...seen, isOwn: false, isLeft: true, names: "patchbay-given" });
  rmSync(path);
  const own = { ...seen, isOwn: true, isLeft: false, names: "patchbay-own" };
  expect(taken(bound(SOCK_SEQPACKET), { name: "patchbay-own" })).toEqual(own);
});

test("a socket that was given is not in its place where there is none, or another process listens", () => {
  const name = "patchbay-own",
    elsewhere = { ...seen, isOwn: true, isInPlace: false, isListening: false, names: name };
  expect(taken(bound(SOCK_SEQPACKET), { name, before: `rmSync("${path}");` })).toEqual({
    ...elsewhere,
    isLeft: false,
  });
  const fd = bound(SOCK_SEQPACKET);
  rmSync(path);
  const other = Listener.open(path, SOCK_SEQPACKET);
  expect(taken(fd, { name })).toEqual({ ...elsewhere, isLeft: true });
  other.close();
});

test("what was given is refused when it is a socket of another type, or none", () => {
  const given = "the socket that was given";
  expect(taken(bound(SOCK_STREAM))).toBe(`${given} is not of the type SOCK_SEQPACKET`);
  rmSync(path);
  expect(taken(bound(SOCK_SEQPACKET), { type: SOCK_STREAM })).toBe(`${given} is not of the type SOCK_STREAM`);
  expect(taken(openFile("/dev/null", O_RDONLY))).toContain(`${given}: `);
});

test("what is handed over is for this process, one socket, by whose it is", () => {
  const listener = Listener.open(path, SOCK_STREAM);
  expect(handOver(listener)).toEqual({
    LISTEN_PID: String(process.pid),
    LISTEN_FDS: "1",
    LISTEN_FDNAMES: "patchbay-own",
  });
  listener.close();
});
