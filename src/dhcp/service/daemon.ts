/** `dhcp daemon` as a process: its flags, its socket, its file with the process id, and its end. */
import { errorText } from "../../cni/error.ts";
import { tellManager } from "../../daemon/notify.ts";
import { variable } from "../../ffi/environment.ts";
import { closeFile, idAt, removeFile, replaceFile } from "../../ffi/files.ts";
import { endWith, openSignals, SIGTERM } from "../../ffi/signals.ts";
import { type Flags, parseFlags, WrongFlags } from "./flags.ts";
import { say } from "./log.ts";
import { beginWithSignalsBlocked, listeningSocket, openJournal, SIGNALS } from "./process.ts";
import { Service } from "./service.ts";

/** Set by a resident whose child this is: its end is the end of this process. */
const PARENT = "PATCHBAY_DHCP_PARENT";

const NAME = "patchbay dhcp";

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
  beginWithSignalsBlocked(argv);
  const parent = variable(PARENT);
  if (parent !== undefined) endWith(Number(parent), SIGTERM);
  // Before the socket: of two that start at once, one takes nothing from the other.
  const signals = openSignals(SIGNALS), journal = openJournal(flags.directory);
  const { fd, id } = listeningSocket(flags.socketPath);
  try {
    if (flags.pidFile !== "") replaceFile(flags.pidFile, String(process.pid), { mode: 0o644 });
    const service = new Service(fd, signals, journal, flags);
    const isTold = tellManager("READY=1");
    if (!isTold) say(`${NAME}: holds the leases in ${flags.directory}, and listens on ${flags.socketPath}`);
    service.run();
    tellManager("STOPPING=1");
    service.close();
    return 0;
  } finally {
    if (id !== undefined && idAt(flags.socketPath) === id) removeFile(flags.socketPath);
    if (flags.pidFile !== "") removeFile(flags.pidFile);
    closeFile(fd);
  }
}
