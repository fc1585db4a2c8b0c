/* Hands a call to the resident (src/frontends/resident), and ends with its result.
 *
 * Nothing here may fail a call: whatever does not go as expected means that the call runs by itself. The launcher alone
 * decides who runs it: a resident begins when it has said READY, and a launcher that does not wait any longer stops it
 * from saying so. */
#pragma once

#include "call.h"

#include <linux/fs.h>
#include <linux/memfd.h>
#include <linux/signal.h>
#include <linux/stat.h>

enum how {
  /* Nobody has begun it. */
  ALONE,
  /* A resident began it, and was gone before its answer: what it began must be undone first. */
  AGAIN,
};

enum {
  AF_UNIX_ = 1,
  SOCK_SEQPACKET_ = 5,
  SOL_SOCKET_ = 1,
  SO_PEERCRED_ = 17,
  SO_PEERPIDFD_ = 77,
  SCM_RIGHTS_ = 1,
  SHUT_READING = 0,
  MSG_NOSIGNAL_ = 0x4000,
  MSG_CMSG_CLOEXEC_ = 0x40000000,
  SIGCHLD_ = 17,
  CLOSE_ON_EXEC = 02000000,
  NONBLOCKING = 04000,
};

/* How long a call waits for READY. After PROMPT_MS it goes on only while a worker will take a call soon or others have all
 * turns, and looks every BETWEEN_LOOKS_MS: a hundred that looked more often would take a third of a processor. A hundred
 * calls at once need much less than PATIENCE_MS. */
enum { PATIENCE_MS = 1000, PROMPT_MS = 1, BETWEEN_LOOKS_MS = 40 };
/* So many calls that nobody takes run by themselves at a time, for each processor. */
enum { TURNS_A_PROCESSOR = 1 };
/* A worker that has had its call for longer may have it for long: this call takes less by itself. */
enum { LONG_CALL_MS = 100 };
/* The same limit as readAll in src/ffi/files.ts: the runtime refuses what is longer. */
enum { STDIN_BYTES = 64 * 1024 * 1024 };
/* How often a call is tried that may fail once, where giving up would lose what was read. */
enum { TRIES = 100 };

/* The resident is gone, or has said nothing in time. */
enum { GONE = 0, SILENT = -1 };
struct request {
  uint32_t protocol, argument_count, variable_count;
  uint8_t build[BUILD_BYTES];
};
struct answered {
  uint32_t answer, status, stdout_bytes, stderr_bytes;
};

/* What a worker does: src/frontends/resident/board.ts has the same. */
struct slot {
  uint32_t process, since_ms, calls, begun;
};

struct io {
  void *base;
  unsigned long length;
};
struct message {
  void *name;
  uint32_t name_length;
  struct io *parts;
  unsigned long part_count;
  void *control;
  unsigned long control_length;
  uint32_t flags;
};
/* struct cmsghdr with up to two descriptors. */
struct rights {
  unsigned long length;
  int level, type;
  int descriptors[2];
};

static int append_texts(struct buffer *buffer, char **texts, uint32_t *count) {
  for (*count = 0; texts[*count] != 0; ++*count) {
    if (!append(buffer, texts[*count], length_of(texts[*count]) + 1)) return 0;
  }
  return 1;
}

/* The request: its head, the working directory, the arguments, the environment. */
static int write_request(struct buffer *buffer, const struct call *call, const uint8_t *build) {
  struct request request = {.protocol = PROTOCOL};
  memcpy(request.build, build, sizeof request.build);
  buffer->used = sizeof request;
  long directory = CALL2(getcwd, buffer->bytes + buffer->used, 4096);
  if (directory <= 0 || buffer->bytes[buffer->used] != '/') return 0;
  buffer->used += directory;
  if (!append_texts(buffer, call->arguments, &request.argument_count)) return 0;
  if (!append_texts(buffer, call->environment, &request.variable_count)) return 0;
  memcpy(buffer->bytes, &request, sizeof request);
  return 1;
}

/* Appends to the file without moving where it is read from. */
static int append_to_file(int file, const char *bytes, unsigned long length, unsigned long at) {
  for (int tries = 0; length > 0 && tries < TRIES;) {
    long written = CALL4(pwrite64, file, bytes, length, at);
    if (written <= 0) {
      tries++;
      continue;
    }
    bytes += written, length -= written, at += written;
  }
  return length == 0;
}

/* Copies what is left of stdin into the file. 0 when nothing could be read: nothing is lost, and the runtime gets the
 * same error. */
static int copy_stdin(int file, struct buffer *buffer) {
  for (unsigned long copied = 0; copied <= STDIN_BYTES;) {
    long length = CALL3(read, 0, buffer->bytes, sizeof buffer->bytes);
    if (length == -EAGAIN) {
      struct pollfd more = {0, POLLIN, 0};
      CALL(ppoll, &more, 1, 0, 0, 0, 0);
    } else if (length < 0 && length != -EINTR) {
      return copied > 0;
    } else if (length == 0 || (length > 0 && !append_to_file(file, buffer->bytes, length, copied))) {
      break;
    } else if (length > 0) {
      copied += length;
    }
  }
  return 1;
}

/* Makes stdin something that can be read twice: by the resident, and by us should it die; and that nobody can change. */
static int keep_stdin(struct buffer *buffer, long *offset) {
  *offset = CALL3(lseek, 0, 0, SEEK_CUR);
  if (*offset >= 0) return 1;
  /* Stdin is closed, and what is opened next would take its place. */
  if (*offset == -EBADF) return 0;
  int file = CALL2(memfd_create, "stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return 0;
  int is_kept = copy_stdin(file, buffer);
  for (int tries = 0; is_kept && CALL3(dup3, file, 0, 0) < 0 && tries < TRIES;) tries++;
  if (is_kept) *offset = 0;
  int is_sealed = CALL3(fcntl, file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) >= 0;
  CALL1(close, file);
  return is_kept && is_sealed;
}

/* Copies the text with its NUL, and returns where that is. */
static char *join(char *to, const char *text) {
  unsigned long length = length_of(text);
  memcpy(to, text, length + 1);
  return to + length;
}

static char *join_number(char *to, uint32_t number) {
  char digit[] = {'0' + number % 10, 0};
  return join(number < 10 ? to : join_number(to, number / 10), digit);
}

/* Returns 0 for a process that has ended, or is hidden. */
static int shares_namespace(uint32_t process, const char *name) {
  char path[64], own[64] = {0}, theirs[64] = {0};
  join(join(path, "/proc/self/ns/"), name);
  CALL4(readlinkat, AT_FDCWD, path, own, sizeof own - 1);
  join(join(join_number(join(path, "/proc/"), process), "/ns/"), name);
  CALL4(readlinkat, AT_FDCWD, path, theirs, sizeof theirs - 1);
  return *own != 0 && is_same(own, theirs);
}

/* The process that listens there gets our environment and our stdin, and what it answers is the call's result. The kernel
 * tells which process began to listen: the resident, or the service manager that starts it. That has not ended when we have
 * looked (pidfd), so we have looked at no later process with its number. */
static int is_ours(int resident) {
  struct {
    uint32_t pid, user, group;
  } peer;
  struct pollfd listener = {-1, POLLIN, 0};
  struct {
    int64_t seconds, nanoseconds;
  } now = {0, 0};
  uint32_t peer_length = sizeof peer, pidfd_length = sizeof listener.fd;
  if (CALL(getsockopt, resident, SOL_SOCKET_, SO_PEERCRED_, &peer, &peer_length, 0) < 0) return 0;
  if (peer.user != (uint32_t)CALL0(geteuid)) return 0;
  long held = CALL(getsockopt, resident, SOL_SOCKET_, SO_PEERPIDFD_, &listener.fd, &pidfd_length, 0);
  /* Linux before 6.5 has no such descriptor, and ppoll ignores -1. */
  if (held < 0 && held != -ENOPROTOOPT) return 0;
  int is_like_us = shares_namespace(peer.pid, "mnt") && shares_namespace(peer.pid, "user");
  is_like_us = is_like_us && CALL(ppoll, &listener, 1, &now, 0, 0, 0) == 0;
  if (held >= 0) CALL1(close, listener.fd);
  return is_like_us;
}

static int connect_resident(void) {
  struct {
    uint16_t family;
    char path[sizeof SOCKET_PATH];
  } address = {AF_UNIX_, SOCKET_PATH};
  int resident = CALL3(socket, AF_UNIX_, SOCK_SEQPACKET_ | CLOSE_ON_EXEC | NONBLOCKING, 0);
  if (resident < 0) return -1;
  if (CALL3(connect, resident, &address, sizeof address) >= 0 && is_ours(resident)) return resident;
  CALL1(close, resident);
  return -1;
}

static int send_request(int resident, struct buffer *buffer, int with_stdin) {
  struct io part = {buffer->bytes, buffer->used};
  struct rights rights = {.length = 20, .level = SOL_SOCKET_, .type = SCM_RIGHTS_, .descriptors = {0}};
  struct message message = {.parts = &part, .part_count = 1};
  if (with_stdin) message.control = &rights, message.control_length = 24;
  return CALL3(sendmsg, resident, &message, MSG_NOSIGNAL_) == (long)buffer->used;
}

/* The next answer, GONE, or SILENT after `patience_ms`; `used` is the length of it. Forever patient, it takes no other
 * failure for an end: what was begun there goes on. */
static int receive(int resident, struct buffer *buffer, struct rights *rights, int patience_ms) {
  for (;;) {
    struct pollfd ready = {resident, POLLIN, 0};
    struct {
      int64_t seconds, nanoseconds;
    } patience = {patience_ms / 1000, (patience_ms % 1000) * 1000000L};
    long found = CALL(ppoll, &ready, 1, patience_ms < 0 ? 0 : &patience, 0, 0, 0);
    if (found == -EINTR || (found < 0 && patience_ms < 0)) continue;
    if (found == 0) return SILENT;
    if (found < 0) return GONE;
    struct io part = {buffer->bytes, sizeof buffer->bytes};
    struct message message = {.parts = &part, .part_count = 1};
    if (rights != 0) message.control = rights, message.control_length = sizeof *rights;
    long length = CALL3(recvmsg, resident, &message, MSG_CMSG_CLOEXEC_);
    if (length == -EINTR || length == -EAGAIN || length == -ENOMEM) continue;
    if (length < (long)sizeof(struct answered)) return GONE;
    struct answered answered;
    memcpy(&answered, buffer->bytes, sizeof answered);
    buffer->used = length;
    return answered.answer;
  }
}

static int print_file(int fd, int file, struct buffer *buffer) {
  for (long offset = 0;;) {
    long length = CALL4(pread64, file, buffer->bytes, sizeof buffer->bytes, offset);
    if (length == 0) return 1;
    if (length < 0 || !write_all(fd, buffer->bytes, length)) return 0;
    offset += length;
  }
}

/* Whether the answer is as long as it says, and came with what it says. */
static int is_complete(const struct buffer *buffer, const struct rights *rights, const struct answered *done) {
  if (done->answer == DONE_IN_FILES) {
    return rights->length == 24 && rights->level == SOL_SOCKET_ && rights->type == SCM_RIGHTS_;
  }
  return (uint64_t)done->stdout_bytes + done->stderr_bytes + sizeof *done == buffer->used;
}

/* isatty(3) */
static int is_terminal(int fd) {
  char settings[64];
  return CALL3(ioctl, fd, 0x5401 /* TCGETS */, settings) >= 0;
}

/* Ends this process with the resident's answer. Returns when that is incomplete, or when stdout does not take it: then the
 * call runs again, by itself, and does what it does when nobody can read its result. */
static void finish(struct buffer *buffer, const struct rights *rights, int is_runtime) {
  struct disposition before;
  struct answered done;
  memcpy(&done, buffer->bytes, sizeof done);
  if (!is_complete(buffer, rights, &done)) return;
  ignore_broken_pipes(&before);
  int printed;
  if (done.answer == DONE_IN_FILES) {
    print_file(2, rights->descriptors[1], buffer);
    printed = print_file(1, rights->descriptors[0], buffer);
  } else {
    const char *bytes = buffer->bytes + sizeof done;
    write_all(2, bytes + done.stdout_bytes, done.stderr_bytes);
    printed = write_all(1, bytes, done.stdout_bytes);
    /* The worker cannot see a terminal (printDocument in src/process/output.ts). */
    int is_open = is_runtime && done.stdout_bytes > 0 && bytes[done.stdout_bytes - 1] != '\n';
    if (printed && is_open && is_terminal(1)) write_text(1, "\n");
  }
  if (printed) leave(done.status);
  set_broken_pipes(&before);
}

/* From here on the resident cannot say READY any more, so it does not begin. Returns whether it had begun before. */
static int has_begun(int resident, struct buffer *buffer) {
  CALL2(shutdown, resident, SHUT_READING);
  return receive(resident, buffer, 0, 0) == READY;
}

/* The answer cannot arrive any more. The resident closes the connection when the call has ended. */
static void await_end(int resident) {
  struct pollfd closed = {resident, 0, 0};
  while (CALL(ppoll, &closed, 1, 0, 0, 0, 0) < 0) continue;
}

/* What proc_pid_stat(5) says. The state is R when the process runs or is about to. */
struct stat_line {
  char state;
  uint32_t parent;
};

/* Returns 0 when there is no such process. */
static int read_stat(uint32_t process, struct stat_line *line) {
  char path[32], text[128];
  join(join_number(join(path, "/proc/"), process), "/stat");
  long file = CALL4(openat, AT_FDCWD, path, O_RDONLY | CLOSE_ON_EXEC, 0);
  if (file < 0) return 0;
  long length = CALL3(read, file, text, sizeof text);
  CALL1(close, file);
  /* The name, which may contain anything, ends with the last parenthesis. */
  long at = length - 5;
  while (at > 0 && text[at] != ')') at--;
  if (at <= 0) return 0;
  line->state = text[at + 2], line->parent = 0;
  for (at += 4; at < length && text[at] >= '0' && text[at] <= '9'; at++) line->parent = line->parent * 10 + text[at] - '0';
  return 1;
}

static uint32_t milliseconds_since_boot(void) {
  struct {
    int64_t seconds, nanoseconds;
  } now = {0, 0};
  CALL2(clock_gettime, 7 /* CLOCK_BOOTTIME */, &now);
  return (uint32_t)(now.seconds * 1000 + now.nanoseconds / 1000000);
}

/* Whether a worker takes a call soon: one that is about to run, or whose call is new. */
static int is_worth_waiting(void) {
  struct slot slots[SLOTS];
  long board = CALL4(openat, AT_FDCWD, BOARD_PATH, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | CLOSE_ON_EXEC, 0);
  if (board < 0) return 0;
  long length = CALL3(read, board, slots, sizeof slots);
  CALL1(close, board);
  uint32_t now = milliseconds_since_boot();
  for (long at = 0; at < length / (long)sizeof *slots; at++) {
    uint32_t process = slots[at].process, since = slots[at].since_ms;
    if (process == 0 || (since != 0 && now - since >= LONG_CALL_MS)) continue;
    struct stat_line line;
    char state = read_stat(process, &line) ? line.state : 0;
    /* One that reads its own file (D) or is traced (t) goes on. One that is stopped (T) or has ended (Z, X) takes nothing,
     * and one that sleeps without a call has not been woken. */
    if (state == 'R' || state == 'D' || state == 't' || (state == 'S' && since != 0)) return 1;
  }
  return 0;
}

/* Processors that this process may run on. */
static int count_processors(void) {
  uint64_t mask[16] = {0};
  int count = 0;
  if (CALL3(sched_getaffinity, 0, sizeof mask, mask) <= 0) return 1;
  for (unsigned at = 0; at < sizeof mask / sizeof *mask; at++) {
    for (uint64_t left = mask[at]; left != 0; left &= left - 1) count++;
  }
  return count;
}

/* Whether this call may run by itself: no others do, or few enough. A hundred at once would otherwise take the processors
 * from the resident that their first one has started. A turn is a lock on a byte of the file, which is open until the
 * process ends. */
static int takes_turn(int turns) {
  for (int at = count_processors() * TURNS_A_PROCESSOR - 1; at >= 0; at--) {
    struct flock turn = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    long failure = CALL3(fcntl, turns, F_SETLK, &turn);
    if (failure != -EAGAIN && failure != -EACCES) return 1;
  }
  return 0;
}

/* Whether a call that has a turn waits for this one: it has begun this process, or a parent of it, because a plugin of
 * others may be a script. */
static int is_awaited(int turns) {
  uint32_t ancestors[8] = {CALL0(getppid)}, count = 1;
  struct stat_line line;
  while (count < 8 && read_stat(ancestors[count - 1], &line)) ancestors[count++] = line.parent;
  for (int at = count_processors() * TURNS_A_PROCESSOR - 1; at >= 0; at--) {
    struct flock turn = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    if (CALL3(fcntl, turns, F_GETLK, &turn) < 0 || turn.l_type == F_UNLCK || turn.l_pid <= 1) continue;
    for (uint32_t each = 0; each < count; each++) {
      if (ancestors[each] == (uint32_t)turn.l_pid) return 1;
    }
  }
  return 0;
}

/* Not as stdout or stderr, which may be closed. */
static int open_turns(void) {
  int opened = CALL4(openat, AT_FDCWD, TURNS_PATH, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (opened < 0) return opened;
  int moved = CALL3(fcntl, opened, F_DUPFD_CLOEXEC, 3);
  CALL1(close, opened);
  return moved;
}

/* What the resident says to the request. */
static int await_worker(int resident, struct buffer *buffer) {
  int answer = receive(resident, buffer, 0, PROMPT_MS), turns = -1;
  for (int waited = 0; answer == SILENT && waited < PATIENCE_MS; waited += BETWEEN_LOOKS_MS) {
    if (!is_worth_waiting()) {
      int is_first = turns < 0;
      if (is_first) turns = open_turns();
      if (takes_turn(turns) || (is_first && is_awaited(turns))) break;
    }
    answer = receive(resident, buffer, 0, BETWEEN_LOOKS_MS);
  }
  /* A worker may have said READY during the look. */
  if (answer == SILENT) answer = receive(resident, buffer, 0, 0);
  if (answer != SILENT && turns >= 0) CALL1(close, turns);
  return answer;
}

static enum how converse(int resident, struct buffer *buffer, int is_runtime) {
  struct rights rights = {0};
  int answer = await_worker(resident, buffer);
  if (answer == PROVE) {
    CALL(sendto, resident, &answer, sizeof answer, MSG_NOSIGNAL_, 0, 0);
    answer = receive(resident, buffer, 0, PATIENCE_MS);
  }
  if (answer != READY) {
    if (answer == DECLINED || !has_begun(resident, buffer)) return ALONE;
    await_end(resident);
    return AGAIN;
  }
  answer = receive(resident, buffer, &rights, -1);
  if (answer == DONE || answer == DONE_IN_FILES) finish(buffer, &rights, is_runtime);
  return answer == DECLINED ? ALONE : AGAIN;
}

/* Whether the next word is the value of this option, if it takes one. */
static int takes_next_word(const char *word) {
  if (*word != '-') return 0;
  while (*word != 0 && *word != '=') word++;
  return *word == 0;
}

/* `netavark --config DIRECTORY OPTION... setup NAMESPACE`, as podman calls it. Others may not read their stdin: with --file,
 * with --help, without --config, or with a verb that is the value of an option. */
static int is_netavarks(const struct call *call) {
  int last = call->argument_count - 1, has_config = 0;
  if (last < 3 || *call->arguments[last] == '-' || takes_next_word(call->arguments[last - 2])) return 0;
  for (int at = 1; at < last - 1; at++) {
    const char *word = call->arguments[at];
    if (begins_with(word, "-f") || begins_with(word, "--file")) return 0;
    has_config = has_config || begins_with(word, "-c") || begins_with(word, "--config");
  }
  return has_config && is_listed(call->arguments[last - 1], NETAVARK_SERVED_LIST);
}

/* What of a call a resident gets. */
enum handover { NOTHING, WORDS, WORDS_AND_STDIN };

static enum handover handover_of(const struct call *call, const char *name, int is_runtime) {
  if (is_runtime) {
    if (call->argument_count < 2) return NOTHING;
    const char *verb = call->arguments[1];
    if (is_same(verb, "serve")) return NOTHING;
    /* Nothing ends what a person types, and `create` is then no verb of podman's. */
    if (is_listed(verb, DRIVER_VERBS_LIST)) return is_terminal(0) ? NOTHING : WORDS_AND_STDIN;
    return is_listed(verb, COMMANDS_WITH_STDIN_LIST) ? WORDS_AND_STDIN : WORDS;
  }
  if (is_same(name, "netavark")) return is_netavarks(call) && !is_terminal(0) ? WORDS_AND_STDIN : NOTHING;
  const char *command = value_of(call, "CNI_COMMAND");
  /* A call of CNI has no arguments. */
  if (call->argument_count > 1 || *command == 0) return NOTHING;
  /* VERSION does not read its stdin, which may never end. */
  return is_same(command, "VERSION") ? WORDS : WORDS_AND_STDIN;
}

/* `offset` is where stdin begins again for the process that runs the call, or negative. */
static enum how launch(const struct call *call, const uint8_t *build, long *offset) {
  *offset = -1;
  if (CALL3(faccessat, AT_FDCWD, SOCKET_PATH, 0) < 0 || call->argument_count == 0) return ALONE;
  if (is_same(value_of(call, "PATCHBAY_RESIDENT"), "off")) return ALONE;
  const char *name = base_name(call->arguments[0]);
  int is_runtime = is_same(name, "patchbay") || is_same(name, "cnitool");
  enum handover handover = handover_of(call, name, is_runtime);
  struct buffer buffer;
  if (handover == NOTHING) return ALONE;
  if (handover == WORDS_AND_STDIN && !keep_stdin(&buffer, offset)) return ALONE;
  enum how how = ALONE;
  if (write_request(&buffer, call, build)) {
    int resident = connect_resident();
    if (resident >= 0) {
      if (send_request(resident, &buffer, handover == WORDS_AND_STDIN)) how = converse(resident, &buffer, is_runtime);
      CALL1(close, resident);
    }
  }
  return how;
}

static void rewind_stdin(long offset) {
  if (offset >= 0) CALL3(lseek, 0, offset, SEEK_SET);
}

/* Takes back the lease that a resident may have taken: makes a child, for which the call is DEL. Other plugins write down
 * whose call they run, and their ADD takes back what a dead resident began in this very call (src/engine/verbs/add.ts). */
static void undo_in_child(struct call *call, long offset) {
  char *command = (char *)value_of(call, "CNI_COMMAND");
  const char *name = base_name(call->arguments[0]);
  if (!is_same(command, "ADD") || !(means_plugin(name, "host-local") || means_plugin(name, "patchbay-cluster"))) return;
  long child = CALL(clone, SIGCHLD_, 0, 0, 0, 0, 0);
  if (child == 0) {
    memcpy(command, "DEL", 3);
    long nothing = CALL4(openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
    if (nothing >= 0) CALL3(dup3, nothing, 1, 0);
  } else if (child > 0) {
    while (CALL4(wait4, child, 0, 0, 0) == -EINTR) continue;
    rewind_stdin(offset);
  }
}
