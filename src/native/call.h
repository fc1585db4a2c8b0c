/* A call, as the kernel gave it to the process, and its words. */
#pragma once

#include "linux.h"
#include "shared.h"

struct call {
  int argument_count;
  char **arguments, **environment;
};

static int is_same(const char *one, const char *other) {
  while (*one != 0 && *one == *other) one++, other++;
  return *one == *other;
}

static int is_listed(const char *text, const char *list) {
  for (; *list != 0; list += length_of(list) + 1) {
    if (is_same(text, list)) return 1;
  }
  return 0;
}

static int begins_with(const char *text, const char *start) {
  while (*start != 0 && *text == *start) text++, start++;
  return *start == 0;
}

static const char *base_name(const char *path) {
  const char *name = path;
  for (; *path != 0; path++) {
    if (*path == '/') name = path + 1;
  }
  return name;
}

static const char *value_of(const struct call *call, const char *name) {
  unsigned long length = length_of(name);
  for (char **at = call->environment; *at != 0; at++) {
    if (begins_with(*at, name) && (*at)[length] == '=') return *at + length + 1;
  }
  return "";
}

/* The rule of src/cni/plugin-name.ts: the name may have a prefix, as in buildkit-cni-host-local. */
static int means_plugin(const char *name, const char *plugin) {
  if (is_same(name, plugin)) return 1;
  for (; *name != 0; name++) {
    if (*name == '-' && is_same(name + 1, plugin)) return 1;
  }
  return 0;
}

/* What is longer than a message runs by itself. */
struct buffer {
  uint32_t used;
  char bytes[MESSAGE_BYTES];
};

static int append(struct buffer *buffer, const void *bytes, unsigned long length) {
  if (length > sizeof buffer->bytes - buffer->used) return 0;
  memcpy(buffer->bytes + buffer->used, bytes, length);
  buffer->used += length;
  return 1;
}

/* What the kernel does with a signal (struct sigaction). */
struct disposition {
  void *handler;
  unsigned long flags;
  void *restorer;
  unsigned long mask;
};

enum { SIGPIPE_ = 13 };

static void set_broken_pipes(const struct disposition *to) { CALL4(rt_sigaction, SIGPIPE_, to, 0, 8); }

/* A reader that is gone is an error of write(2). */
static void ignore_broken_pipes(struct disposition *before) {
  struct disposition ignore = {.handler = (void *)1};
  CALL4(rt_sigaction, SIGPIPE_, &ignore, before, 8);
}
