/**
 * One call of a plugin, as the runtime makes it: the CNI_* environment and the configuration on stdin (CNI spec 1.1.0,
 * "Section 2: Execution Protocol"). What is checked, in which order and in which words is the reference skeleton's.
 *
 * Versions are checked behind this, because they differ from plugin to plugin: `checkVersions` in versions.ts.
 */
import {
  CniError,
  DECODING_FAILURE,
  INVALID_CONFIG,
  INVALID_ENVIRONMENT,
  IO_FAILURE,
  UNKNOWN_CONTAINER,
} from "./error.ts";
import { decodeText, field, isObject, parseDocument } from "./json.ts";

export type Command = "ADD" | "DEL" | "CHECK" | "GC" | "STATUS" | "VERSION";

export interface Invocation {
  command: Command;
  containerId: string;
  /** CNI_NETNS word for word; "" when it was not given. */
  netnsPath: string;
  ifName: string;
  /** CNI_ARGS word for word. */
  cniArgs: string;
  /** CNI_PATH word for word. */
  path: string;
  /** The network configuration, JSON text. */
  stdin: string;
  /** CNI_NETNS_OVERRIDE: the container may share the namespace this process works in. */
  allowOwnNetns?: boolean;
}

/** The CNI_* variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads an environment block as in /proc/self/environ. `process.env` will not do: it takes the last of two variables
 * of one name where Go takes the first, and repairs bad UTF-8 in silence. Both are refused here.
 */
export function readEnvironment(block: Uint8Array): Environment {
  const found: Record<string, string | undefined> = Object.create(null);
  for (let start = 0; start < block.length;) {
    const nextZero = block.indexOf(0, start);
    const end = nextZero < 0 ? block.length : nextZero;
    if (isCniVariable(block, start)) {
      const text = decodeStrictly(block.subarray(start, end));
      const equals = text.indexOf("=");
      const name = equals < 0 ? text : text.slice(0, equals);
      if (found[name] !== undefined) throw invalidEnvironment(`${name} is set twice`);
      found[name] = equals < 0 ? "" : text.slice(equals + 1);
    }
    start = end + 1;
  }
  return found;
}

/** Starts with `CNI_`. */
function isCniVariable(block: Uint8Array, at: number): boolean {
  return block[at] === 0x43 && block[at + 1] === 0x4e && block[at + 2] === 0x49 && block[at + 3] === 0x5f;
}

const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decodeStrictly(bytes: Uint8Array): string {
  try {
    return strictDecoder.decode(bytes);
  } catch (cause) {
    throw new CniError(INVALID_ENVIRONMENT, `${decodeText(bytes).split("=")[0]} is not valid UTF-8`, "", { cause });
  }
}

interface Parameter {
  readonly name: string;
  readonly requiredBy: string;
  readonly check?: (value: string) => void;
}

/** In the order in which they are looked at, and named when they are missing. */
const parameters: readonly Parameter[] = [
  { name: "CNI_CONTAINERID", requiredBy: "ADD DEL CHECK", check: checkContainerId },
  { name: "CNI_NETNS", requiredBy: "ADD CHECK" },
  { name: "CNI_IFNAME", requiredBy: "ADD DEL CHECK", check: checkIfName },
  { name: "CNI_PATH", requiredBy: "ADD DEL CHECK GC STATUS" },
];

/**
 * Throws a CniError of code 4 for the environment, 5 for a stdin that cannot be read, 6 or 7 for a configuration
 * without a usable name. VERSION does not read stdin. Without a command a plugin introduces itself instead: about.ts.
 */
export function parseInvocation(environment: Environment, readStdin: () => Uint8Array): Invocation {
  const value = (name: string) => environment[name] ?? "";
  const command = value("CNI_COMMAND");
  const missing = command === "" ? ["CNI_COMMAND"] : [];
  for (const { name, requiredBy, check } of parameters) {
    if (!requiredBy.split(" ").includes(command)) continue;
    // What is there and wrong is reported before what is missing.
    if (value(name) === "") missing.push(name);
    else check?.(value(name));
  }
  if (missing.length > 0) throw invalidEnvironment(`required env variables [${missing.join(",")}] missing`);
  const stdin = command === "VERSION" ? "" : readConfig(readStdin);
  // Only now: the reference skeleton finds out when it dispatches, and runtimes look for the text.
  if (!isCommand(command)) throw invalidEnvironment(`unknown CNI_COMMAND: ${command}`);
  const invocation: Invocation = {
    command,
    containerId: value("CNI_CONTAINERID"),
    netnsPath: value("CNI_NETNS"),
    ifName: value("CNI_IFNAME"),
    cniArgs: value("CNI_ARGS"),
    path: value("CNI_PATH"),
    stdin,
  };
  if (["1", "true"].includes(value("CNI_NETNS_OVERRIDE").toLowerCase())) invocation.allowOwnNetns = true;
  return invocation;
}

function isCommand(text: string): text is Command {
  return ["ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"].includes(text);
}

function readConfig(readStdin: () => Uint8Array): string {
  let bytes: Uint8Array;
  try {
    bytes = readStdin();
  } catch (cause) {
    throw new CniError(IO_FAILURE, `error reading from stdin: ${(cause as Error).message}`, "", { cause });
  }
  const subject = "error unmarshall network config"; // The reference's words, and its spelling.
  const text = decodeText(bytes);
  const document = parseDocument(text, subject) ?? {};
  if (!isObject(document)) throw new CniError(DECODING_FAILURE, `${subject}: it must be an object`);
  const name = field(document, "name") ?? "";
  if (typeof name !== "string") {
    throw new CniError(DECODING_FAILURE, `${subject}: "name" must be a string, got ${JSON.stringify(name)}`);
  }
  if (name === "") throw new CniError(INVALID_CONFIG, "missing network name");
  checkNetworkName(name);
  return text;
}

const nameSyntax = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

export function checkContainerId(id: string): void {
  if (id === "") throw new CniError(UNKNOWN_CONTAINER, "missing containerID");
  if (!nameSyntax.test(id)) throw invalidEnvironment("invalid characters in containerID", id);
}

export function checkNetworkName(name: string): void {
  if (name === "") throw new CniError(INVALID_CONFIG, "missing network name:");
  if (!nameSyntax.test(name)) throw new CniError(INVALID_CONFIG, "invalid characters found in network name", name);
}

// linux/if.h, IFNAMSIZ without the terminating zero.
const IF_NAME_LIMIT_BYTES = 15;

export function checkIfName(name: string): void {
  if (name === "") throw invalidEnvironment("interface name is empty");
  if (new TextEncoder().encode(name).length > IF_NAME_LIMIT_BYTES) {
    const details = `interface name should be less than ${IF_NAME_LIMIT_BYTES + 1} characters`;
    throw invalidEnvironment("interface name is too long", details);
  }
  if (name === "." || name === "..") throw invalidEnvironment("interface name is . or ..");
  // Unicode's White_Space, which is not what \s stands for.
  if (/[/:\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/.test(name)) {
    throw invalidEnvironment("interface name contains / or : or whitespace characters");
  }
}

function invalidEnvironment(message: string, details = ""): CniError {
  return new CniError(INVALID_ENVIRONMENT, message, details);
}
