/**
 * This process as netavark: podman and buildah call it with options, a subcommand and JSON on stdin. It prints JSON to
 * stdout, also for failures, and errors in the arguments to stderr.
 */
import { inCommand } from "../../../contract/trace.ts";
import { isHandedOver, leaveToCaller } from "../../../process/calls.ts";
import { SyscallError } from "../../../ffi/errno.ts";
import { closeFile, O_RDONLY, openFile, readAll } from "../../../ffi/files.ts";
import { print, printToStderr } from "../../../process/output.ts";
import { printAnswer } from "../../answers/answer.ts";
import { inNetavarksWords } from "../../../resources/netavark/shared/failure.ts";
import { type OptionRule, type ParsedOptions, parseOptions, RefusedArguments, shown } from "./arguments.ts";
import { commands, type Subcommand } from "./commands.ts";
import { commandHelp, programHelp, usage } from "./help.ts";
import { globalOptionsOf, requireConfig } from "./call.ts";
import { versionLine } from "./version.ts";

const USAGE_STATUS = 2;

const options: readonly OptionRule[] = [
  { long: "file", short: "f", value: "FILE", what: "Reads the JSON from a file instead of stdin" },
  { long: "firewall-driver", value: "FIREWALL_DRIVER", what: "nftables, firewalld or none [env: NETAVARK_FW=]" },
  { long: "config", short: "c", value: "CONFIG", what: "Directory for state and for aardvark-dns" },
  {
    long: "rootless",
    short: "r",
    value: "ROOTLESS",
    choices: ["true", "false"],
    what: "Whether the call is for a rootless container",
  },
  { long: "aardvark-binary", short: "a", value: "AARDVARK_BINARY", what: "Path of aardvark-dns" },
  {
    long: "plugin-directory",
    value: "PLUGIN_DIRECTORIES",
    repeats: true,
    what: "Where plugins are; may be given several times",
  },
];

/** Returns the exit status. */
export function runNetavark(args: readonly string[]): number {
  try {
    return run(args);
  } catch (error) {
    if (error instanceof SyscallError) {
      printToStderr(`netavark: ${error.message}`);
      return 1;
    }
    if (!(error instanceof RefusedArguments)) throw error;
    printToStderr(`error: ${error.message}\n\nFor more information, try '--help'.`);
    return USAGE_STATUS;
  }
}

function run(args: readonly string[]): number {
  const global = parseOptions(args, options, { knowsVersion: true }), [name, ...rest] = global.rest;
  if (global.wantsHelp) return printText(programHelp(options));
  if (global.wantsVersion) return printText(versionLine);
  if (name === undefined) {
    printToStderr(programHelp(options).trimEnd());
    return USAGE_STATUS;
  }
  if (name === "help") return printText(rest[0] === undefined ? programHelp(options) : helpFor(rest[0]));
  const command = commandNamed(name);
  const own = parseOptions(rest, command.options ?? [], { amongWords: true });
  if (own.wantsHelp) return printText(helpFor(name));
  const operand = operandOf(name, command, own);
  return printAnswer(() => inNetavarksWords(() => runCommand(name, command, { global, own, operand })));
}

function runCommand(
  name: string,
  command: Subcommand,
  { global, own, operand }: {
    global: ParsedOptions;
    own: ParsedOptions;
    operand: string;
  },
): object | number | undefined {
  if (isHandedOver() && (!command.isServed || global.values.has("file"))) leaveToCaller("command");
  if (command.needsConfig) requireConfig(global, name);
  const call = {
    options: globalOptionsOf(global),
    operand,
    values: (name: string) => own.values.get(name) ?? [],
    hasFile: global.values.has("file"),
    readInput: () => readInput(global.values.get("file")?.[0]),
  };
  return command.stays ? command.run(call) : inCommand(name, () => command.run(call));
}

function readInput(path: string | undefined): Uint8Array {
  if (path === undefined) return readAll(0, undefined, "stdin");
  const fd = openFile(path, O_RDONLY);
  try {
    return readAll(fd, undefined, path);
  } finally {
    closeFile(fd);
  }
}

function printText(text: string): number {
  print(text);
  return 0;
}

function commandNamed(name: string): Subcommand {
  if (!Object.hasOwn(commands, name)) throw new RefusedArguments(`unrecognized subcommand '${name}'`);
  return commands[name]!;
}

function helpFor(name: string): string {
  return commandHelp(name, commandNamed(name));
}

/** The word after the subcommand; empty when it takes none. */
function operandOf(name: string, command: Subcommand, { rest: [first, extra], values }: ParsedOptions): string {
  const { operand, options = [] } = command,
    refuse = (text: string) => new RefusedArguments(`${text}\n\n${usage(name, command)}`);
  const unexpected = operand === undefined ? first : extra;
  if (unexpected !== undefined) throw refuse(`unexpected argument '${unexpected}' found`);
  const missing = [
    ...options.filter(({ long, isRequired }) => isRequired && !values.has(long)).map(shown),
    ...operand !== undefined && first === undefined ? [`<${operand}>`] : [],
  ];
  if (missing.length > 0) {
    throw refuse(["the following required arguments were not provided:", ...missing].join("\n  "));
  }
  if (first === "") throw refuse(`a value is required for '<${operand}>' but none was supplied`);
  return first ?? "";
}
