/* What needs no runtime: VERSION, a call without a command, and a call by a name that is no plugin's. The build has written
 * the answers down (shared.h). src/engine/exec-plugin.ts gives the same to calls with anything unusual. */
#pragma once

#include "call.h"

/* No variable of CNI's is there twice, and each is a name, "=" and ASCII. */
static int is_ordinary(char **environment) {
  for (char **at = environment; *at != 0; at++) {
    if (!begins_with(*at, "CNI_")) continue;
    unsigned long length = 0, name = 0;
    for (; (*at)[length] != 0; length++) {
      if ((*at)[length] & 0x80) return 0;
      if (name == 0 && (*at)[length] == '=') name = length;
    }
    if (name == 0) return 0;
    for (char **other = environment; other < at; other++) {
      unsigned long same = 0;
      while (same <= name && (*other)[same] == (*at)[same]) same++;
      if (same > name) return 0;
    }
  }
  return 1;
}

/* Nothing that JSON would have to quote. */
static int is_plain(const char *name) {
  for (; *name != 0; name++) {
    int is_letter = (*name | 0x20) >= 'a' && (*name | 0x20) <= 'z';
    if (!is_letter && !(*name >= '0' && *name <= '9') && *name != '-' && *name != '_' && *name != '.') return 0;
  }
  return 1;
}

static const char *meant_plugin(const char *name, const char *list) {
  if (is_listed(name, NO_PLUGINS_LIST)) return 0;
  for (const char *project = PROJECTS_LIST; *project != 0; project += length_of(project) + 1) {
    const char *plugin = project + length_of(project) + 1;
    if (is_same(name, project)) name = plugin;
    project = plugin;
  }
  for (; *list != 0; list += length_of(list) + 1) {
    if (means_plugin(name, list)) return list;
  }
  return 0;
}

struct reply {
  int fd, status;
  struct buffer text;
};

static int fill(struct reply *reply, int fd, int status, const char *one, const char *two, const char *three) {
  reply->fd = fd, reply->status = status, reply->text.used = 0;
  return append(&reply->text, one, length_of(one)) && append(&reply->text, two, length_of(two)) &&
         append(&reply->text, three, length_of(three));
}

/* Returns whether the first code has a reply to the call. */
static int reply_of(const struct call *call, struct reply *reply) {
  if (call->argument_count != 1 || !is_ordinary(call->environment)) return 0;
  const char *name = base_name(call->arguments[0]), *command = value_of(call, "CNI_COMMAND"), *plugin;
#define REPLY(plugins, document, about)                                        \
  if ((plugin = meant_plugin(name, plugins)) != 0) {                           \
    if (*command == 0) return fill(reply, 2, 0, ABOUT, plugin, about);         \
    return is_same(command, "VERSION") && fill(reply, 1, 0, document, "", ""); \
  }
  FOR_PLUGINS(REPLY)
#undef REPLY
  return *command != 0 && is_plain(name) && fill(reply, 1, 1, NO_PLUGIN, name, NO_PLUGIN_END);
}

/* When nobody takes it, the runtime says so. */
static void give(const struct reply *reply) {
  struct disposition before;
  ignore_broken_pipes(&before);
  if (write_all(reply->fd, reply->text.bytes, reply->text.used)) leave(reply->status);
  set_broken_pipes(&before);
}
