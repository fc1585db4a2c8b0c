/* Sends one netlink message and waits for its answer, in place of a process that need not wait (src/ffi/reaper.ts).
 *
 * Descriptor 3 is the socket, descriptor 4 has the message. Everything else is closed, so that an engine that reads our
 * output sees the end of it. The exit status is the errno of the kernel's answer. */
#include "linux.h"

enum { SOCKET = 3, MESSAGE = 4 };
/* Linux: struct nlmsghdr is 16 bytes, and struct nlmsgerr begins with the errno. */
enum { HEADER_BYTES = 16 };

void _start(void) {
  char bytes[65536];
  CALL3(close_range, MESSAGE + 1, ~0u, 0);
  long length = CALL4(pread64, MESSAGE, bytes, sizeof bytes, 0);
  if (length > 0) length = CALL(sendto, SOCKET, bytes, length, 0, 0, 0);
  if (length > 0) length = CALL(recvfrom, SOCKET, bytes, sizeof bytes, 0, 0, 0);
  if (length < 0) leave(-length);
  leave(-*(int32_t *)(bytes + HEADER_BYTES));
}
