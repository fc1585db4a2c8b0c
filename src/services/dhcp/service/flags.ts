/** The flags of `dhcp daemon`: the reference plugin's names, in Go's syntax. */
import { absolutePath } from "../../../ffi/absolute-path.ts";
import { DEFAULT_DIRECTORY, DEFAULT_SOCKET } from "../service-protocol.ts";

export interface Flags {
  socketPath: string;
  /** A prefix of the socket's path and of the paths of namespaces. */
  hostPrefix: string;
  pidFile: string;
  directory: string;
  broadcast: boolean;
  /** Seconds: the first wait for an answer, the longest one, and the time until ADD gives up. */
  timeout: number | undefined;
  longestPause: number | undefined;
  patience: number | undefined;
  /** The service ends after so many seconds without leases and requests. */
  idleAfter: number | undefined;
}

/** The text says what is wrong, and what the flags are. Without a problem, somebody asked for these. */
export class WrongFlags extends Error {
  constructor(readonly problem: string) {
    super(problem === "" ? serviceUsage() : `${problem}\n${serviceUsage()}`);
  }
}

export const flagsOfService: Readonly<Record<string, { value?: string; help: string }>> = {
  broadcast: { help: "ask servers for answers that every host of the link receives" },
  datadir: { value: "DIR", help: `directory of the leases (${DEFAULT_DIRECTORY})` },
  hostprefix: { value: "PATH", help: "where the host's root directory is, for a service in a container" },
  pidfile: { value: "FILE", help: "write the process id to this file" },
  resendmax: { value: "DURATION", help: "the longest wait between two messages of an ADD (16s)" },
  resendtimeout: {
    value: "DURATION",
    help: "how long ADD tries, and STATUS fails after an ADD that got no address (1m)",
  },
  socketpath: { value: "PATH", help: `listen here (${DEFAULT_SOCKET})` },
  timeout: { value: "DURATION", help: "the first wait for an answer (250ms)" },
};

/** What is wrong with them. */
export function problemOf(args: readonly string[], dash: string): string | undefined {
  try {
    parseFlags(args, dash);
    return undefined;
  } catch (error) {
    if (error instanceof WrongFlags) return error.problem;
    throw error;
  }
}

/** `dash` is what stands before a flag in an error. */
export function parseFlags(args: readonly string[], dash = "-"): Flags {
  const values = new Map<string, string>(), queue = [...args];
  for (let arg = queue.shift(); arg !== undefined; arg = queue.shift()) {
    const [, name = "", hasValue, attached = ""] = /^--?([^-=][^=]*)(=)?([^]*)$/.exec(arg) ?? [];
    const flag = Object.hasOwn(flagsOfService, name) ? flagsOfService[name] : undefined;
    if (name === "h" || name === "help") throw new WrongFlags("");
    if (flag === undefined) throw new WrongFlags(`flag provided but not defined: ${arg}`);
    const value = flag.value === undefined ? (hasValue ? attached : "true") : hasValue ? attached : queue.shift();
    if (value === undefined) throw new WrongFlags(`flag needs an argument: ${dash}${name}`);
    values.set(name, value);
  }
  const text = (name: string, otherwise = "") => values.get(name) ?? otherwise;
  const seconds = (name: string) => values.has(name) ? durationOf(dash + name, text(name)) : undefined;
  const pidFile = text("pidfile");
  // The reference plugin's words.
  if (pidFile !== "" && !pidFile.startsWith("/")) {
    throw new Error(`Error writing pidfile "${pidFile}": path not absolute`);
  }
  return {
    socketPath: text("hostprefix") + text("socketpath", DEFAULT_SOCKET),
    hostPrefix: text("hostprefix"),
    pidFile,
    directory: directoryOf(`${dash}datadir`, text("datadir", DEFAULT_DIRECTORY)),
    broadcast: booleanOf(`${dash}broadcast`, text("broadcast", "false")),
    timeout: seconds("timeout"),
    longestPause: seconds("resendmax"),
    patience: seconds("resendtimeout"),
    idleAfter: undefined,
  };
}

const units: Record<string, number> = { h: 3600, m: 60, s: 1, ms: 1e-3, us: 1e-6, µs: 1e-6, ns: 1e-9 };

/** Go's syntax: 1m30s, 500ms. */
function durationOf(flag: string, text: string): number {
  const isWhole = /^(\d+(\.\d+)?(h|ms|m|s|us|µs|ns))+$/.test(text);
  let seconds = 0;
  for (const [, number, , unit] of text.matchAll(/(\d+(\.\d+)?)(h|ms|m|s|us|µs|ns)/g)) {
    seconds += Number(number) * units[unit!]!;
  }
  if (isWhole && seconds > 0) return seconds;
  throw new WrongFlags(`invalid value "${text}" for flag ${flag}: a duration such as 1m30s expected`);
}

/** An empty one would mean the working directory. */
function directoryOf(flag: string, text: string): string {
  if (text === "") throw new WrongFlags(`invalid value "" for flag ${flag}: a directory expected`);
  return absolutePath(text);
}

function booleanOf(flag: string, text: string): boolean {
  if (/^(1|t|T|true|TRUE|True)$/.test(text)) return true;
  if (/^(0|f|F|false|FALSE|False)$/.test(text)) return false;
  throw new WrongFlags(`invalid boolean value "${text}" for ${flag}`);
}

/** How long to wait between messages while somebody waits, in seconds; undefined for the usual pauses. */
export function pausesOf({ timeout, longestPause }: Pick<Flags, "timeout" | "longestPause">): number[] | undefined {
  if (timeout === undefined && longestPause === undefined) return undefined;
  const first = timeout ?? 1;
  return [1, 2, 4, 8, 16].map((factor) => Math.min(first * factor, longestPause ?? Infinity));
}

export function serviceUsage(): string {
  const lines = Object.entries(flagsOfService).map(([name, { value, help }]) =>
    `  -${name}${value ? ` ${value}` : ""}\n    \t${help}`
  );
  return ["Usage of daemon:", ...lines].join("\n");
}
