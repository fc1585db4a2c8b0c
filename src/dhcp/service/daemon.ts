/** `dhcp daemon` as a process: its flags, its socket, its file with the process id, and its end. */
import { errorText } from "../../cni/error.ts";
import { setNonblocking } from "../../ffi/descriptors.ts";
import { environmentEntries, variable } from "../../ffi/environment.ts";
import { execute } from "../../ffi/execute.ts";
import { closeFile, identify, makeDirectories, removeFile, replaceFile } from "../../ffi/files.ts";
import { fromUtf8, utf8 } from "../../ffi/libc.ts";
import { tellManager } from "../../ffi/notify.ts";
import { blockSignals, endWith, openSignals, SIGHUP, SIGINT, SIGTERM } from "../../ffi/signals.ts";
import { listenAt, listenOn } from "../../ffi/unix-socket.ts";
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
  const signals = openSignals(SIGNALS), { fd, isOwn } = listeningSocket(flags.socketPath);
  const id = identify(flags.socketPath, false).id;
  try {
    if (flags.pidFile !== "") replaceFile(flags.pidFile, String(process.pid), { mode: 0o644 });
    const journal = Journal.open(flags.directory);
    if (journal === undefined) throw new Error(`another process holds the leases in ${flags.directory}`);
    const service = new Service(fd, signals, journal, flags);
    tellManager("READY=1");
    service.run();
    tellManager("STOPPING=1");
    service.close();
    return 0;
  } finally {
    if (isOwn && isInPlace(flags.socketPath, id)) removeFile(flags.socketPath);
    if (flags.pidFile !== "") removeFile(flags.pidFile);
    closeFile(fd);
  }
}

/** One that systemd hands over stays in its place. */
function listeningSocket(path: string): { fd: number; isOwn: boolean } {
  const count = variable("LISTEN_PID") === String(process.pid) ? Number(variable("LISTEN_FDS")) : 0;
  // The reference plugin's words.
  if (count > 1) throw new Error(`Too many (${count}) FDs passed through socket activation`);
  if (count === 1) {
    setNonblocking(FIRST_HANDED_OVER);
    listenOn(FIRST_HANDED_OVER, path);
    return { fd: FIRST_HANDED_OVER, isOwn: false };
  }
  try {
    makeDirectories(path.slice(0, path.lastIndexOf("/")) || "/", 0o700);
    return { fd: listenAt(path), isOwn: true };
  } catch (error) {
    throw new Error(`Error getting listener: ${errorText(error)}`, { cause: error });
  }
}

function isInPlace(path: string, id: string): boolean {
  try {
    return identify(path, false).id === id;
  } catch {
    return false;
  }
}
