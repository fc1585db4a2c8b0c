/** `netavark dhcp-proxy` as a process: where its socket and its files are, and when it ends. */
import { closeFile, exists, idAt, identify, isDirectory, removeFile } from "../../ffi/files.ts";
import { tellManager } from "../../ffi/notify.ts";
import { openSignals } from "../../ffi/signals.ts";
import { beginWithSignalsBlocked, listeningSocket, openJournal, SIGNALS } from "../../dhcp/service/process.ts";
import { Service } from "../../dhcp/service/service.ts";
import { log } from "../wire/log.ts";
import { Proxy } from "./proxy.ts";

export interface ProxyOptions {
  /** For the socket, unless it has a path of its own, the file of leases and the journal. */
  directory: string;
  /** Of the socket, or of the directory that it is in. */
  socket: string | undefined;
  /** In seconds: until a lease is given up, and without calls and leases until the process ends; 0 for never. */
  patience: number;
  idleAfter: number;
}

/** About as netavark's: its own tests count the messages that a server gets which takes three seconds. */
const FIRST_PAUSE_S = 1.5;
const SOCKET = "nv-proxy.sock", LEASES = "nv-proxy.lease", JOURNAL = "nv-proxy.journal";

/** Returns the exit status. `args`: those of the process. */
export function runProxy({ directory, socket, patience, idleAfter }: ProxyOptions, args: readonly string[]): number {
  beginWithSignalsBlocked(["netavark", ...args]);
  // Before the socket: of two that start at once, one takes nothing from the other.
  const signals = openSignals(SIGNALS), journal = openJournal(`${directory}/${JOURNAL}`);
  const path = socketPath(directory, socket), { fd, id } = listeningSocket(path);
  try {
    const front = (desk: ConstructorParameters<typeof Proxy>[1]) =>
      new Proxy(fd, desk, `${directory}/${LEASES}`, idleAfter === 0 ? Infinity : idleAfter);
    const settings = {
      hostPrefix: "",
      broadcast: false,
      timeout: FIRST_PAUSE_S,
      longestPause: undefined,
      patience,
      servesOwnNamespace: true,
    };
    const service = new Service(front, signals, journal, settings);
    tellManager("READY=1");
    service.run();
    tellManager("STOPPING=1");
    service.close();
    log("info", "netavark::commands::dhcp_proxy", "the leases stay, for the next proxy");
    return 0;
  } finally {
    if (id !== undefined && idAt(path) === id) removeFile(path);
    closeFile(fd);
  }
}

function socketPath(directory: string, socket: string | undefined): string {
  if (socket === undefined) return `${directory}/${SOCKET}`;
  return exists(socket) && isDirectory(identify(socket)) ? `${socket}/${SOCKET}` : socket;
}
