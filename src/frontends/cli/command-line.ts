/** `patchbay COMMAND …`, and `cnitool COMMAND …` with cnitool's texts for help and errors. */
import { errorText } from "../../cni/error.ts";
import { inCommand } from "../../contract/trace.ts";
import { isHandedOver, leaveToCaller } from "../../process/calls.ts";
import { missingPrivileges } from "../../ffi/capabilities.ts";
import { releaseInterruptions } from "../../process/interruption.ts";
import { pluginNames } from "../../plugins/table.ts";
import { SUMMARY, VERSION } from "../../process/version.ts";
import {
  awaitsValue,
  columns,
  type Command,
  describeOptions,
  type Example,
  type ExitStatus,
  type GivenArguments,
  type OptionTable,
  parseArguments,
  UsageError,
} from "./command.ts";
import { closestName } from "../../cni/spelling.ts";
import { printError } from "../answers/answer.ts";
import { hasReaderEnough, print, printingAfterwards, printToStderr } from "../../process/output.ts";

/** Completion scripts call these hidden commands with the words typed so far. */
const COMPLETE = "__complete", DESCRIBE = "__describe";

const networkCommands: Record<string, () => Command> = {
  add: () => (require("./commands/add.ts") as typeof import("./commands/add.ts")).addCommand,
  check: () => (require("./commands/check.ts") as typeof import("./commands/check.ts")).checkCommand,
  del: () => (require("./commands/del.ts") as typeof import("./commands/del.ts")).delCommand,
  gc: () => (require("./commands/gc.ts") as typeof import("./commands/gc.ts")).gcCommand,
  status: () => (require("./commands/status.ts") as typeof import("./commands/status.ts")).statusCommand,
  completion: () =>
    (require("./commands/completion.ts") as typeof import("./commands/completion.ts")).completionCommand,
};

export const cnitoolCommands: Record<string, () => Command> = {
  ...networkCommands,
  check: () => (require("./commands/check.ts") as typeof import("./commands/check.ts")).cnitoolCheckCommand,
  del: () => (require("./commands/del.ts") as typeof import("./commands/del.ts")).cnitoolDelCommand,
  gc: () => (require("./commands/gc.ts") as typeof import("./commands/gc.ts")).cnitoolGcCommand,
};

export const ownCommands: Record<string, () => Command> = {
  ...networkCommands,
  conformance: () =>
    (require("./commands/conformance.ts") as typeof import("./commands/conformance.ts")).conformanceCommand,
  dhcp: () => (require("./commands/daemon.ts") as typeof import("./commands/daemon.ts")).daemonCommand("dhcp"),
  hook: () => (require("./commands/hook.ts") as typeof import("./commands/hook.ts")).hookCommand,
  explain: () => (require("./commands/explain.ts") as typeof import("./commands/explain.ts")).explainCommand,
  inspect: () => (require("./commands/inspect.ts") as typeof import("./commands/inspect.ts")).inspectCommand,
  install: () => (require("./commands/install.ts") as typeof import("./commands/install.ts")).installCommand,
  ipam: () => (require("./commands/ipam.ts") as typeof import("./commands/ipam.ts")).ipamCommand,
  lint: () => (require("./commands/lint.ts") as typeof import("./commands/lint.ts")).lintCommand,
  network: () => (require("./commands/network.ts") as typeof import("./commands/network.ts")).networkCommand,
  networks: () => (require("./commands/networks.ts") as typeof import("./commands/networks.ts")).networksCommand,
  node: () => (require("./commands/node.ts") as typeof import("./commands/node.ts")).nodeCommand,
  plan: () => (require("./commands/plan.ts") as typeof import("./commands/plan.ts")).planCommand,
  pool: () => (require("./commands/pool.ts") as typeof import("./commands/pool.ts")).poolCommand,
  repair: () => (require("./commands/repair.ts") as typeof import("./commands/repair.ts")).repairCommand,
  serve: () => (require("./commands/serve.ts") as typeof import("./commands/serve.ts")).serveCommand,
  version: () => (require("./commands/version.ts") as typeof import("./commands/version.ts")).versionCommand,
};

export const ownAliases = { ls: "networks" };

export const OTHER_NAMES = `Called by one of these names, patchbay is that plugin: ${pluginNames.join(", ")}.\n` +
  "A prefix may stand before the name, as in buildkit-cni-bridge.\n" +
  `'patchbay install DIR' makes links with these names. Without CNI_PATH, networks use the plugins in patchbay.\n\n` +
  "podman and netavark call create, setup, teardown and info, when patchbay is linked as a network driver:\n" +
  "'patchbay install --podman' makes the link.\n";

interface Program {
  name: string;
  commands: Record<string, () => Command>;
  /** Other names that people try. */
  aliases: Record<string, string>;
  /** Errors and exit statuses are cnitool's. */
  isCnitool: boolean;
  isOwnName: boolean;
}

/** Returns the exit status: 0, 1 when the command failed, 2 when the arguments are wrong, or what the command says. */
export function runCommandLine(calledAs: string, args: readonly string[]): ExitStatus {
  const isCnitool = calledAs === "cnitool";
  const program = isCnitool
    ? { isCnitool, name: "cnitool", commands: cnitoolCommands, aliases: {}, isOwnName: true }
    : { isCnitool, name: "patchbay", commands: ownCommands, aliases: ownAliases, isOwnName: calledAs === "patchbay" };
  try {
    return dispatch(program, args);
  } catch (error) {
    printToStderr(`${program.name}: ${errorText(error)}`);
    return 1;
  }
}

function dispatch(program: Program, args: readonly string[]): ExitStatus {
  const [name, ...rest] = optionsAfterCommand(program, args);
  if (name === undefined || isHelp(name)) return printHelp(program);
  if (name === "help") return rest[0] === undefined ? printHelp(program) : dispatch(program, [rest[0], "--help"]);
  if (isVersion(name)) return dispatch(program, ["version"]);
  if (name === COMPLETE || name === DESCRIBE) return complete(program, rest, name === DESCRIBE);
  const command = commandOf(program, name)?.();
  if (command === undefined) return reportUnknownCommand(program, name);
  const isWithoutStdin = command.readsStdin && args[0] !== name;
  if (isHandedOver() && (command.runsByItself || isWithoutStdin)) leaveToCaller("command");
  return run(program, name, command, rest);
}

const isHelp = (arg: string | undefined) => arg === "--help" || arg === "-h";
const isVersion = (arg: string | undefined) => arg === "--version" || arg === "-v";

function commandOf({ commands, aliases }: Program, name: string): (() => Command) | undefined {
  const known = Object.hasOwn(aliases, name) ? aliases[name]! : name;
  return Object.hasOwn(commands, known) ? commands[known] : undefined;
}

/** `-i net1 add …` is `add -i net1 …`, as with cnitool. */
function optionsAfterCommand(program: Program, args: readonly string[]): readonly string[] {
  if (!args[0]?.startsWith("-")) return args;
  const options: OptionTable = Object.assign({}, ...Object.values(program.commands).map((load) => load().options));
  let at = 0;
  while (args[at]?.startsWith("-")) {
    if (isHelp(args[at]) || isVersion(args[at])) return [args[at]!];
    at += awaitsValue(args[at]!, options) ? 2 : 1;
  }
  return args[at] === undefined ? args : [args[at]!, ...args.slice(0, at), ...args.slice(at + 1)];
}

function complete({ commands, aliases }: Program, words: readonly string[], isDescribed: boolean): number {
  const { printCandidates } = require("./commands/completion.ts") as typeof import("./commands/completion.ts");
  printCandidates({ commands, aliases }, words, isDescribed);
  return 0;
}

/** As shells say it. */
const ENDED_BY_SIGPIPE = 141;

const helpOption: OptionTable = { help: { short: "h", help: "" } };

function run(program: Program, name: string, command: Command, args: readonly string[]): ExitStatus {
  const failed = (error: unknown) => reportFailure(error, { program, name, command, args });
  try {
    const status = runGiven(program, name, command, args);
    return typeof status === "number" ? status : status.catch(failed);
  } catch (error) {
    return failed(error);
  }
}

function runGiven(program: Program, name: string, command: Command, args: readonly string[]): ExitStatus {
  const given = parseArguments(args, { ...command.options, ...helpOption });
  if (given.has("help")) {
    print(`${usage(program, name, command)}\n${command.summary}\n${details(`${program.name} ${name}`, command)}`);
    return 0;
  }
  if (!program.isCnitool) refuseEmpty(command, given);
  checkOperands(program, command, given);
  // The word at which the program's first code blocks signals.
  if (args.includes("add") && !isTrue(command.takesBack, given)) releaseInterruptions();
  if (!program.isCnitool) requireRoot(command, given);
  const runIt = () => command.run(given, program.name);
  // What stays would be a span without an end.
  const work = command.stays ? runIt : () => inCommand(name, runIt);
  return command.printsAfterwards ? printingAfterwards(work) : work();
}

interface Failed {
  program: Program;
  name: string;
  command: Command;
  args: readonly string[];
}

/** Returns the exit status. */
function reportFailure(error: unknown, { program, name, command, args }: Failed): number {
  if (!program.isCnitool && hasReaderEnough(error)) return ENDED_BY_SIGPIPE;
  const text = errorText(error);
  if (program.isCnitool) {
    printToStderr(
      `Error: ${text}\n${usage(program, name, command)}${details(`cnitool ${name}`, command)}\n${text}`,
    );
    return 1;
  }
  if (!(error instanceof UsageError)) {
    const { nextSteps } = require("../answers/next-steps.ts") as typeof import("../answers/next-steps.ts");
    printToStderr([`patchbay ${name}: ${text}`, ...nextSteps(error, networkIn(command, args), name)].join("\n  "));
    return command.failureStatus ?? 1;
  }
  printToStderr(`patchbay ${name}: ${text}\n${usage(program, name, command)}See 'patchbay help ${name}'.`);
  return command.failureStatus ?? 2;
}

function networkIn(command: Command, args: readonly string[]): string | undefined {
  return /^\[?NETWORK/.test(command.operands) ? parseArguments(args, command.options).operands[0] : undefined;
}

function isTrue(answer: true | ((given: GivenArguments) => boolean) | undefined, given: GivenArguments): boolean {
  return typeof answer === "function" ? answer(given) : answer === true;
}

/** Without root, the command does not begin: the errors of its parts would say less, and say it for each network. */
function requireRoot({ needsRoot }: Command, given: GivenArguments): void {
  const reason = isTrue(needsRoot, given) ? missingPrivileges() : undefined;
  if (reason !== undefined) throw new Error(reason);
}

/** As from a variable that is not set. */
function refuseEmpty({ options }: Command, given: GivenArguments): void {
  if (given.operands.includes("")) throw new UsageError("an operand is empty");
  const empty = Object.keys(options).find((name) => options[name]!.isNeverEmpty && given.values(name).includes(""));
  if (empty !== undefined) throw new UsageError(`option --${empty} is empty: ${options[empty]!.value} expected`);
}

function checkOperands(program: Program, command: Command, { operands }: GivenArguments): void {
  const [least, most] = command.operandCount;
  if (operands.length < least) {
    throw new UsageError(
      program.isCnitool
        ? `requires at least ${least} arg(s), only received ${operands.length}`
        : `${command.operands} expected`,
    );
  }
  // cnitool ignores extra arguments.
  if (operands.length > most && !program.isCnitool) throw new UsageError(`"${operands[most]}" is one too many`);
}

function reportUnknownCommand(program: Program, name: string): number {
  if (program.isCnitool) {
    const text = `unknown command "${name}" for "cnitool"`;
    printToStderr(`Error: ${text}\nRun 'cnitool --help' for usage.\n${text}`);
    return 1;
  }
  if (!program.isOwnName) {
    // To podman and netavark we are the driver of that name (src/frontends/podman).
    printError(`unknown subcommand: ${name}`);
    return 1;
  }
  const known = ["help", ...Object.keys(program.commands), ...Object.keys(program.aliases), ...OTHER_WORDS.keys()];
  const closest = closestName(name, known), meant = closest && (OTHER_WORDS.get(closest) ?? closest);
  const hint = meant === undefined ? "" : `; did you mean "${meant.replaceAll(" ", '" or "')}"?`;
  printToStderr(`patchbay: unknown command "${name}"${hint}\nSee 'patchbay help'.`);
  return 2;
}

/** What other programs call our commands. */
const OTHER_WORDS = new Map(Object.entries({
  attach: "add",
  config: "lint",
  connect: "add",
  create: "add",
  delete: "del",
  detach: "del",
  disconnect: "del",
  leases: "ipam",
  list: "ls inspect",
  prune: "gc",
  ps: "inspect",
  remove: "del",
  rm: "del",
  setup: "add",
  show: "inspect ls",
  teardown: "del",
  validate: "lint",
}));

function usage({ name: program }: Program, name: string, { operands, options }: Command): string {
  const parts = [program, name, Object.keys(options).length > 0 ? "[OPTIONS]" : "", operands];
  return `Usage: ${parts.filter((part) => part !== "").join(" ")}\n`;
}

/** `called`: the program and the command's name. */
function details(called: string, { options, notes, exitStatus, examples = [] }: Command): string {
  const ending = (notes ?? "") + (exitStatus === undefined ? "" : `Exit status: ${exitStatus}\n`);
  return [
    ...Object.keys(options).length > 0 ? [`\nOptions:\n${describeOptions(options)}`] : [],
    ...ending === "" ? [] : [`\n${ending}`],
    ...examples.length > 0 ? [`\nExamples:\n${describeExamples(called, examples)}`] : [],
  ].join("");
}

function describeExamples(called: string, examples: readonly Example[]): string {
  return examples.map(({ args, what }) => `  ${`${called} ${args}`.trimEnd()}\n      ${what}\n`).join("");
}

function printHelp(program: Program): number {
  const commands = columns(
    Object.entries(program.commands).map(([name, load]) => [name, load().summary] as const),
  );
  const head = `Usage: ${program.name} COMMAND [ARGUMENTS]\n\nCommands:\n${commands}\n`;
  print(
    program.isCnitool
      ? `${head}'cnitool help COMMAND' describes a command.\n`
      : `patchbay ${VERSION}: ${SUMMARY}\n\n${head}'patchbay help COMMAND' describes a command.\n\n${OTHER_NAMES}`,
  );
  return 0;
}
