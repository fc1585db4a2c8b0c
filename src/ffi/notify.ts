/** What a service says to the manager that started it (sd_notify(3)). */
import { variable } from "./environment.ts";
import { closeFile } from "./files.ts";
import { libc, utf8 } from "./libc.ts";
import { addressOf } from "./unix-socket.ts";

const AF_UNIX = 1, SOCK_DGRAM = 2, SOCK_CLOEXEC = 0o2000000, MSG_NOSIGNAL = 0x4000;

/** Returns whether there is a manager that wants to know. */
export function tellManager(state: "READY=1" | "STOPPING=1"): boolean {
  const path = variable("NOTIFY_SOCKET");
  if (path === undefined || !/^[/@]/.test(path)) return false;
  // A name that begins with @ is in no directory: unix(7), "Abstract sockets".
  const address = path.startsWith("@") ? addressOf(`\0${path.slice(1)}`).subarray(0, -1) : addressOf(path);
  const fd = libc.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), text = utf8(state);
  libc.sendto(fd, text, text.length, MSG_NOSIGNAL, address, address.length);
  closeFile(fd);
  return true;
}
