/** Runs a netavark plugin (plugin API 1.0.0): a document on stdin, a document or `{"error":…}` on stdout. */
import { isObject, type Parsed, parseDocument } from "../../cni/json.ts";
import { environmentForChild } from "../../ffi/environment.ts";
import { utf8 } from "../../ffi/libc.ts";
import { runTrusted } from "../../ffi/trusted-executable.ts";
import { failureText } from "../../resources/netavark/shared/failure.ts";

/** Returns its stdout. Its stderr is ours. */
export function runPlugin(path: string, args: readonly string[], input: object): Uint8Array {
  const program = { path, argv: [path, ...args], environment: environmentForChild(), patienceMs: Infinity };
  const { ending, stdout } = runTrusted(program, utf8(JSON.stringify(input)), { stderr: 2 });
  const name = `plugin ${JSON.stringify(pluginName(path))}`;
  if ("signal" in ending) throw new Error(`${name} killed by signal`);
  if (ending.exitStatus === 0) return stdout;
  const message = messageIn(stdout);
  if (typeof message === "string") throw new Error(`exit code ${ending.exitStatus}, message: ${message}`);
  throw new Error(`${name}: exit code ${ending.exitStatus}, parse error: ${message.reason}`);
}

export function pluginName(path: string): string {
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

/** What a plugin answered, as `decode` reads it. */
export function readAnswer<Answer>(stdout: Uint8Array, decode: (document: Parsed) => Answer): Answer {
  try {
    return decode(parseDocument(stdout, "stdout"));
  } catch (error) {
    throw new Error(`JSON Decoding error: ${failureText(error)}`, { cause: error });
  }
}
