/** Descriptors by their numbers: dup2(2), fcntl(2). */
import { closeFile } from "./files.ts";
import { bindLater, check } from "./libc.ts";

const F_SETFL = 4, F_DUPFD_CLOEXEC = 1030, O_NONBLOCK = 0o4000;

const c = bindLater({
  dup2: { args: ["i32", "i32"], returns: "i32" },
  fcntl: { args: ["i32", "i32", "i32"], returns: "i32" },
});

/** Moves it to a free number from `least` on. Programs that we start do not get it. */
export function moveDescriptor(fd: number, least: number): number {
  const moved = check("fcntl", c().fcntl(fd, F_DUPFD_CLOEXEC, least), `descriptor ${fd}`);
  closeFile(fd);
  return moved;
}

/** Above the numbers that the programs which a process that stays starts get descriptors by. */
export function moveUp(fd: number): number {
  return moveDescriptor(fd, 16);
}

/** Runs `work` with a copy of the descriptor at the number, where programs that we start get it. */
export function withDescriptorAt<T>(number: number, fd: number, work: () => T): T {
  const before = c().fcntl(number, F_DUPFD_CLOEXEC, 0);
  check("dup2", c().dup2(fd, number), `descriptor ${fd}`);
  try {
    return work();
  } finally {
    closeFile(number);
    if (before >= 0) {
      c().dup2(before, number);
      closeFile(before);
    }
  }
}

export function setNonblocking(fd: number): void {
  check("fcntl", c().fcntl(fd, F_SETFL, O_NONBLOCK), `descriptor ${fd}`);
}
