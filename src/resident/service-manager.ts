/**
 * What systemd and a resident say to each other: a socket that is handed over (sd_listen_fds(3)) and a word that the
 * resident is ready (sd_notify(3)). A resident hands its socket to its successor in the same way.
 */
import { moveDescriptor, withDescriptorAt } from "../ffi/descriptors.ts";
import { environmentBlock, variable } from "../ffi/environment.ts";
import { execute } from "../ffi/execute.ts";
import { closeFile } from "../ffi/files.ts";
import { fromUtf8, libc, utf8 } from "../ffi/libc.ts";
import { addressOf, ServingSocket } from "./socket.ts";

/** Where sd_listen_fds(3) begins. */
const FIRST_HANDED_OVER = 3;
/** Above what workers get by number (worker.ts). */
const HIGH_ENOUGH = 16;
const AF_UNIX = 1, SOCK_DGRAM = 2, SOCK_CLOEXEC = 0o2000000, MSG_NOSIGNAL = 0x4000;

/** LISTEN_FDNAMES of a process that has become what it is through `become`. */
const OWN = "patchbay-own", FROM_MANAGER = "patchbay-given";

export interface HandedOver {
  socket: ServingSocket;
  /** This process has prepared itself, and has become what it is now. */
  isPrepared: boolean;
}

export function takeHandedOver(): HandedOver | undefined {
  if (variable("LISTEN_PID") !== String(process.pid) || !(Number(variable("LISTEN_FDS")) >= 1)) return undefined;
  const name = variable("LISTEN_FDNAMES"), fd = moveUp(FIRST_HANDED_OVER);
  return { socket: ServingSocket.adopt(fd, name === OWN), isPrepared: name === OWN || name === FROM_MANAGER };
}

/** So that no number of ours is one that a worker gets something else by. */
export function moveUp(fd: number): number {
  return moveDescriptor(fd, HIGH_ENOUGH);
}

/** This process goes on as `patchbay serve` of the program, and listens on the same socket. */
export function become(program: string, socket: ServingSocket, workers: number): never {
  const environment = [
    ...environmentEntries().filter((entry) => !fromUtf8(entry).startsWith("LISTEN_")),
    utf8(`LISTEN_PID=${process.pid}`),
    utf8("LISTEN_FDS=1"),
    utf8(`LISTEN_FDNAMES=${socket.isOwn ? OWN : FROM_MANAGER}`),
  ];
  return withDescriptorAt(
    FIRST_HANDED_OVER,
    socket.fd,
    () => execute({ path: program, argv: ["patchbay", "serve", `--workers=${workers}`], environment }),
  );
}

function environmentEntries(): Uint8Array[] {
  const block = environmentBlock(), entries: Uint8Array[] = [];
  for (let start = 0, end = block.indexOf(0); end >= 0; start = end + 1, end = block.indexOf(0, start)) {
    entries.push(block.subarray(start, end));
  }
  return entries;
}

/** Nothing, where nobody wants to know. */
export function tellManager(state: "READY=1" | "STOPPING=1"): void {
  const path = variable("NOTIFY_SOCKET");
  if (path === undefined || !/^[/@]/.test(path)) return;
  // A name that begins with @ is in no directory: unix(7), "Abstract sockets".
  const address = path.startsWith("@") ? addressOf(`\0${path.slice(1)}`).subarray(0, -1) : addressOf(path);
  const fd = libc.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), text = utf8(state);
  libc.sendto(fd, text, text.length, MSG_NOSIGNAL, address, address.length);
  closeFile(fd);
}
