/**
 * A driver that is another program: netavark's plugin API 1.0.0, with a document on stdin, and a document or `{"error":…}`
 * on stdout.
 */
import { isObject, type Parsed, parseDocument } from "../../cni/json.ts";
import { spanForChild } from "../../contract/trace.ts";
import { environmentForChild } from "../../ffi/environment.ts";
import { utf8 } from "../../ffi/libc.ts";
import { runTrusted } from "../../process/trusted-executable.ts";
import { failureText } from "../../resources/netavark/shared/failure.ts";
import { identify, isRegularFile } from "../../ffi/files.ts";

/** Returns its stdout. Its stderr is ours. */
export function runForeignDriver(path: string, args: readonly string[], input: object): Uint8Array {
  const environment = environmentForChild(spanForChild());
  const program = { path, argv: [path, ...args], environment, patienceMs: Infinity };
  const { ending, stdout } = runTrusted(program, utf8(JSON.stringify(input)), { stderr: 2 });
  const name = `plugin ${JSON.stringify(driverName(path))}`;
  if ("signal" in ending) throw new Error(`${name} killed by signal`);
  if (ending.exitStatus === 0) return stdout;
  const message = messageIn(stdout);
  if (typeof message === "string") throw new Error(`exit code ${ending.exitStatus}, message: ${message}`);
  throw new Error(`${name}: exit code ${ending.exitStatus}, parse error: ${message.reason}`);
}

export function driverName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function messageIn(stdout: Uint8Array): string | { reason: string } {
  try {
    const document = parseDocument(stdout, "stdout");
    if (isObject(document) && typeof document["error"] === "string") return document["error"];
    return { reason: 'stdout has no text under "error"' };
  } catch (error) {
    return { reason: failureText(error) };
  }
}

/** What the driver returned, as `decode` reads it. */
export function readDriverAnswer<Answer>(stdout: Uint8Array, decode: (document: Parsed) => Answer): Answer {
  try {
    return decode(parseDocument(stdout, "stdout"));
  } catch (error) {
    throw new Error(`JSON Decoding error: ${failureText(error)}`, { cause: error });
  }
}

const EXECUTABLE = 0o111;

/** Returns the first executable file of that name. */
export function findForeignDriver(directories: readonly string[], driver: string): string | undefined {
  // The name comes from a network's file, and must not lead out of the directories.
  if (driver.includes("/") || driver === "") return undefined;
  return directories.map((directory) => `${directory}/${driver}`).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    const file = identify(path);
    return isRegularFile(file) && (file.mode & EXECUTABLE) !== 0;
  } catch {
    return false;
  }
}
