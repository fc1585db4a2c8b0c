/* The container of a pod whose work is done (release/image): it waits for the signal that ends it, and has a page or two
 * of memory until then. */
#include "linux.h"

enum { SIGINT_ = 2, SIGTERM_ = 15, BLOCK = 0 };

void _start(void) {
  uint64_t ends = 1ul << (SIGINT_ - 1) | 1ul << (SIGTERM_ - 1);
  /* Process 1 gets no signal that it neither handles nor blocks. */
  CALL4(rt_sigprocmask, BLOCK, &ends, 0, sizeof ends);
  /* Others interrupt it, such as SIGCONT. */
  while (CALL4(rt_sigtimedwait, &ends, 0, 0, sizeof ends) == -EINTR) {
  }
  leave(0);
}
