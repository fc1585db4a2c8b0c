/**
 * All networks of a configuration directory, for people: also those that cannot be loaded, with the reason. Lookups by
 * name stop at the first file they cannot read, so such a file hides the networks in the files after it.
 */
import { CniError, DECODING_FAILURE, errorText } from "../cni/error.ts";
import { readTextFile } from "../ffi/files.ts";
import { type Network, networkPaths, readAnyNetwork } from "./conf.ts";
import { nearest } from "./cli/nearest.ts";
import { lineAndColumn, parse, SyntaxProblem } from "./lint/document.ts";

export interface NetworkFile {
  readonly path: string;
  /** Undefined when the file cannot be read as a network. */
  readonly network: Network | undefined;
  /** Why it cannot. */
  readonly problem?: string;
  /** The file before it that a lookup by name does not get past, or that has the same name. */
  readonly hiddenBy?: string;
}

/** In the order in which they are looked through; without those that are no networks. */
export function listNetworkFiles(directory: string): NetworkFile[] {
  const files: NetworkFile[] = [];
  for (const path of networkPaths(directory)) {
    try {
      const network = readAnyNetwork(path);
      if (network === undefined) continue;
      const before = files.find((file) => file.problem !== undefined || file.network?.name === network.name);
      files.push({ path, network, ...before && { hiddenBy: before.path } });
    } catch (error) {
      files.push({ path, network: undefined, problem: withPlace(path, error) });
    }
  }
  return files;
}

export function networkNames(directory: string): string[] {
  const names = listNetworkFiles(directory).flatMap(({ network }) => network === undefined ? [] : [network.name]);
  return [...new Set(names)];
}

/** What to say to somebody who named a network that is not there. */
export function hintFor(directory: string, name: string): string {
  const names = networkNames(directory);
  if (names.length === 0) return "";
  const meant = nearest(name, names);
  return `${meant === undefined ? "" : `did you mean "${meant}"? `}there ${names.length === 1 ? "is" : "are"} ${
    names.join(", ")
  }`;
}

/** The error with the file's place in its details, and with the file that it hides. */
export function located(path: string, error: unknown, name: string): CniError {
  const code = error instanceof CniError ? error.code : DECODING_FAILURE;
  const hidden = listNetworkFiles(path.slice(0, path.lastIndexOf("/")))
    .find((file) => file.network?.name === name && file.hiddenBy === path);
  const hides = hidden === undefined ? "" : `; it hides network "${name}" in ${hidden.path}`;
  const { message, place } = placed(path, error);
  const details = message.includes(path) ? hides.slice(2) : `${place}${hides}`;
  return new CniError(code, message, details, { cause: error });
}

function withPlace(path: string, error: unknown): string {
  const { message, place } = placed(path, error);
  return place === path ? message : `${message} (line ${place.slice(path.length + 1).replace(":", ", column ")})`;
}

function placed(path: string, error: unknown): { message: string; place: string } {
  const message = errorText(error);
  let text: string | undefined;
  try {
    text = readTextFile(path);
    if (text !== undefined) parse(text);
  } catch (problem) {
    if (text !== undefined && problem instanceof SyntaxProblem) {
      const { line, column } = lineAndColumn(text, problem.offset);
      const subject = /^error parsing [a-z ]+/.exec(message)?.[0] ?? "error parsing configuration";
      return { message: `${subject}: ${problem.message}`, place: `${path}:${line}:${column}` };
    }
  }
  return { message, place: path };
}
