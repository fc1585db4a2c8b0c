/**
 * A plugin call: the CNI_* environment and the configuration on stdin (CNI spec 1.1.0, "Section 2: Execution Protocol").
 * The checks, their order and their texts are those of the reference skeleton.
 *
 * `checkVersions` in versions.ts checks versions later, because they differ from plugin to plugin.
 */
import {
  CniError,
  DECODING_FAILURE,
  INVALID_CONFIG,
  INVALID_ENVIRONMENT,
  IO_FAILURE,
  UNKNOWN_CONTAINER,
} from "./error.ts";
import { decodeText, field, isObject, type ParsedObject, parseDocument } from "./json.ts";

export type Verb = "ADD" | "DEL" | "CHECK" | "GC" | "STATUS" | "VERSION";

export interface Invocation {
  command: Verb;
  containerId: string;
  /** CNI_NETNS verbatim; "" when it is not set. */
  netnsPath: string;
  ifName: string;
  /** CNI_ARGS verbatim. */
  cniArgs: string;
  /** CNI_PATH verbatim. */
  path: string;
  /** The network configuration, JSON text. */
  stdin: string;
  /** `stdin` parsed, if that has been done: keys as written, only the name checked. */
  document?: ParsedObject;
  /** CNI_NETNS_OVERRIDE: the container may have the network namespace of this process. */
  allowOwnNetns?: boolean;
}

/** For work on a host that no call asks for: nobody reads it. */
export const NO_CALL: Invocation = {
  command: "DEL",
  containerId: "",
  netnsPath: "",
  ifName: "",
  cniArgs: "",
  path: "",
  stdin: "{}",
};

/** The CNI_* variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads an environment block as in /proc/self/environ. Rejects repeated variables and invalid UTF-8; `process.env` takes
 * the last of repeated variables where Go takes the first, and replaces invalid UTF-8.
 */
export function readEnvironment(block: Uint8Array): Environment {
  const found: Record<string, string | undefined> = Object.create(null);
  for (const entry of decodeText(block).split("\0")) {
    if (!entry.startsWith("CNI_")) continue;
    const equals = entry.indexOf("=");
    const name = equals < 0 ? entry : entry.slice(0, equals);
    const value = equals < 0 ? "" : entry.slice(equals + 1);
    if (found[name] !== undefined) throw invalidEnvironment(`${name} is set twice`);
    if (entry.includes("\ufffd") && !contains(block, entry)) throw invalidEnvironment(`${name} is not valid UTF-8`);
    found[name] = value;
  }
  return found;
}

/** Decoding replaces invalid UTF-8 with U+FFFD, which encodes to other bytes than those in the block. */
function contains(block: Uint8Array, entry: string): boolean {
  return Buffer.from(block).includes(entry);
}

interface Parameter {
  readonly name: string;
  readonly requiredBy: readonly string[];
  readonly check?: (value: string) => void;
}

/** In the order in which they are checked, and listed when they are missing. */
const parameters: readonly Parameter[] = [
  { name: "CNI_CONTAINERID", requiredBy: ["ADD", "DEL", "CHECK"], check: checkContainerId },
  { name: "CNI_NETNS", requiredBy: ["ADD", "CHECK"] },
  { name: "CNI_IFNAME", requiredBy: ["ADD", "DEL", "CHECK"], check: checkGivenIfName },
  { name: "CNI_PATH", requiredBy: ["ADD", "DEL", "CHECK", "GC", "STATUS"] },
];

/**
 * Throws a CniError of code 4 for the environment, 5 for an unreadable stdin, 6 or 7 for a configuration without a valid
 * name. VERSION does not read stdin. For a call without a command see about.ts.
 */
export function parseInvocation(environment: Environment, readStdin: () => Uint8Array): Invocation {
  const value = (name: string) => environment[name] ?? "";
  const command = value("CNI_COMMAND");
  const missing = command === "" ? ["CNI_COMMAND"] : [];
  for (const { name, requiredBy, check } of parameters) {
    if (!requiredBy.includes(command)) continue;
    // Invalid variables are reported before missing ones.
    if (value(name) === "") missing.push(name);
    else check?.(value(name));
  }
  if (missing.length > 0) throw invalidEnvironment(`required env variables [${missing.join(",")}] missing`);
  const config = command === "VERSION" ? undefined : readConfig(readStdin);
  // Checked last, like in the reference skeleton; runtimes match the text.
  if (!isVerb(command)) throw invalidEnvironment(`unknown CNI_COMMAND: ${command}`);
  const invocation: Invocation = {
    command,
    containerId: value("CNI_CONTAINERID"),
    netnsPath: value("CNI_NETNS"),
    ifName: value("CNI_IFNAME"),
    cniArgs: value("CNI_ARGS"),
    path: value("CNI_PATH"),
    stdin: config?.text ?? "",
    document: config?.document,
  };
  if (["1", "true"].includes(value("CNI_NETNS_OVERRIDE").toLowerCase())) invocation.allowOwnNetns = true;
  return invocation;
}

function isVerb(text: string): text is Verb {
  return ["ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"].includes(text);
}

function readConfig(readStdin: () => Uint8Array): { text: string; document: ParsedObject } {
  let bytes: Uint8Array;
  try {
    bytes = readStdin();
  } catch (cause) {
    throw new CniError(IO_FAILURE, `error reading from stdin: ${(cause as Error).message}`, "", { cause });
  }
  const subject = "error unmarshall network config"; // The text of the reference.
  const text = decodeText(bytes);
  const document = parseDocument(text, subject);
  if (document === null) throw new CniError(INVALID_CONFIG, "missing network name");
  if (!isObject(document)) throw new CniError(DECODING_FAILURE, `${subject}: it must be an object`);
  const name = field(document, "name") ?? "";
  if (typeof name !== "string") {
    throw new CniError(DECODING_FAILURE, `${subject}: "name" must be a string, got ${JSON.stringify(name)}`);
  }
  if (name === "") throw new CniError(INVALID_CONFIG, "missing network name");
  checkNetworkName(name);
  return { text, document };
}

export function checkContainerId(id: string): void {
  if (id === "") throw new CniError(UNKNOWN_CONTAINER, "missing containerID");
  if (isName(id)) return;
  throw invalidEnvironment("invalid characters in containerID", id, `${NAMES}; --container-id chooses another ID`);
}

export function checkNetworkName(name: string): void {
  if (name === "") throw new CniError(INVALID_CONFIG, "missing network name:");
  if (isName(name)) return;
  throw new CniError(INVALID_CONFIG, "invalid characters found in network name", name, { nextStep: NAMES });
}

const NAMES = 'CNI takes letters, digits, "_", "." and "-", with a letter or digit first';

/** An ASCII letter or digit, then any of those, `_`, `.` and `-`. */
function isName(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index), letter = code | 0x20;
    const alphanumeric = (code >= 0x30 && code <= 0x39) || (letter >= 0x61 && letter <= 0x7a);
    if (!alphanumeric && (index === 0 || (code !== 0x5f && code !== 0x2e && code !== 0x2d))) return false;
  }
  return true;
}

// linux/if.h, IFNAMSIZ without the terminating zero.
const IF_NAME_LIMIT_BYTES = 15;

export function checkIfName(name: string): void {
  if (name === "") throw invalidEnvironment("interface name is empty");
  const ordinary = isName(name);
  if ((ordinary ? name.length : byteLength(name)) > IF_NAME_LIMIT_BYTES) {
    const details = `interface name should be less than ${IF_NAME_LIMIT_BYTES + 1} characters`;
    throw invalidEnvironment("interface name is too long", details);
  }
  if (name === "." || name === "..") throw invalidEnvironment("interface name is . or ..");
  if (!ordinary && hasSeparator(name)) {
    throw invalidEnvironment("interface name contains / or : or whitespace characters");
  }
  if (!ordinary && name.includes("%")) {
    throw invalidEnvironment("interface name contains %", "the kernel would put a number there");
  }
}

/** `checkIfName` for CNI_IFNAME, whose value stands in no other part of the error. */
export function checkGivenIfName(name: string): void {
  try {
    checkIfName(name);
  } catch (error) {
    const { message, details } = error as CniError, value = `CNI_IFNAME is "${name}"`;
    throw invalidEnvironment(message, details === "" ? value : `${details}; ${value}`, IF_NAMES);
  }
}

const IF_NAMES =
  '--ifname or $CNI_IFNAME has at most 15 bytes, none of them "/", ":", "%" or white space, as in eth0';

// Functions of their own: a process that does not call them does not pay for `Buffer` and the regular expression, which
// cost more than the rest of this file.

function byteLength(text: string): number {
  return Buffer.byteLength(text);
}

/** `/`, `:` or Unicode's White_Space, which differs from \s. */
function hasSeparator(name: string): boolean {
  return /[/:\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/.test(name);
}

function invalidEnvironment(message: string, details = "", nextStep?: string): CniError {
  return new CniError(INVALID_ENVIRONMENT, message, details, { nextStep });
}
