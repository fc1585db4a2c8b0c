/**
 * A socket that systemd hands over (sd_listen_fds(3)). A resident hands its own to its successor in the same way.
 */
import { moveDescriptor, withDescriptorAt } from "../ffi/descriptors.ts";
import { environmentEntries, variable } from "../ffi/environment.ts";
import { execute } from "../ffi/execute.ts";
import { fromUtf8, utf8 } from "../ffi/libc.ts";
import { ServingSocket } from "./socket.ts";

/** Where sd_listen_fds(3) begins. */
const FIRST_HANDED_OVER = 3;
/** Above what workers get by number (worker.ts). */
const HIGH_ENOUGH = 16;

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
export function become(program: string, socket: ServingSocket, options: readonly string[]): never {
  const environment = [
    ...environmentEntries().filter((entry) => !fromUtf8(entry).startsWith("LISTEN_")),
    utf8(`LISTEN_PID=${process.pid}`),
    utf8("LISTEN_FDS=1"),
    utf8(`LISTEN_FDNAMES=${socket.isOwn ? OWN : FROM_MANAGER}`),
  ];
  return withDescriptorAt(
    FIRST_HANDED_OVER,
    socket.fd,
    () => execute({ path: program, argv: ["patchbay", "serve", ...options], environment }),
  );
}
