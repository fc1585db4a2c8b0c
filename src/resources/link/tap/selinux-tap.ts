/**
 * Creates a tap with an SELinux context. A tap gets the context of the process that creates it, and a process changes its
 * context only when it executes a program. So ip(8) creates the tap, as with the reference plugin.
 */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { closeFile, O_WRONLY, openFile, writeAll } from "../../../ffi/files.ts";
import { fromUtf8, utf8 } from "../../../ffi/libc.ts";
import { describeEnding, hasSucceeded } from "../../../ffi/spawn.ts";
import { runTrusted } from "../../../process/trusted-executable.ts";
import { findInPath } from "../../../ffi/find-in-path.ts";
import type { TapSettings } from "../../../ffi/tun.ts";

/** The context of programs that this thread executes from now on. An empty text stands for the policy's choice. */
const EXEC_CONTEXT = "/proc/thread-self/attr/exec";

/** Returns a substitute for `addTap`. */
export function addTapWithContext(context: string): (name: string, settings: TapSettings) => true {
  const path = findInPath("ip");
  if (path === undefined) throw new CniError(INTERNAL, "selinuxContext needs ip(8), and PATH has no such program");
  return (name, settings) => {
    const argv = commandFor(name, settings);
    setExecContext(context);
    try {
      const { ending, stderr } = runTrusted({ path, argv, environment: [] }, new Uint8Array());
      if (hasSucceeded(ending)) return true;
      throw new CniError(INTERNAL, `failed to run command ${fromUtf8(stderr).trim()}: ${describeEnding(ending)}`);
    } finally {
      setExecContext("");
    }
  };
}

/** The command of ip(8) that makes the tap. */
export function commandFor(name: string, { multiQueue, owner, group }: TapSettings): string[] {
  const argv = ["ip", "tuntap", "add", "mode", "tap", "name", name];
  if (multiQueue) argv.push("multi_queue");
  if (owner !== undefined) argv.push("user", String(owner));
  if (group !== undefined) argv.push("group", String(group));
  return argv;
}

function setExecContext(context: string): void {
  const fd = openFile(EXEC_CONTEXT, O_WRONLY);
  try {
    writeAll(fd, utf8(context + "\0"), EXEC_CONTEXT);
  } finally {
    closeFile(fd);
  }
}
