/**
 * What people are told of a configuration directory: all its networks, with those that cannot be loaded and why, and
 * why a lookup by name failed.
 *
 * A lookup stops at the first file it cannot read, so such a file hides the networks in the files after it.
 */
import { CniError, DECODING_FAILURE, errorText } from "../../cni/error.ts";
import { identify, isDirectory, listDirectory, readConfiguredFile } from "../../ffi/files.ts";
import { closestName, editDistance } from "../../cni/spelling.ts";
import type { Network } from "./network.ts";
import { NETWORK_ENDINGS, networkPaths, readNetwork } from "./network-file.ts";
import { JsonSyntaxError, lineAndColumn, parseWithPositions } from "./positioned-json.ts";

export interface NetworkFile {
  readonly path: string;
  /** Undefined when the file cannot be read as a network. */
  readonly network: Network | undefined;
  /** Why the file cannot be read. */
  readonly problem?: string;
  /** The earlier file that stops a lookup by name, or that has a network of the same name. */
  readonly hiddenBy?: string;
}

/** In the order of lookups; without files that hold a plugin without a name. */
export function listNetworkFiles(directory: string): NetworkFile[] {
  const files: NetworkFile[] = [];
  for (const path of networkPaths(directory)) {
    try {
      const network = readNetwork(path);
      if (network === undefined) continue;
      const before = files.find((file) => file.problem !== undefined || file.network?.name === network.name);
      files.push({ path, network, ...before && { hiddenBy: before.path } });
    } catch (error) {
      files.push({ path, network: undefined, problem: problemText(path, error) });
    }
  }
  return files;
}

/**
 * Nobody reads them, and a person may think so. Files of other names, as editors' copies, may stand beside; who sets one
 * aside adds a sign or a digit.
 */
export function misnamedFiles(directory: string): { path: string; meant: string }[] {
  return listDirectory(directory).filter((name) => /^[^.].*[a-z]$/i.test(name)).flatMap((name) => {
    const ending = name.slice(Math.max(name.lastIndexOf("."), 0)), path = `${directory}/${name}`;
    if (NETWORK_ENDINGS.includes(ending)) return [];
    const meant = NETWORK_ENDINGS.find((each) => editDistance(ending.toLowerCase(), each) <= 1);
    return meant === undefined || isDirectory(identify(path, false)) ? [] : [{ path, meant }];
  });
}

export function networkNames(directory: string): string[] {
  const names = listNetworkFiles(directory).flatMap(({ network }) => network === undefined ? [] : [network.name]);
  return [...new Set(names)];
}

/** For somebody who named a network that does not exist. */
export function knownNetworksHint(directory: string, name: string): string {
  const names = networkNames(directory);
  if (names.length === 0) return "";
  const meant = closestName(name, names);
  const question = meant === undefined ? "" : `did you mean "${meant}"? `;
  return `${question}there ${names.length === 1 ? "is" : "are"} ${names.join(", ")}`;
}

/** The error with the position in the file, and with the network of that name that the file hides. */
export function lookupError(path: string, error: unknown, name: string): CniError {
  const code = error instanceof CniError ? error.code : DECODING_FAILURE;
  const hidden = listNetworkFiles(path.slice(0, path.lastIndexOf("/")))
    .find((file) => file.network?.name === name && file.hiddenBy === path);
  const hides = hidden === undefined ? "" : `; it hides network "${name}" in ${hidden.path}`;
  const { message, position } = explain(path, error);
  const place = position === undefined ? path : `${path}:${position.line}:${position.column}`;
  const details = message.includes(path) ? hides.slice(2) : `${place}${hides}`;
  return new CniError(code, message, details, { cause: error });
}

function problemText(path: string, error: unknown): string {
  const { message, position } = explain(path, error);
  return position === undefined ? message : `${message} (line ${position.line}, column ${position.column})`;
}

/** Our own words and the position for a syntax error, as JSON.parse tells neither of it; else the error's text. */
function explain(path: string, error: unknown): { message: string; position?: { line: number; column: number } } {
  const message = errorText(error);
  let text: string | undefined;
  try {
    text = readConfiguredFile(path);
    if (text !== undefined) parseWithPositions(text);
  } catch (problem) {
    if (text !== undefined && problem instanceof JsonSyntaxError) {
      const subject = /^error parsing [a-z ]+/.exec(message)?.[0] ?? "error parsing configuration";
      return { message: `${subject}: ${problem.message}`, position: lineAndColumn(text, problem.offset) };
    }
  }
  return { message };
}
