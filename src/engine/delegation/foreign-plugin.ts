/**
 * Runs a plugin that is another program: its environment, its stdin, its errors (CNI spec 1.1.0, "Section 2: Execution
 * Protocol").
 *
 * The error texts are the reference library's, because engines show them and people search for them.
 */
import { CniError } from "../../cni/error.ts";
import { foldKey, isObject } from "../../cni/json.ts";
import { goQuote } from "../../cni/quote.ts";
import { environmentForChild } from "../../ffi/environment.ts";
import { writeAll } from "../../ffi/files.ts";
import { fromUtf8, utf8 } from "../../ffi/libc.ts";
import type { Finished } from "../../process/run-program.ts";
import { describeEnding, type Ending, hasSucceeded } from "../../ffi/spawn.ts";
import { runTrusted, UntrustedFile } from "../../process/trusted-executable.ts";
import type { Invocation } from "../../cni/invocation.ts";
import { untrustedPlugin } from "./find-plugin.ts";
import { spanForChild, timed } from "../../contract/trace.ts";

/** Runs the plugin and returns its stdout. Throws a CniError when it fails. */
export function runForeignPlugin(path: string, invocation: Invocation): string {
  const { command: verb, stdin } = invocation;
  const finished = timed(
    { operation: "exec", verb, path },
    () => run(path, pluginEnvironment(invocation), utf8(stdin), verb === "ADD"),
  );
  const stdout = fromUtf8(finished.stdout);
  const status = failureIn(finished.ending);
  if (status === undefined) {
    forwardStderr(finished.stderr);
    return stdout;
  }
  const stderr = fromUtf8(finished.stderr), failure = pluginFailure(stdout, stderr, status);
  // Do not forward stderr when the error already contains it.
  if (!failure.message.includes(goQuote(stderr))) forwardStderr(finished.stderr);
  throw failure;
}

function run(path: string, environment: Uint8Array[], stdin: Uint8Array, isAdd: boolean): Finished {
  try {
    return runTrusted({ path, argv: [path], environment, patienceMs: Infinity, isInterruptible: isAdd }, stdin);
  } catch (error) {
    if (error instanceof UntrustedFile) throw untrustedPlugin(error);
    throw pluginFailure("", "", (error as Error).message, error);
  }
}

/** The six parameters are set even when empty. */
function pluginEnvironment(invocation: Invocation): Uint8Array[] {
  return environmentForChild({
    ...spanForChild(),
    CNI_COMMAND: invocation.command,
    CNI_CONTAINERID: invocation.containerId,
    CNI_NETNS: invocation.netnsPath,
    CNI_ARGS: invocation.cniArgs,
    CNI_IFNAME: invocation.ifName,
    CNI_PATH: invocation.path,
  });
}

/** A plugin's stderr goes to our log, also when the plugin fails. */
function forwardStderr(bytes: Uint8Array): void {
  try {
    writeAll(2, bytes);
  } catch {
    // A log that cannot be written must not fail a verb that succeeded.
  }
}

const signalNames: Record<number, string> = {
  1: "hangup",
  2: "interrupt",
  3: "quit",
  4: "illegal instruction",
  6: "aborted",
  7: "bus error",
  8: "floating point exception",
  9: "killed",
  11: "segmentation fault",
  13: "broken pipe",
  15: "terminated",
};

/** As Go's library does; undefined for success. */
function failureIn(ending: Ending): string | undefined {
  if (hasSucceeded(ending)) return undefined;
  return "signal" in ending
    ? `signal: ${signalNames[ending.signal] ?? describeEnding(ending)}`
    : describeEnding(ending);
}

function pluginFailure(stdout: string, stderr: string, status: string, cause?: unknown): CniError {
  const withoutMessage = stderr === ""
    ? `netplugin failed with no error message: ${status}`
    : `netplugin failed: ${goQuote(stderr)}: ${status}`;
  if (stdout === "") return new CniError(0, withoutMessage, "", { cause });
  try {
    const { code, msg, details } = decodeError(stdout);
    // The reference reports an empty message here, which helps nobody.
    return new CniError(code, msg === "" ? withoutMessage : msg, details);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return new CniError(
      0,
      `netplugin failed but error parsing its diagnostic message ${goQuote(stdout)}: ${reason}`,
      "",
      { cause: error },
    );
  }
}

/** The error document of the spec, with keys in any letter case, as Go's decoder accepts them. */
function decodeError(stdout: string): { code: number; msg: string; details: string } {
  const decoded = { code: 0 as unknown, msg: "" as unknown, details: "" as unknown };
  const document: unknown = JSON.parse(stdout) ?? {};
  if (!isObject(document)) throw new Error("it is not a JSON object");
  for (const [key, value] of Object.entries(document)) {
    const known = foldKey(key);
    if (value !== null && (known === "code" || known === "msg" || known === "details")) decoded[known] = value;
  }
  const { code, msg, details } = decoded;
  if (!Number.isInteger(code) || (code as number) < 0) throw new Error(`code ${JSON.stringify(code)} is no number`);
  if (typeof msg !== "string" || typeof details !== "string") throw new Error("msg and details have to be strings");
  return { code: code as number, msg, details };
}
