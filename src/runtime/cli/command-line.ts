/**
 * `patchbay COMMAND …`, and `cnitool COMMAND …` with that program's forms of help and errors.
 */
import { errorText } from "../../cni/error.ts";
import { pluginNames } from "../../plugins/table.ts";
import { VERSION } from "../../version.ts";
import {
  awaitsValue,
  columns,
  type Command,
  describeOptions,
  type Given,
  type Options,
  parseArguments,
  UsageError,
} from "./command.ts";
import { nearest } from "./nearest.ts";
import { complain, print } from "./print.ts";

/** What completion scripts call, with the words so far. */
const COMPLETE = "__complete";

const networkCommands: Record<string, () => Command> = {
  add: () => (require("./add.ts") as typeof import("./add.ts")).addCommand,
  check: () => (require("./check.ts") as typeof import("./check.ts")).checkCommand,
  del: () => (require("./del.ts") as typeof import("./del.ts")).delCommand,
  gc: () => (require("./gc.ts") as typeof import("./gc.ts")).gcCommand,
  status: () => (require("./status.ts") as typeof import("./status.ts")).statusCommand,
  completion: () => (require("./completion.ts") as typeof import("./completion.ts")).completionCommand,
};

const cnitoolCommands: Record<string, () => Command> = {
  ...networkCommands,
  gc: () => (require("./gc.ts") as typeof import("./gc.ts")).cnitoolGcCommand,
};

const ownCommands: Record<string, () => Command> = {
  ...networkCommands,
  inspect: () => (require("./inspect.ts") as typeof import("./inspect.ts")).inspectCommand,
  install: () => (require("./install.ts") as typeof import("./install.ts")).installCommand,
  ipam: () => (require("./ipam.ts") as typeof import("./ipam.ts")).ipamCommand,
  lint: () => (require("./lint.ts") as typeof import("./lint.ts")).lintCommand,
  networks: () => (require("./networks.ts") as typeof import("./networks.ts")).networksCommand,
  plan: () => (require("./plan.ts") as typeof import("./plan.ts")).planCommand,
  repair: () => (require("./repair.ts") as typeof import("./repair.ts")).repairCommand,
  version: () => (require("./version.ts") as typeof import("./version.ts")).versionCommand,
};

const ownAliases = { ls: "networks" };

interface Program {
  name: string;
  commands: Record<string, () => Command>;
  /** Other names that people try. */
  aliases: Record<string, string>;
  /** Called as cnitool: errors and exit statuses are that program's. */
  isCnitool: boolean;
}

/** Answers the exit status: 0, 1 when the command failed, 2 when it was not understood. */
export function runCommandLine(calledAs: string, args: readonly string[]): number {
  const isCnitool = calledAs === "cnitool";
  const program = isCnitool
    ? { name: "cnitool", commands: cnitoolCommands, aliases: {}, isCnitool }
    : { name: "patchbay", commands: ownCommands, aliases: ownAliases, isCnitool };
  try {
    return dispatch(program, args);
  } catch (error) {
    complain(`${program.name}: ${errorText(error)}`);
    return 1;
  }
}

function dispatch(program: Program, args: readonly string[]): number {
  const [name, ...rest] = optionsBehind(program, args);
  if (name === undefined || isHelp(name)) return printHelp(program);
  if (name === "help") return rest[0] === undefined ? printHelp(program) : dispatch(program, [rest[0], "--help"]);
  if (name === "--version") return dispatch(program, ["version"]);
  if (name === COMPLETE) return complete(program, rest);
  const load = commandOf(program, name);
  return load === undefined ? refuseUnknown(program, name) : run(program, name, load(), rest);
}

const isHelp = (arg: string | undefined) => arg === "--help" || arg === "-h";

function commandOf({ commands, aliases }: Program, name: string): (() => Command) | undefined {
  const known = Object.hasOwn(aliases, name) ? aliases[name]! : name;
  return Object.hasOwn(commands, known) ? commands[known] : undefined;
}

/** `-i net1 add …` is `add -i net1 …`, as with cnitool. */
function optionsBehind(program: Program, args: readonly string[]): readonly string[] {
  if (!args[0]?.startsWith("-")) return args;
  const options: Options = Object.assign({}, ...Object.values(program.commands).map((load) => load().options));
  let at = 0;
  while (args[at]?.startsWith("-")) {
    if (isHelp(args[at]) || args[at] === "--version") return [args[at]!];
    at += awaitsValue(args[at]!, options) ? 2 : 1;
  }
  return args[at] === undefined ? args : [args[at]!, ...args.slice(0, at), ...args.slice(at + 1)];
}

function complete(program: Program, words: readonly string[]): number {
  const { candidates } = require("./completion.ts") as typeof import("./completion.ts");
  const { commands, aliases } = program;
  print(candidates({ commands, aliases }, words).map((line) => `${line}\n`).join(""));
  return 0;
}

const helpOption: Options = { help: { short: "h", help: "" } };

function run(program: Program, name: string, command: Command, args: readonly string[]): number {
  try {
    const given = parseArguments(args, { ...command.options, ...helpOption });
    if (given.has("help")) {
      print(`${usage(program, name, command)}\n${command.summary}\n${details(command)}`);
      return 0;
    }
    checkOperands(program, command, given);
    if (command.needsRoot && !program.isCnitool) tellUnlessRoot(name);
    return command.run(given, program.name);
  } catch (error) {
    const text = errorText(error);
    if (program.isCnitool) {
      complain(`Error: ${text}\n${usage(program, name, command)}${details(command)}\n${text}`);
      return 1;
    }
    if (!(error instanceof UsageError)) {
      complain(`patchbay ${name}: ${text}`);
      return 1;
    }
    complain(`patchbay ${name}: ${text}\n${usage(program, name, command)}See 'patchbay help ${name}'.`);
    return 2;
  }
}

function tellUnlessRoot(name: string): void {
  const { whyNotRoot } = require("./root.ts") as typeof import("./root.ts");
  const reason = whyNotRoot();
  if (reason !== undefined) complain(`patchbay ${name}: ${reason}`);
}

function checkOperands(program: Program, command: Command, { operands }: Given): void {
  const [least, most] = command.operandCount;
  if (operands.length < least) {
    throw new UsageError(
      program.isCnitool
        ? `requires at least ${least} arg(s), only received ${operands.length}`
        : `${command.operands} expected`,
    );
  }
  // cnitool takes no notice of what is too much.
  if (operands.length > most && !program.isCnitool) throw new UsageError(`"${operands[most]}" is one too many`);
}

function refuseUnknown(program: Program, name: string): number {
  if (program.isCnitool) {
    const text = `unknown command "${name}" for "cnitool"`;
    complain(`Error: ${text}\nRun 'cnitool --help' for usage.\n${text}`);
    return 1;
  }
  const meant = nearest(name, ["help", ...Object.keys(program.commands)]);
  complain(
    `patchbay: unknown command "${name}"${meant === undefined ? "" : `; did you mean "${meant}"?`}\n` +
      "See 'patchbay help'.",
  );
  return 2;
}

function usage({ name: program }: Program, name: string, { operands, options }: Command): string {
  const parts = [program, name, Object.keys(options).length > 0 ? "[OPTIONS]" : "", operands];
  return `Usage: ${parts.filter((part) => part !== "").join(" ")}\n`;
}

function details({ options, notes }: Command): string {
  const described = Object.keys(options).length > 0 ? `\nOptions:\n${describeOptions(options)}` : "";
  return described + (notes === undefined ? "" : `\n${notes}`);
}

function printHelp(program: Program): number {
  const commands = columns(
    Object.entries(program.commands).map(([name, load]) => [name, load().summary] as const),
  );
  const head = `Usage: ${program.name} COMMAND [ARGUMENTS]\n\nCommands:\n${commands}\n`;
  print(
    program.isCnitool
      ? `${head}'cnitool help COMMAND' tells more.\n`
      : `patchbay ${VERSION}: CNI runtime and plugins in one program\n\n${head}` +
        `'patchbay help COMMAND' tells more.\n\n` +
        `Called by one of these names it is that plugin: ${pluginNames.join(", ")}.\n` +
        `'patchbay install DIR' makes the names. Without CNI_PATH, networks use the plugins in this program.\n`,
  );
  return 0;
}
