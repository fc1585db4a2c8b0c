/** Connections to another address (tcp(7)). */
import { EINPROGRESS, EINTR, ETIMEDOUT, SyscallError } from "../errno.ts";
import { lastErrno, libc } from "../libc.ts";
import { type InternetEnd, socketAddress } from "./internet-end.ts";
import { AF_INET, AF_INET6, limitWait, openSocket, preparing, SOCK_STREAM } from "./socket.ts";

/** Throws SyscallError: ETIMEDOUT when nobody answers in time. Sending has the same limit afterwards. */
export function connectTcp(end: InternetEnd, patienceMs: number, subject: string): number {
  const address = socketAddress(end), family = end.address.length === 4 ? AF_INET : AF_INET6;
  return preparing(openSocket("socket", family, SOCK_STREAM), (fd) => {
    limitWait(fd, "SO_SNDTIMEO", patienceMs);
    for (;;) {
      if (libc.connect(fd, address, address.length) === 0) return fd;
      const errno = lastErrno();
      if (errno !== EINTR) throw new SyscallError("connect", errno === EINPROGRESS ? ETIMEDOUT : errno, subject);
    }
  });
}
