/** `dhcp daemon` from its flags to its end, in this process: what is there while it serves, and what stays. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, mock, spyOn, test } from "bun:test";
import { Daemon } from "../../../../src/services/daemon/daemon.ts";
import * as listeners from "../../../../src/services/daemon/listener.ts";
import * as manager from "../../../../src/services/daemon/notify.ts";
import { Journal } from "../../../../src/services/dhcp/journal/journal.ts";
import { holdLeases, runDaemon } from "../../../../src/services/dhcp/service/daemon.ts";
import { parseFlags } from "../../../../src/services/dhcp/service/flags.ts";
import { SyscallError } from "../../../../src/ffi/errno.ts";
import { SOCK_STREAM } from "../../../../src/ffi/socket/socket.ts";
import { listenAt } from "../../../../src/ffi/socket/unix.ts";
import * as terminal from "../../../../src/ffi/terminal.ts";

let directory: string, socket: string, leases: string, pidFile: string;
/** What the service manager is told, what is said, and what began the process. */
let told: string[], said: string[], begun: readonly string[][];
let hasManager: boolean, whileServing: () => void;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "patchbay-daemon-"));
  [socket, leases, pidFile] = ["run/dhcp.sock", "leases", "pid"].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  [told, said, begun, hasManager, whileServing] = [[], [], [], false, () => {}];
  const daemon = {
    wait: () => {
      whileServing();
      return { ready: new Set<number>(), mustEnd: true };
    },
  };
  spyOn(Daemon, "begin").mockImplementation((argv) => {
    begun = [...begun, [...argv]];
    return daemon as unknown as Daemon;
  });
  spyOn(manager, "tellManager").mockImplementation((state) => {
    told.push(state);
    return hasManager;
  });
  spyOn(terminal, "printToStderr").mockImplementation((line) => void said.push(line));
});
afterEach(() => {
  mock.restore();
  rmSync(directory, { recursive: true });
});

/** A process that fails ends with its leases held. In this one, the next has others. */
const elsewhere = () => ["-datadir", join(directory, "others")];
const args = (...more: string[]) => ["-socketpath", socket, "-datadir", leases, ...more];
const openFiles = () => readdirSync("/proc/self/fd").length;

test("while it serves it listens, holds the leases and has told so; then nothing of it is left but the leases", () => {
  let during: unknown[] = [];
  whileServing = () => {
    during = [listeners.whoListens(socket, SOCK_STREAM), Journal.isHeld(leases), readFileSync(pidFile, "utf8"), [
      ...told,
    ]];
  };
  runDaemon(args("-pidfile", pidFile));
  const before = openFiles();
  expect(runDaemon(args("-pidfile", pidFile))).toBe(0);
  expect(during).toEqual([process.pid, true, String(process.pid), ["READY=1", "STOPPING=1", "READY=1"]]);
  expect(told.slice(2)).toEqual(["READY=1", "STOPPING=1"]);
  expect([existsSync(socket), Journal.isHeld(leases), existsSync(pidFile)]).toEqual([false, false, false]);
  // The alarm is the process's.
  expect(openFiles()).toBe(before + 1);
  expect(begun[0]).toEqual(["dhcp", "daemon", ...args("-pidfile", pidFile)]);
  expect(statSync(join(directory, "run")).mode & 0o777).toBe(0o700);
  expect(said[0]).toBe(`patchbay dhcp: holds the leases in ${leases}, and listens on ${socket}`);
});

test("who has a service manager says no more in the log; without a flag there is no file", () => {
  hasManager = true;
  whileServing = () => expect(existsSync(pidFile)).toBe(false);
  expect(runDaemon(args())).toBe(0);
  expect(said.filter((line) => line.includes("holds"))).toEqual([]);
});

test("wrong flags end it with 2 and the reference plugin's words, everything else with 1 and our name", () => {
  expect([runDaemon(["-nothing"]), said.pop()]).toEqual([2, expect.stringMatching(/^flag provided but not defined/)]);
  expect([runDaemon(["-pidfile", "x"]), said.pop()]).toEqual([1, 'Error writing pidfile "x": path not absolute']);
  writeFileSync(join(directory, "file"), "");
  expect(runDaemon(["-socketpath", socket, "-datadir", join(directory, "file")])).toBe(1);
  expect(said.pop()).toStartWith("patchbay dhcp: ");
  expect(existsSync(socket)).toBe(false);
});

test("where somebody else listens, or holds the leases, it says who", () => {
  runDaemon(args());
  const before = said.length;
  listenAt(socket);
  expect([runDaemon(args()), said.slice(before)]).toEqual([
    1,
    [`patchbay dhcp: Error getting listener: bind ${socket}: address already in use; process ${process.pid} listens there`],
  ]);
  expect(listeners.whoListens(socket, SOCK_STREAM)).toBe(process.pid);
  spyOn(listeners, "whoListens").mockImplementation(() => {
    throw new SyscallError("connect", 13);
  });
  runDaemon(args(...elsewhere()));
  expect(said.at(-1)).toBe(`patchbay dhcp: Error getting listener: bind ${socket}: address already in use`);
});

test("it waits for a moment for the leases, because a DEL may have opened them", () => {
  let looks = 0, now = 0;
  spyOn(Journal, "holderOf").mockImplementation(() => "7");
  spyOn(performance, "now").mockImplementation(() => now);
  spyOn(Bun, "sleepSync").mockImplementation((ms) => {
    looks++;
    now += ms as number;
  });
  const open = spyOn(Journal, "open").mockImplementation(() => undefined);
  expect([runDaemon(args()), said.at(-1), looks]).toEqual([
    1,
    `patchbay dhcp: process 7 holds the leases in ${leases}`,
    101,
  ]);
  expect(existsSync(socket)).toBe(false);
  open.mockRestore();
  expect(runDaemon(args())).toBe(0);
});

test("a socket that is handed over is the one; of several none is", () => {
  const count = spyOn(listeners, "countHandedOver").mockImplementation(() => 2);
  expect([runDaemon(args()), said.at(-1)]).toEqual([
    1,
    "patchbay dhcp: Too many (2) FDs passed through socket activation",
  ]);
  count.mockImplementation(() => 1);
  const closed: string[] = [],
    given = { fd: 0, close: () => void closed.push("closed") } as unknown as listeners.Listener;
  spyOn(listeners.Listener, "handedOver").mockImplementation(() => given);
  expect([runDaemon(args(...elsewhere())), closed, existsSync(socket)]).toEqual([0, ["closed"], false]);
});

test("what ends the service with an error leaves no file and no socket", () => {
  whileServing = () => {
    throw new Error("a defect");
  };
  expect(() => holdLeases(parseFlags(args("-pidfile", pidFile)), [])).toThrow("a defect");
  expect([existsSync(pidFile), existsSync(socket)]).toEqual([false, false]);
});
