/**
 * Programs of a few hundred bytes (src/native) that wait in our place, where the kernel answers long after the effect is
 * visible.
 *
 * Removing a veth makes the kernel wait 15 to 55 ms until every processor has forgotten the device, long after the
 * device has become invisible in both namespaces. The sender of the request waits as well. So a child sends it, and we
 * go on as soon as the device is gone. fork(2) cannot make that child: a Bun process loses its compiled code in it.
 *
 * Such a program runs from a memory file. Its exit status is the errno of the kernel's answer.
 */
import { SyscallError } from "./errno.ts";
import { closeFile, whileOpen, writeAll } from "./files.ts";
import { memoryFile } from "./memory.ts";
import { spawn, waitFor } from "./spawn.ts";

/** src/native/reaper.c and holder.c as the build compiles them; missing where the sources run as they are. */
declare const NATIVE_REAPER: string | undefined;
declare const NATIVE_HOLDER: string | undefined;

/**
 * Sends the message from a child and returns its process id. Returns undefined where the programs are missing, and on
 * hosts that do not execute memory files: there the caller has to send the request itself.
 */
export function sendFromChild(socketFd: number, message: Uint8Array): number | undefined {
  if (typeof NATIVE_REAPER === "undefined") return undefined;
  const fd = memoryFileWith(message, "patchbay-message");
  return fd === undefined ? undefined : whileOpen(fd, () => start(NATIVE_REAPER, [socketFd, fd]));
}

/**
 * For a socket whose last close the kernel delays: lets a child do that last close. The child passes the socket on to a
 * child of its own, which nobody has to wait for, and which closes it 50 ms later, when the kernel has nothing left to
 * wait for. The caller closes its own descriptor right after this.
 */
export function holdOpen(fd: number): void {
  const child = typeof NATIVE_HOLDER === "undefined" ? undefined : start(NATIVE_HOLDER, [fd]);
  if (child !== undefined) waitFor(child);
}

/** Starts the program with these descriptors as its third and following. */
function start(program: string, descriptors: readonly number[]): number | undefined {
  const fd = memoryFileWith(Uint8Array.fromBase64(program), "patchbay-reaper", true);
  if (fd === undefined) return undefined;
  try {
    // By our own process id: in the child, the descriptors are others.
    return spawn({
      path: `/proc/${process.pid}/fd/${fd}`,
      argv: ["patchbay-reaper"],
      environment: [],
      // A signal to the waiting process's group must not end it.
      hasOwnGroup: true,
      descriptors: [undefined, undefined, undefined, ...descriptors],
    });
  } catch (error) {
    if (error instanceof SyscallError) return undefined;
    throw error;
  } finally {
    closeFile(fd);
  }
}

function memoryFileWith(content: Uint8Array, name: string, isProgram = false): number | undefined {
  const fd = memoryFile(name, isProgram);
  if (fd < 0) return undefined;
  writeAll(fd, content);
  return fd;
}
