/** `dhcp daemon` as a process: its flags, its socket, its file with the process id, and its end. */
import { errorText } from "../../../cni/error.ts";
import { makeDirectories, removeFile, replaceFile } from "../../../ffi/files.ts";
import { SOCK_STREAM } from "../../../ffi/socket/socket.ts";
import { Daemon } from "../../daemon/daemon.ts";
import { countHandedOver, Listener, whoListens } from "../../daemon/listener.ts";
import { tellManager } from "../../daemon/notify.ts";
import { Journal } from "../journal/journal.ts";
import { type Flags, parseFlags, WrongFlags } from "./flags.ts";
import { say } from "./log.ts";
import { Service } from "./service.ts";

const NAME = "patchbay dhcp";
/** How long to wait for another process to close the journal. A DEL that finds no service opens it for a moment. */
const PATIENCE_MS = 2000, LOOK_MS = 20;

/** Returns the exit status. */
export function runDaemon(args: readonly string[]): number {
  // Errors of flags have the reference plugin's words.
  let prefix = "";
  try {
    const flags = parseFlags(args);
    prefix = `${NAME}: `;
    return holdLeases(flags, ["dhcp", "daemon", ...args]);
  } catch (error) {
    say(prefix + errorText(error));
    return error instanceof WrongFlags ? 2 : 1;
  }
}

/** `argv`: what began this process, which begins again with its signals blocked. */
export function holdLeases(flags: Flags, argv: string[]): number {
  const daemon = Daemon.begin(argv);
  // The journal is opened before the socket: of two that start at once, one takes nothing from the other.
  const journal = openJournal(flags.directory), listener = listenAt(flags.socketPath);
  try {
    if (flags.pidFile !== "") replaceFile(flags.pidFile, String(process.pid), { mode: 0o644 });
    const service = new Service(daemon, listener.fd, journal, flags);
    const isTold = tellManager("READY=1");
    if (!isTold) say(`${NAME}: holds the leases in ${flags.directory}, and listens on ${flags.socketPath}`);
    service.run();
    tellManager("STOPPING=1");
    service.close();
    return 0;
  } finally {
    listener.close();
    if (flags.pidFile !== "") removeFile(flags.pidFile);
  }
}

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

function listenAt(path: string): Listener {
  const count = countHandedOver();
  // The reference plugin's words.
  if (count > 1) throw new Error(`Too many (${count}) FDs passed through socket activation`);
  const given = Listener.handedOver(path, SOCK_STREAM);
  if (given !== undefined) return given;
  try {
    makeDirectories(path.slice(0, path.lastIndexOf("/")) || "/", 0o700);
    return Listener.open(path, SOCK_STREAM);
  } catch (error) {
    throw new Error(`Error getting listener: ${errorText(error)}${listenerAt(path)}`, { cause: error });
  }
}

function listenerAt(path: string): string {
  try {
    const pid = whoListens(path, SOCK_STREAM);
    return pid === undefined ? "" : `; process ${pid} listens there`;
  } catch {
    return "";
  }
}
