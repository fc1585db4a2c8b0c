/** What a service says to the manager that started it (sd_notify(3)). */
import { variable } from "../../ffi/environment.ts";
import { closeFile } from "../../ffi/files.ts";
import { libc, utf8 } from "../../ffi/libc.ts";
import { AF_UNIX, MSG_NOSIGNAL, openSocket, SOCK_DGRAM } from "../../ffi/socket/socket.ts";
import { unixAddress } from "../../ffi/socket/unix.ts";

/** Returns whether there is a manager that wants to know. */
export function tellManager(state: "READY=1" | "STOPPING=1"): boolean {
  const path = variable("NOTIFY_SOCKET");
  if (path === undefined || !/^[/@]/.test(path)) return false;
  const address = unixAddress(path.replace(/^@/, "\0")),
    fd = openSocket("socket", AF_UNIX, SOCK_DGRAM),
    text = utf8(state);
  libc.sendto(fd, text, text.length, MSG_NOSIGNAL, address, address.length);
  closeFile(fd);
  return true;
}
