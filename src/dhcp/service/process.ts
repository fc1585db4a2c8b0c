/** What a process that holds leases begins with: its signals, its journal, its socket. */
import { errorText } from "../../cni/error.ts";
import { setNonblocking } from "../../ffi/descriptors.ts";
import { environmentEntries, variable } from "../../ffi/environment.ts";
import { closeFile, idAt, makeDirectories } from "../../ffi/files.ts";
import { fromUtf8, utf8 } from "../../ffi/libc.ts";
import { blockSignals, SIGHUP, SIGINT, SIGTERM } from "../../ffi/signals.ts";
import { peerOf } from "../../ffi/socket/peer.ts";
import { connectTo, listenAt, listenOn } from "../../ffi/socket/unix.ts";
import { execute } from "../../ffi/spawn.ts";
import { Journal } from "../journal/journal.ts";

export const SIGNALS = [SIGTERM, SIGINT, SIGHUP];
/** Set by a process that has blocked its signals, and has become what it is now. */
const PREPARED = "PATCHBAY_DHCP_PREPARED";
/** Where sd_listen_fds(3) begins. */
const FIRST_HANDED_OVER = 3;
const PATIENCE_MS = 2000, LOOK_MS = 20;

/** Only a process that begins with its signals blocked has no thread that gets them (ffi/signals.ts): it becomes one. */
export function beginWithSignalsBlocked(argv: string[]): void {
  if (variable(PREPARED) === String(process.pid)) return;
  blockSignals(SIGNALS);
  const kept = environmentEntries().filter((entry) => !fromUtf8(entry).startsWith(`${PREPARED}=`));
  const environment = [...kept, utf8(`${PREPARED}=${process.pid}`)];
  execute({ path: "/proc/self/exe", argv, environment });
}

/** Whoever deletes a container while no service runs has it for a moment. */
export function openJournal(directory: string): Journal {
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
export function listeningSocket(path: string): { fd: number; id?: string } {
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
    return { fd: listenAt(path), id: idAt(path) };
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
