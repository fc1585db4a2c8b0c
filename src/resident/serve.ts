/**
 * `patchbay serve`: listens, and keeps workers that accept from the same socket. It does nothing else, so that it does
 * not fail. The workers hold one end of a pipe whose other end only this process has: they end when it ends, however
 * that comes about, each after its call.
 */
import { closeFile, identify, makeDirectories, O_CLOEXEC, O_RDONLY, openFile, removeFile } from "../ffi/files.ts";
import { bind, check, libc } from "../ffi/libc.ts";
import { poll, POLLIN } from "../ffi/poll.ts";
import { endingSoFar, openPidfd, openPipe, spawn } from "../ffi/spawn.ts";
import { warn } from "../ffi/warn.ts";

export const SOCKET_PATH = "/run/patchbay/serve.sock";
const WORKERS = Math.min(navigator.hardwareConcurrency, 4);
/** How often the parent looks whether its file was replaced by another build. */
const LOOK_MS = 5000;
/** A worker that ends sooner has its successor wait as long, so that what cannot start does not keep a processor busy. */
const SHORT_LIFE_MS = 200;
const AF_UNIX = 1, SOCK_SEQPACKET = 5, SOCK_CLOEXEC = 0o2000000, SOCK_NONBLOCK = 0o4000;
const BACKLOG = 1024;

const symbols = bind({
  listen: { args: ["i32", "i32"], returns: "i32" },
  connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
});

interface Worker {
  pid: number;
  /** Readable when it has ended. */
  pidfd: number;
  startedAt: number;
}

/** Returns the exit status, when the program was replaced. */
export function serve(): number {
  const listening = listen(), [lifeline] = openPipe();
  const self = identify("/proc/self/exe").id;
  let workers = Array.from({ length: WORKERS }, () => startWorker(listening, lifeline));
  while (identifyOwnFile() === self) {
    waitForEnd(workers);
    workers = workers.map((worker) => {
      const ending = endingSoFar(worker.pid);
      if (ending === undefined) return worker;
      closeFile(worker.pidfd);
      if (performance.now() - worker.startedAt < SHORT_LIFE_MS) Bun.sleepSync(SHORT_LIFE_MS);
      return startWorker(listening, lifeline);
    });
  }
  warn("this program was replaced; the resident ends, and calls run by themselves until another is started");
  removeFile(SOCKET_PATH);
  return 0;
}

/** Where this program would be started from now; another file after an upgrade. */
function identifyOwnFile(): string | undefined {
  try {
    return identify(process.execPath).id;
  } catch {
    return undefined;
  }
}

function listen(): number {
  makeDirectories("/run/patchbay", 0o700);
  const fd = check("socket", libc.socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const address = new Uint8Array(2 + SOCKET_PATH.length + 1);
  address[0] = AF_UNIX;
  address.set(new TextEncoder().encode(SOCKET_PATH), 2);
  if (symbols.connect(fd, address, address.length) === 0) {
    throw new Error(`another resident listens on ${SOCKET_PATH}`);
  }
  removeFile(SOCKET_PATH);
  check("bind", libc.bind(fd, address, address.length), SOCKET_PATH);
  check("listen", symbols.listen(fd, BACKLOG), SOCKET_PATH);
  return fd;
}

function startWorker(listening: number, lifeline: number): Worker {
  const nothing = openFile("/dev/null", O_RDONLY | O_CLOEXEC);
  try {
    const pid = spawn({
      path: "/proc/self/exe",
      argv: ["patchbay", "serve", "--worker"],
      environment: [],
      descriptors: [nothing, 1, 2, listening, lifeline],
    });
    return {
      pid,
      startedAt: performance.now(),
      pidfd: check("pidfd_open", openPidfd(pid)),
    };
  } finally {
    closeFile(nothing);
  }
}

function waitForEnd(workers: readonly Worker[]): void {
  poll(workers.map(({ pidfd }) => ({ fd: pidfd, events: POLLIN })), LOOK_MS);
}
