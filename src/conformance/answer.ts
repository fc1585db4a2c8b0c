/** What one call of a plugin has answered, and how it is told. */
import { DOCUMENT_LIMIT_DEPTH, isObject, nestsDeeper } from "../cni/json.ts";
import { fromUtf8 } from "../ffi/libc.ts";
import type { Finished } from "../process/run-program.ts";
import { describeEnding } from "../ffi/spawn.ts";
import { UnmetDemand } from "./unmet-demand.ts";

/** Longer than any result: an engine would have to keep it. */
const LONGEST_OUTPUT_BYTES = 1024 * 1024;
const SHOWN = 300;

export interface PluginAnswer {
  command: string;
  ending: string;
  isSuccess: boolean;
  exitStatus: number | undefined;
  stdout: string;
  stderr: string;
}

/** Throws an UnmetDemand when the plugin was ended by a signal or has said too much. */
export function pluginAnswerOf(command: string, { ending, stdout, stderr }: Finished): PluginAnswer {
  const exitStatus = "exitStatus" in ending ? ending.exitStatus : undefined;
  for (const [name, bytes] of Object.entries({ stdout, stderr })) {
    if (bytes.length <= LONGEST_OUTPUT_BYTES) continue;
    const [begins] = [fromUtf8(bytes.subarray(0, 60))];
    throw new UnmetDemand(`${command} wrote ${bytes.length} bytes or more to ${name}: ${shown(begins!)}`);
  }
  const answer = {
    command,
    ending: describeEnding(ending),
    isSuccess: exitStatus === 0,
    exitStatus,
    stdout: fromUtf8(stdout),
    stderr: fromUtf8(stderr),
  };
  if (exitStatus === undefined) throw new UnmetDemand(`${command} was ended by ${answer.ending}${outputs(answer)}`);
  return answer;
}

export function told(answer: PluginAnswer): string {
  return `${answer.command} ended with ${answer.ending}${outputs(answer)}`;
}

function outputs({ stdout, stderr }: PluginAnswer): string {
  const texts = [stdout === "" ? ", nothing on stdout" : `, stdout ${shown(stdout)}`];
  if (stderr !== "") texts.push(`stderr ${shown(stderr)}`);
  return texts.join(", ");
}

function shown(text: string): string {
  const line = text.trim().replace(/\s+/g, " ");
  return line.length <= SHOWN ? line : `${line.slice(0, SHOWN)}… (${text.length} characters)`;
}

export function requireSuccess(answer: PluginAnswer, when = ""): void {
  if (!answer.isSuccess) throw new UnmetDemand(`${told(answer)}${when}`);
}

/** The one JSON object on stdout. */
export function printedDocument(answer: PluginAnswer): Record<string, unknown> {
  let document: unknown;
  try {
    document = JSON.parse(answer.stdout);
  } catch {
    throw new UnmetDemand(`stdout is not one JSON document: ${told(answer)}`);
  }
  if (nestsDeeper(document, DOCUMENT_LIMIT_DEPTH)) {
    throw new UnmetDemand(`the document on stdout nests deeper than ${DOCUMENT_LIMIT_DEPTH}: ${told(answer)}`);
  }
  if (!isObject(document)) throw new UnmetDemand(`stdout is no JSON object: ${told(answer)}`);
  return document;
}

/** Throws unless the answer is an error, with this code if one is given. */
export function requireError(answer: PluginAnswer, code?: number): Record<string, unknown> {
  if (answer.isSuccess) throw new UnmetDemand(`no error: ${told(answer)}`);
  const document = printedDocument(answer);
  if (typeof document.code !== "number") throw new UnmetDemand(`the error has no numeric "code": ${told(answer)}`);
  if (code !== undefined && document.code !== code) {
    throw new UnmetDemand(`the error's code is ${document.code} instead of ${code}: ${told(answer)}`);
  }
  return document;
}

/** Throws when a success has said something on stdout. */
export function requireSilence(answer: PluginAnswer): void {
  if (answer.stdout.trim() !== "") throw new UnmetDemand(`it says something on stdout: ${told(answer)}`);
}
