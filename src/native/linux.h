/* System calls without a C library, for x86-64 and arm64, and the few structures of the kernel's that its headers do
 * not give to programs. Each call returns what the kernel returns: a value, or an errno as a negative number. */
#pragma once

#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/poll.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)

static inline long call6(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

#elif defined(__aarch64__)

static inline long call6(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}

#else
#error "only x86-64 and arm64"
#endif

#define CALL(name, a, b, c, d, e, f) \
  call6(__NR_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define CALL0(name) CALL(name, 0, 0, 0, 0, 0, 0)
#define CALL1(name, a) CALL(name, a, 0, 0, 0, 0, 0)
#define CALL2(name, a, b) CALL(name, a, b, 0, 0, 0, 0)
#define CALL3(name, a, b, c) CALL(name, a, b, c, 0, 0, 0)
#define CALL4(name, a, b, c, d) CALL(name, a, b, c, d, 0, 0)

static inline _Noreturn void leave(int status) {
  for (;;) CALL1(exit_group, status);
}

static inline unsigned long length_of(const char *text) {
  unsigned long length = 0;
  while (text[length] != 0) length++;
  return length;
}

/* Also into a pipe that does not block. Ends at the first error. */
static inline int write_all(int fd, const char *bytes, unsigned long length) {
  while (length > 0) {
    long written = CALL3(write, fd, bytes, length);
    if (written == -EINTR) continue;
    if (written == -EAGAIN) {
      struct pollfd room = {fd, POLLOUT, 0};
      CALL(ppoll, &room, 1, 0, 0, 0, 0);
      continue;
    }
    if (written <= 0) return 0;
    bytes += written;
    length -= written;
  }
  return 1;
}

static inline void write_text(int fd, const char *text) { write_all(fd, text, length_of(text)); }

/* The compiler calls these for large copies. */
__attribute__((weak, used)) void *memset(void *to, int value, size_t length) {
  for (volatile char *at = to; length > 0; length--) *at++ = value;
  return to;
}

__attribute__((weak, used)) void *memcpy(void *to, const void *from, size_t length) {
  volatile char *at = to;
  for (const char *byte = from; length > 0; length--) *at++ = *byte++;
  return to;
}
