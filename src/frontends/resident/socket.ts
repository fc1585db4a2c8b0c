/** The socket that launchers look for. */
import { Listener, whoListens } from "../../services/daemon/listener.ts";
import { DIRECTORY_OF_ROOT, RESIDENT_SOCKET } from "../../process/state-directory.ts";
import { makeDirectories } from "../../ffi/files.ts";
import { preparing, SOCK_SEQPACKET } from "../../ffi/socket/socket.ts";
import { judgeStateDirectory } from "../../process/state-file.ts";

export function socketHandedOver(): Listener | undefined {
  return Listener.handedOver(RESIDENT_SOCKET, SOCK_SEQPACKET);
}

/** Throws when another resident listens there. Whatever else has the name is replaced. */
export function openSocketOfResident(): Listener {
  const other = residentPid();
  if (other !== undefined) throw anotherResident(other);
  makeDirectories(DIRECTORY_OF_ROOT, 0o700);
  judgeStateDirectory(DIRECTORY_OF_ROOT);
  const listener = Listener.open(RESIDENT_SOCKET, SOCK_SEQPACKET, () => true);
  return preparing(listener.fd, () => {
    // Two that start at once may remove each other's.
    const pid = residentPid();
    if (pid !== process.pid || !listener.isInPlace) throw anotherResident(pid);
    return listener;
  });
}

/** The process that listens there: see `whoListens`. */
export function residentPid(): number | undefined {
  return whoListens(RESIDENT_SOCKET, SOCK_SEQPACKET);
}

function anotherResident(pid: number | undefined): Error {
  return new Error(`another resident (process ${pid || "unknown"}) listens on ${RESIDENT_SOCKET}`);
}
