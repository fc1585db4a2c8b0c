/**
 * A process that holds everything it starts: process 1 of its own namespace, which ends when its parent does, by whatever
 * signal. The kernel then ends all other processes in it, whatever they are, and with them goes all that they were given.
 */
import { EINVAL } from "../ffi/errno.ts";
import { environmentForChild, variable } from "../ffi/environment.ts";
import { closeFile, O_RDONLY, openFile } from "../ffi/files.ts";
import { exitNow, lastErrno, libc } from "../ffi/libc.ts";
import { inNewProcessNamespace } from "../ffi/namespaces.ts";
import { poll, POLLIN } from "../ffi/poll.ts";
import { endWith, SIGKILL } from "../ffi/signals.ts";
import { openPipe, spawn, waitFor } from "../ffi/spawn.ts";

/** Set for the process inside, to the descriptor that shows it whether its parent lives. */
const VARIABLE = "PATCHBAY_CONFORMANCE_ALONE";
const PARENT = 3;

/** In a user namespace, root may be unable to return to a namespace that this user namespace does not own. */
function requireOwnNamespaces(): void {
  for (const kind of ["pid", "net", "mnt"]) {
    const fd = openFile(`/proc/self/ns/${kind}`, O_RDONLY);
    // EINVAL is no refusal: threads that share their root directory cannot even enter a mount namespace of their own.
    const isOwned = libc.setns(fd, 0) === 0 || lastErrno() === EINVAL;
    closeFile(fd);
    if (isOwned) continue;
    throw new Error(
      `this user namespace does not own its ${kind} namespace: run it outside, as root, or by ` +
        "'unshare --user --map-root-user --mount --pid --net --fork --mount-proc'",
    );
  }
}

/** Runs this program once more with the same arguments, as process 1 of a namespace. Returns its exit status. */
export function runInOwnNamespace(args: readonly string[]): number {
  requireOwnNamespaces();
  const [readEnd, writeEnd] = openPipe();
  const pid = inNewProcessNamespace(() =>
    spawn({
      path: "/proc/self/exe",
      argv: ["patchbay", ...args],
      environment: environmentForChild({ [VARIABLE]: String(PARENT) }),
      descriptors: [0, 1, 2, readEnd],
    })
  );
  closeFile(readEnd);
  const ending = waitFor(pid);
  closeFile(writeEnd);
  if ("signal" in ending) throw new Error(`the process that ran the plugins was ended by signal ${ending.signal}`);
  return ending.exitStatus;
}

/** Whether this is the process that `runInOwnNamespace` started. It is from now on one that ends with its parent. */
export function isInOwnNamespace(): boolean {
  if (process.pid !== 1 || variable(VARIABLE) !== String(PARENT)) return false;
  // A process of another process namespace, such as the parent, has the number 0 here.
  endWith(0, SIGKILL);
  if (poll([{ fd: PARENT, events: POLLIN }], 0).has(PARENT)) exitNow(1);
  closeFile(PARENT);
  return true;
}
