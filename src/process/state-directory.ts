/**
 * The directory of the ledgers: /run/patchbay, or the user's runtime directory, or PATCHBAY_STATE_DIR. A reboot empties
 * it, and ends the network namespaces too.
 */
import { absolutePath } from "../ffi/absolute-path.ts";
import { ENOSPC, ENOTDIR, isErrno, SyscallError } from "../ffi/errno.ts";
import { variable } from "../ffi/environment.ts";
import { makeDirectories } from "../ffi/files.ts";
import { judgeStateDirectory, tryStateDirectory } from "./state-file.ts";
import { CniError, INVALID_ENVIRONMENT, IO_FAILURE, PLUGIN_NOT_AVAILABLE } from "../cni/error.ts";

/** The resident's socket is there, too, whatever the environment says. */
export const DIRECTORY_OF_ROOT = "/run/patchbay";
export const RESIDENT_SOCKET = `${DIRECTORY_OF_ROOT}/serve.sock`;
/** What the resident's workers do. Names of networks have no "~". */
export const RESIDENT_BOARD = `${DIRECTORY_OF_ROOT}/serve~board`;
/** Locked by calls that run by themselves where a resident takes none (src/native/launch.h). */
export const TURNS = `${DIRECTORY_OF_ROOT}/serve~turns`;
/** Locked by a resident that a call has started. */
export const RESIDENT_LOCK = `${DIRECTORY_OF_ROOT}/serve~by-call`;

export function stateDirectory(): string {
  const chosen = variable("PATCHBAY_STATE_DIR"), ofUser = variable("XDG_RUNTIME_DIR");
  if (chosen?.startsWith("/")) {
    if (absolutePath(chosen) !== "/") return chosen;
    throw refusal(chosen, "a directory of its own", "its directories would be taken for those of networks");
  }
  // DEL from another working directory would find nothing, and leave everything.
  if (chosen) throw refusal(chosen, "an absolute path", OTHER_DIRECTORY);
  return ofUser?.startsWith("/") && process.getuid!() !== 0 ? `${ofUser}/patchbay` : DIRECTORY_OF_ROOT;
}

const OTHER_DIRECTORY = "a relative one is another directory for a caller in another working directory";

function refusal(chosen: string, demand: string, reason: string): CniError {
  return new CniError(INVALID_ENVIRONMENT, `PATCHBAY_STATE_DIR is "${chosen}", and must be ${demand}`, reason);
}

/**
 * Makes a directory below the state directory. Rejects it when somebody else could write to it, because DEL executes
 * what its files say.
 */
export function privateDirectory(path: string): void {
  inStateDirectory(path, IO_FAILURE, () => {
    judgeStateDirectory(stateDirectory());
    makeDirectories(path, 0o700);
    judgeStateDirectory(path);
  });
}

/** For STATUS: throws when ADD could write no ledger. Changes nothing. */
export function requireStateDirectory(): void {
  const path = stateDirectory();
  inStateDirectory(path, PLUGIN_NOT_AVAILABLE, () => {
    judgeStateDirectory(path);
    tryStateDirectory(path);
  });
}

function inStateDirectory(path: string, code: number, work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof SyscallError)) throw error;
    // The engine has a step of its own for a file system that is read-only (engine/run.ts).
    const nextStep = isErrno(error, ENOSPC, ENOTDIR) ? ELSEWHERE : undefined;
    throw new CniError(code, `cannot use state directory "${path}": ${error.message}`, "", {
      cause: error,
      nextStep,
    });
  }
}

const ELSEWHERE =
  "'add' writes down there what 'del' removes; make room or mend it, or choose another with $PATCHBAY_STATE_DIR, for " +
  "every command and every engine";
