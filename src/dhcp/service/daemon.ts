/** `dhcp daemon` as a process: its flags, its socket, its file with the process id, and its end. */
import { errorText } from "../../cni/error.ts";
import { setNonblocking } from "../../ffi/descriptors.ts";
import { environmentEntries, variable } from "../../ffi/environment.ts";
import { execute } from "../../ffi/execute.ts";
import { closeFile, identify, makeDirectories, removeFile, replaceFile } from "../../ffi/files.ts";
import { fromUtf8, utf8 } from "../../ffi/libc.ts";
import { peerOf } from "../../ffi/message.ts";
import { tellManager } from "../../ffi/notify.ts";
import { blockSignals, endWith, openSignals, SIGHUP, SIGINT, SIGTERM } from "../../ffi/signals.ts";
import { connectTo, listenAt, listenOn } from "../../ffi/unix-socket.ts";
import { Journal } from "../journal/journal.ts";
import { type Flags, parseFlags, WrongFlags } from "./flags.ts";
import { say } from "./log.ts";
import { Service } from "./service.ts";

const SIGNALS = [SIGTERM, SIGINT, SIGHUP];
/** Set by a process that has blocked its signals, and has become what it is now. */
const PREPARED = "PATCHBAY_DHCP_PREPARED";
/** Set by a resident whose child this is: its end is the end of this process. */
const PARENT = "PATCHBAY_DHCP_PARENT";
/** Where sd_listen_fds(3) begins. */
const FIRST_HANDED_OVER = 3;
const PATIENCE_MS = 2000, LOOK_MS = 20;

/** Returns the exit status. */
export function runDaemon(args: readonly string[]): number {
  try {
    const flags = parseFlags(args);
    if (variable(PREPARED) !== String(process.pid)) prepare(args);
    const parent = variable(PARENT);
    if (parent !== undefined) endWith(Number(parent), SIGTERM);
    return serve(flags);
  } catch (error) {
    say(errorText(error));
    return error instanceof WrongFlags ? 2 : 1;
  }
}

/** Only a process that begins with its signals blocked has no thread that gets them (ffi/signals.ts). */
function prepare(args: readonly string[]): never {
  blockSignals(SIGNALS);
  const kept = environmentEntries().filter((entry) => !fromUtf8(entry).startsWith(`${PREPARED}=`));
  const environment = [...kept, utf8(`${PREPARED}=${process.pid}`)];
  execute({ path: "/proc/self/exe", argv: ["dhcp", "daemon", ...args], environment });
}

function serve(flags: Flags): number {
  // Before the socket: of two that start at once, one takes nothing from the other.
  const signals = openSignals(SIGNALS), journal = openJournal(flags.directory);
  const { fd, id } = listeningSocket(flags.socketPath);
  try {
    if (flags.pidFile !== "") replaceFile(flags.pidFile, String(process.pid), { mode: 0o644 });
    const service = new Service(fd, signals, journal, flags);
    tellManager("READY=1");
    service.run();
    tellManager("STOPPING=1");
    service.close();
    return 0;
  } finally {
    if (id !== undefined && isInPlace(flags.socketPath, id)) removeFile(flags.socketPath);
    if (flags.pidFile !== "") removeFile(flags.pidFile);
    closeFile(fd);
  }
}

/** Whoever deletes a container while no service runs has it for a moment. */
function openJournal(directory: string): Journal {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const journal = Journal.open(directory);
    if (journal !== undefined) return journal;
    if (performance.now() > deadline) {
      throw new Error(`process ${Journal.holderOf(directory)} holds the leases in ${directory}`);
    }
    Bun.sleepSync(LOOK_MS);
  }
}

/** `id` tells whether it is still in its place. One that systemd hands over has none: it stays there. */
function listeningSocket(path: string): { fd: number; id?: string } {
  const count = variable("LISTEN_PID") === String(process.pid) ? Number(variable("LISTEN_FDS")) : 0;
  // The reference plugin's words.
  if (count > 1) throw new Error(`Too many (${count}) FDs passed through socket activation`);
  if (count === 1) {
    setNonblocking(FIRST_HANDED_OVER);
    listenOn(FIRST_HANDED_OVER, path);
    return { fd: FIRST_HANDED_OVER };
  }
  try {
    makeDirectories(path.slice(0, path.lastIndexOf("/")) || "/", 0o700);
    return { fd: listenAt(path), id: identify(path, false).id };
  } catch (error) {
    throw new Error(`Error getting listener: ${errorText(error)}${listenerAt(path)}`, { cause: error });
  }
}

function listenerAt(path: string): string {
  try {
    const fd = connectTo(path), pid = peerOf(fd)?.pid;
    closeFile(fd);
    return pid === undefined ? "" : `; process ${pid} listens there`;
  } catch {
    return "";
  }
}

function isInPlace(path: string, id: string): boolean {
  try {
    return identify(path, false).id === id;
  } catch {
    return false;
  }
}
