/** Connections to another address (tcp(7)). */
import { type InternetEnd, socketAddress } from "./internet-end.ts";
import { AF_INET, AF_INET6, connectWithin, openSocket, preparing, SOCK_STREAM } from "./socket.ts";

/** Throws SyscallError, as `connectWithin`. */
export function connectTcp(end: InternetEnd, patienceMs: number, subject: string): number {
  const family = end.address.length === 4 ? AF_INET : AF_INET6;
  return preparing(openSocket("socket", family, SOCK_STREAM), (fd) => {
    connectWithin(fd, socketAddress(end), patienceMs, subject);
    return fd;
  });
}
