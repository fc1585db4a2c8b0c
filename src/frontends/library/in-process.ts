/**
 * An operation in the process of the program that uses the library. It leaves the process as it was: the thread in its
 * namespace, no descriptor more, umask and directory untouched.
 */
import { CniError, INTERNAL, IO_FAILURE } from "../../cni/error.ts";
import { inCommand } from "../../contract/trace.ts";
import { buildOf } from "../../engine/build.ts";
import { recognizeOwn } from "../../engine/delegation/find-plugin.ts";
import { endCall } from "../../process/calls.ts";
import { missingPrivileges } from "../../ffi/capabilities.ts";
import { takeEnvironment } from "../../ffi/environment.ts";
import { SyscallError } from "../../ffi/errno.ts";
import { bind } from "../../ffi/libc.ts";
import { isEntered, onStranded } from "../../ffi/netns.ts";
import { areLeftRunning } from "../../ffi/spawn.ts";

export function inProcess<Value>(work: () => Value): Value {
  const reason = missingPrivileges();
  if (reason !== undefined) throw new CniError(INTERNAL, reason);
  onStranded(enterHome);
  recognizeProgram();
  takeEnvironment(ownEnvironment());
  try {
    return inCommand("library", work);
  } finally {
    endCall();
    collectChildren();
  }
}

/** The identifier in hexadecimal of the program that was built from the same sources (compile/package.ts). */
declare const PROGRAM_BUILD: string | undefined;

/** A plugin that is this program runs in process, as it does where the program finds itself. */
function recognizeProgram(): void {
  recognizeOwn((path) => {
    // The sources run unbundled.
    if (typeof PROGRAM_BUILD === "undefined") return false;
    try {
      return Buffer.compare(buildOf(path), Uint8Array.fromHex(PROGRAM_BUILD)) === 0;
    } catch {
      // The file is not a program, or too short to be ours.
      return false;
    }
  });
}

export function asCniError(error: unknown): CniError {
  if (error instanceof CniError) return error;
  return new CniError(error instanceof SyscallError ? IO_FAILURE : INTERNAL, (error as Error).message, "", {
    cause: error,
  });
}

/** The environment as `NAME=value` entries, with what the program has changed since its start. */
function ownEnvironment(): Uint8Array {
  const entries = Object.entries(process.env).filter(([, value]) => value !== undefined);
  return new TextEncoder().encode(entries.map(([name, value]) => `${name}=${value}\0`).join(""));
}

const PAUSE_US = 10_000;

/**
 * Returning from a container's namespace can only fail while memory is short. Until it succeeds nothing may run on this
 * thread, not even what would undo the call.
 */
function enterHome(home: number, reason: string): void {
  const { usleep } = bind({ usleep: { args: ["u32"], returns: "i32" } });
  console.error(`patchbay: cannot return from a container's network namespace: ${reason}; trying again`);
  while (!isEntered(home)) usleep(PAUSE_US);
}

const INTERVAL_MS = 50;
let collecting: Promise<void> | undefined;

/** A child process that removes links for us ends after the call (ffi/reaper.ts), and would stay a zombie. */
function collectChildren(): void {
  if (areLeftRunning()) collecting ??= collectLater();
}

function collectLater(): Promise<void> {
  const pause = new Promise<void>((resolve) => setTimeout(resolve, INTERVAL_MS).unref());
  return pause.then(() => areLeftRunning() ? collectLater() : void (collecting = undefined));
}

/** A thread waits for it before it ends. */
export function childrenCollected(): Promise<void> {
  return collecting ?? Promise.resolve();
}
