/* The first code of the program, in place of the dynamic loader. It
 *
 * - removes the variables that the embedded runtime would obey, and refuses to run setuid (hide_variables, is_setuid);
 * - answers what needs no runtime (answer.h), or hands the call to the resident if one serves calls like this one (launch.h);
 * - says what this host lacks, if the runtime cannot run here (is_unfit);
 * - or becomes the runtime: maps the dynamic loader, as the kernel would have, and jumps to it.
 *
 * compile/entry.ts puts it into the finished file, fills `parameters`, and turns the program header that names the loader
 * (PT_INTERP) into one that the kernel skips. See elf(5), ld.so(8), getauxval(3), and the ABI of each processor for the
 * stack at the start of a process. */
#include "answer.h"
#include "launch.h"

#include <linux/auxvec.h>
#include <linux/elf.h>
#include <linux/mman.h>

/* At the start of the code, where the build finds it. */
__attribute__((section(".parameters"), used)) const volatile struct {
  /* Where the linker put the program headers and the runtime's entry point. */
  uint64_t headers, runtime;
  /* Which header is PT_INTERP in truth. */
  uint64_t loader_header;
  /* Which build this is: a resident serves its own only. */
  uint8_t build[BUILD_BYTES];
} parameters = {0};

/* The arguments, the environment and the auxiliary vector, as the kernel left them on the stack. */
struct start {
  long *stack;
  char **arguments, **environment;
  unsigned long (*auxiliary)[2];
};

static unsigned long *auxiliary(const struct start *start, unsigned long type) {
  for (unsigned long(*at)[2] = start->auxiliary; (*at)[0] != AT_NULL; at++) {
    if ((*at)[0] == type) return &(*at)[1];
  }
  return 0;
}

static unsigned long auxiliary_value(const struct start *start, unsigned long type) {
  const unsigned long *found = auxiliary(start, type);
  return found == 0 ? 0 : *found;
}

/* In lower case: the allocator ignores case, and so do we. Not all of NODE_: NODE_NAME and others are other plugins'. */
static const char hidden[][24] = {
    "bun_",     "jsc_",    "javascriptcore", "wtf_",          "webkit",       "malloc",    "mimalloc_",
    "icu_",     "simdutf_", "glibcxx_",      "hyperfine_",    "node_channel_", "node_options", "node_path",
    "node_preserve_", "node_unique_id", "node_v8_coverage",
};

static int begins(const char *text, const char *prefix) {
  for (; *prefix != 0; text++, prefix++) {
    char character = *text >= 'A' && *text <= 'Z' ? *text | 0x20 : *text;
    if (character != *prefix) return 0;
  }
  return 1;
}

static int is_hidden(const char *entry) {
  for (unsigned index = 0; index < sizeof hidden / sizeof *hidden; index++) {
    if (begins(entry, hidden[index])) return 1;
  }
  return 0;
}

/* Everything behind moves down. /proc/self/environ still shows what was removed. */
static void hide_variables(struct start *start) {
  char **kept = start->environment, **at = kept;
  for (; *at != 0; at++) {
    if (!is_hidden(*at)) *kept++ = *at;
  }
  unsigned long *to = (unsigned long *)kept, *from = (unsigned long *)at;
  *to++ = *from++;
  start->auxiliary = (unsigned long(*)[2])to;
  if (to == from) return;
  for (; from[0] != AT_NULL; from += 2, to += 2) to[0] = from[0], to[1] = from[1];
  to[0] = AT_NULL, to[1] = 0;
}

/* The file gave its user more rights than he had: setuid, setgid, file capabilities. */
static int is_setuid(const struct start *start) {
  return auxiliary_value(start, AT_SECURE) != 0 && auxiliary_value(start, AT_UID) != 0;
}

static const char refusal[] = "{\"cniVersion\":\"1.1.0\",\"code\":4,"
                              "\"msg\":\"patchbay does not run setuid, setgid or with file capabilities\"}\n";

static _Noreturn void fail(const char *what, const char *path) {
  write_text(2, "patchbay: ");
  write_text(2, what);
  write_text(2, path);
  write_text(2, "\n");
  leave(127);
}

/* Why the program does not run on this host. No text contains what JSON would have to quote. */
struct lack {
  const char *what, *path, *remedy;
};

/* Engines and podman get that in the words of their protocols, with the code of an I/O failure. */
static _Noreturn void refuse(const struct call *call, const struct lack *lack) {
  int is_netavark = call->argument_count > 0 && is_same(base_name(call->arguments[0]), "netavark");
  if (!is_netavark && (call->argument_count > 1 || *value_of(call, "CNI_COMMAND") == 0)) {
    write_text(2, "patchbay: ");
    write_text(2, lack->what);
    write_text(2, lack->path);
    write_text(2, "; ");
    write_text(2, lack->remedy);
    write_text(2, "\n");
    leave(1);
  }
  write_text(1, is_netavark ? "{\"error\":\"" : "{\"cniVersion\":\"1.1.0\",\"code\":5,\"msg\":\"");
  write_text(1, lack->what);
  write_text(1, lack->path);
  write_text(1, is_netavark ? "; " : "\",\"details\":\"");
  write_text(1, lack->remedy);
  write_text(1, "\"}\n");
  leave(1);
}

static unsigned long page_down(unsigned long address, unsigned long page) { return address & ~(page - 1); }
static unsigned long page_up(unsigned long address, unsigned long page) { return page_down(address + page - 1, page); }

static int protection(unsigned flags) {
  return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) | (flags & PF_X ? PROT_EXEC : 0);
}

static char *map(void *address, unsigned long length, int protection, int flags, int fd, unsigned long offset) {
  long mapped = CALL(mmap, address, length, protection, MAP_PRIVATE | flags, fd, offset);
  if (mapped < 0 && mapped > -4096) fail("no memory for the dynamic loader", "");
  return (char *)mapped;
}

/* Whether calls of the C library can be compiled (bun:ffi): SELinux without execmem, PR_SET_MDWE and filters of system
 * calls forbid it. */
static int may_write_what_it_executes(unsigned long page) {
  int all = PROT_READ | PROT_WRITE | PROT_EXEC;
  long mapped = CALL(mmap, 0, page, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == -EACCES || mapped == -EPERM) return 0;
  if (mapped > 0 || mapped <= -4096) CALL2(munmap, mapped, page);
  return 1;
}

/* Maps the dynamic loader as the kernel does, and returns where its entry is. */
static unsigned long map_loader(const char *path, unsigned long page, char **base) {
  struct {
    Elf64_Ehdr header;
    char more[4096];
  } head;
  int fd = CALL4(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) fail("cannot open the dynamic loader ", path);
  long length = CALL4(pread64, fd, &head, sizeof head, 0);
  if (length < (long)sizeof head.header) fail("cannot read the dynamic loader ", path);
  const Elf64_Phdr *segments = (const Elf64_Phdr *)((char *)&head + head.header.e_phoff);
  if (head.header.e_phoff + head.header.e_phnum * sizeof *segments > (unsigned long)length) {
    fail("cannot read the headers of ", path);
  }
  unsigned long end = 0;
  for (int index = 0; index < head.header.e_phnum; index++) {
    if (segments[index].p_type == PT_LOAD) end = segments[index].p_vaddr + segments[index].p_memsz;
  }
  *base = map(0, page_up(end, page), PROT_NONE, MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (int index = 0; index < head.header.e_phnum; index++) {
    const Elf64_Phdr *one = &segments[index];
    if (one->p_type != PT_LOAD) continue;
    unsigned long from = page_down(one->p_vaddr, page), file_end = one->p_vaddr + one->p_filesz;
    unsigned long memory_end = page_up(one->p_vaddr + one->p_memsz, page), zero_from = page_up(file_end, page);
    map(*base + from, file_end - from, protection(one->p_flags), MAP_FIXED, fd, page_down(one->p_offset, page));
    if (one->p_memsz == one->p_filesz) continue;
    for (char *at = *base + file_end; at < *base + zero_from; at++) *at = 0;
    if (memory_end <= zero_from) continue;
    map(*base + zero_from, memory_end - zero_from, protection(one->p_flags), MAP_FIXED | MAP_ANONYMOUS, -1, 0);
  }
  CALL1(close, fd);
  return (unsigned long)*base + head.header.e_entry;
}

static unsigned long load_bias(const struct start *start) { return auxiliary_value(start, AT_PHDR) - parameters.headers; }

static Elf64_Phdr *loader_header(const struct start *start) {
  return (Elf64_Phdr *)auxiliary_value(start, AT_PHDR) + parameters.loader_header;
}

static const char *loader_path(const struct start *start) {
  return (const char *)(load_bias(start) + loader_header(start)->p_vaddr);
}

/* glibc wants to see the header that names it. */
static void restore_header(const struct start *start, unsigned long page) {
  Elf64_Phdr *header = loader_header(start);
  unsigned long from = page_down((unsigned long)header, page);
  unsigned long length = page_up((unsigned long)(header + 1), page) - from;
  if (CALL3(mprotect, from, length, PROT_READ | PROT_WRITE) < 0) fail("cannot change the program's own header", "");
  header->p_type = PT_INTERP;
  CALL3(mprotect, from, length, PROT_READ);
}

/* `add …`, `-i net1 add …`, `hook add …`. src/frontends/cli/command-line.ts unblocks them for others with that word. */
static int may_take_back(const struct start *start) {
  char **arguments = start->arguments;
  if (arguments[0] == 0 || arguments[1] == 0) return 0;
  if (is_same(arguments[1], "add")) return 1;
  if (arguments[1][0] != '-' && !is_same(arguments[1], "hook")) return 0;
  for (char **at = arguments + 2; *at != 0; at++) {
    if (is_same(*at, "add")) return 1;
  }
  return 0;
}

/* They wait until the runtime reads them (src/process/interruption.ts): its threads would be given them otherwise. What the
 * caller ignores stays ignored. */
static void block_interruptions(void) {
  enum { SIGINT_ = 2, SIGTERM_ = 15, BLOCK = 0 };
  static const int interruptions[] = {SIGINT_, SIGTERM_};
  uint64_t blocked = 0;
  for (unsigned index = 0; index < sizeof interruptions / sizeof *interruptions; index++) {
    struct sigaction action = {0};
    CALL4(rt_sigaction, interruptions[index], 0, &action, sizeof blocked);
    if (action.sa_handler != SIG_IGN) blocked |= 1ull << (interruptions[index] - 1);
  }
  CALL4(rt_sigprocmask, BLOCK, &blocked, 0, sizeof blocked);
}

/* A resident, its workers and a DHCP service are executed as /proc/self/exe or by a descriptor, which would be their name
 * in ps(1). */
static void take_name(const struct start *start) {
  enum { SET_NAME = 15 };
  const char *executed = (const char *)auxiliary_value(start, AT_EXECFN);
  if (executed == 0 || !begins(executed, "/proc/self/") || start->arguments[0] == 0) return;
  CALL2(prctl, SET_NAME, base_name(start->arguments[0]));
}

/* The runtime does not begin in a directory that is gone, and no worker can enter it. DEL must be done there, too. */
static void leave_lost_directory(void) {
  enum { ENOENT_ = 2 };
  char path[4096];
  long length = CALL2(getcwd, path, sizeof path);
  if (length == -ENOENT_ || (length > 0 && path[0] != '/')) CALL1(chdir, "/");
}

struct jump {
  long *stack;
  unsigned long to;
};

/* Member by member: addresses in constants of structures would have to be relocated, which nobody does here. */
static int lacks(struct lack *lack, const char *what, const char *path, const char *remedy) {
  lack->what = what, lack->path = path, lack->remedy = remedy;
  return 1;
}

static int is_unfit(const struct start *start, struct lack *lack) {
  const char *loader = loader_path(start);
  /* The runtime reads its own file there. */
  if (CALL3(faccessat, AT_FDCWD, "/proc/self/exe", 0) == -ENOENT) {
    return lacks(lack, "/proc is not mounted here", "", "mount it: mount -t proc proc /proc");
  }
  if (!may_write_what_it_executes(auxiliary_value(start, AT_PAGESZ))) {
    return lacks(lack, "memory that is writable and executable is forbidden here", "",
                 "allow it to patchbay, as execmem of SELinux or MemoryDenyWriteExecute=no of systemd (docs/hosts.md)");
  }
  long found = CALL3(faccessat, AT_FDCWD, loader, 4 /* R_OK */);
  if (found == -ENOENT || found == -ENOTDIR || found == -EACCES) {
    return lacks(lack, "this host has no dynamic loader ", loader,
                 "install the C library that it belongs to, or the build of patchbay for the one that the host has "
                 "(docs/hosts.md)");
  }
  return 0;
}

static struct jump become_runtime(struct start *start) {
  unsigned long page = auxiliary_value(start, AT_PAGESZ);
  char *base;
  restore_header(start, page);
  unsigned long entry = map_loader(loader_path(start), page, &base);
  unsigned long *at_base = auxiliary(start, AT_BASE), *at_entry = auxiliary(start, AT_ENTRY);
  if (at_base == 0 || at_entry == 0) fail("the kernel gave no auxiliary vector", "");
  *at_base = (unsigned long)base;
  *at_entry = load_bias(start) + parameters.runtime;
  return (struct jump){start->stack, entry};
}

__attribute__((used)) struct jump enter(long *stack) {
  struct start start = {.stack = stack, .arguments = (char **)(stack + 1)};
  start.environment = start.arguments + stack[0] + 1;
  hide_variables(&start);
  if (is_setuid(&start)) {
    write_text(1, refusal);
    leave(1);
  }
  struct call call = {stack[0], start.arguments, start.environment};
  uint8_t build[sizeof parameters.build];
  for (unsigned index = 0; index < sizeof build; index++) build[index] = parameters.build[index];
  leave_lost_directory();
  struct reply reply;
  struct lack lack;
  /* On a host that is unfit, engines are to learn it by VERSION, unless a resident serves them. */
  if (reply_of(&call, &reply) && !is_unfit(&start, &lack)) give(&reply);
  long offset;
  enum how how = launch(&call, build, &offset);
  rewind_stdin(offset);
  if (is_unfit(&start, &lack)) refuse(&call, &lack);
  if (how == AGAIN) undo_in_child(&call, offset);
  if (may_take_back(&start)) block_interruptions();
  take_name(&start);
  return become_runtime(&start);
}

/* The kernel's stack pointer is the argument; the answer is the stack and the address to go on with. */
__asm__(".section .text.first, \"ax\"\n"
        ".globl _start\n"
        "_start:\n"
#if defined(__x86_64__)
        "  mov %rsp, %rdi\n"
        "  xor %ebp, %ebp\n"
        "  call enter\n"
        "  mov %rax, %rsp\n"
        "  mov %rdx, %rcx\n"
        "  xor %edx, %edx\n" /* no function to call at exit */
        "  jmp *%rcx\n"
#else
        "  mov x0, sp\n"
        "  bl enter\n"
        "  mov sp, x0\n"
        "  mov x2, x1\n"
        "  mov x0, #0\n"
        "  br x2\n"
#endif
        ".text\n");
