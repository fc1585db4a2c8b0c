/** What a command consists of, and parsing its arguments (docs/decisions/0004 says why not with node:util). */

export interface Command {
  /** One line for the list of commands. */
  readonly summary: string;
  /** What follows the name: `NETWORK NETNS`. */
  readonly operands: string;
  /** How many operands the command takes. */
  readonly operandCount: readonly [least: number, most: number];
  readonly options: OptionTable;
  /** Without the capabilities of root the command does nothing, and says which are missing. */
  readonly needsRoot?: true | ((given: GivenArguments) => boolean);
  /** Whether it takes back what it has begun when a signal ends it (interruptible.ts). */
  readonly takesBack?: true | ((given: GivenArguments) => boolean);
  /**
   * A resident leaves it to the caller's own process: it stays, changes the installed program, or lists what it has changed,
   * which a second run of a call that was left half-way could not.
   */
  readonly runsByItself?: true;
  /** Nobody expects its end. */
  readonly stays?: true;
  /** The launcher keeps stdin for a resident when this command comes first (src/native/launch.h). */
  readonly readsStdin?: true;
  /** What it prints tells what it has changed: printed when all is done, because the reader may be gone before. */
  readonly printsAfterwards?: true;
  /** After the options in the help, in full lines. Indented lines stay as they are in the manual page, too. */
  readonly notes?: string;
  /** What 0 and 1 say beside success and failure, or other numbers. */
  readonly exitStatus?: string;
  /** The exit status of an error, where 1 says something else. */
  readonly failureStatus?: number;
  readonly examples?: readonly Example[];
  /**
   * Returns the exit status. The message of an error it throws is printed, with exit status 1. What asks others by network
   * waits for them, and `runsByItself`.
   */
  run(given: GivenArguments, program: string): ExitStatus;
}

export type ExitStatus = number | Promise<number>;

export interface Example {
  /** What follows the program and the command. */
  readonly args: string;
  readonly what: string;
}

export type OptionTable = Readonly<Record<string, Option>>;

export interface Option {
  readonly short?: string;
  /** The value's name in the help. An option without it takes no value. */
  readonly value?: string;
  /** The value when none is attached with `=`. */
  readonly otherwise?: string;
  /** An empty value is refused: it is as from a variable that is not set, and would mean the default. */
  readonly isNeverEmpty?: true;
  readonly help: string;
}

export interface GivenArguments {
  readonly operands: readonly string[];
  has(option: string): boolean;
  /** The last value when the option is repeated. */
  value(option: string): string | undefined;
  /** All values, in order. */
  values(option: string): readonly string[];
}

/** The command does not take these arguments: exit status 2. */
export class UsageError extends Error {}

/** Options and operands in any order; after `--` everything is an operand. */
export function parseArguments(args: readonly string[], options: OptionTable): GivenArguments {
  const operands: string[] = [];
  const found = new Map<string, string[]>();
  const queue = [...args];
  for (let arg = queue.shift(); arg !== undefined; arg = queue.shift()) {
    if (arg === "--") {
      operands.push(...queue.splice(0));
    } else if (!arg.startsWith("-") || arg === "-") {
      operands.push(arg);
    } else {
      const { name, option, attached } = readOption(arg, options);
      if (name === undefined || option === undefined) throw unknownOption(arg, options);
      const hasAttached = attached !== undefined;
      if (option.value === undefined && hasAttached) throw new UsageError(`option --${name} takes no value`);
      const value = option.value === undefined ? "" : hasAttached ? attached : option.otherwise ?? queue.shift();
      if (value === undefined) throw new UsageError(`option --${name} needs a value: ${option.value}`);
      found.set(name, [...found.get(name) ?? [], value]);
    }
  }
  return {
    operands,
    has: (option) => found.has(option),
    value: (option) => found.get(option)?.at(-1),
    values: (option) => found.get(option) ?? [],
  };
}

function unknownOption(arg: string, options: OptionTable): UsageError {
  const { editDistance } = require("../../cni/spelling.ts") as typeof import("../../cni/spelling.ts");
  const [name = ""] = arg.replace(/^-+/, "").split("="), mostEdits = name.length / 4;
  const meant = name.length > 1 &&
    Object.keys(options).find((option) => option.startsWith(name) || editDistance(name, option) <= mostEdits);
  return new UsageError(`unknown option ${arg}${meant ? `; did you mean --${meant}?` : ""}`);
}

/** `--name`, `--name=value`, `--name value`, `-n`, `-nvalue`, `-n=value`, `-n value`. */
function readOption(arg: string, options: OptionTable): { name?: string; option?: Option; attached?: string } {
  const [form, long, short, rest] = /^(?:--([^=]+)(?==|$)|-([^-]))=?([^]*)$/.exec(arg) ?? [];
  if (form === undefined) return {};
  const name = long ?? Object.keys(options).find((key) => options[key]!.short === short);
  if (name === undefined || !Object.hasOwn(options, name)) return {};
  const hasAttached = long === undefined ? rest !== "" : arg.includes("=");
  return { name, option: options[name]!, ...hasAttached && { attached: rest! } };
}

/** Whether the argument is an option whose value is the next argument. */
export function awaitsValue(arg: string, options: OptionTable): boolean {
  const { option, attached } = readOption(arg, options);
  return option?.value !== undefined && option.otherwise === undefined && attached === undefined;
}

/** Indented lines of two aligned columns. */
export function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([first]) => first.length));
  return rows.map(([first, second]) => `  ${first.padEnd(width)}  ${second}\n`).join("");
}

export function describeOptions(options: OptionTable): string {
  return columns(
    Object.entries(options).map(([name, { short, value, otherwise, help }]) => [
      `${short === undefined ? "   " : `-${short},`} --${name}${describeValue(value, otherwise)}`,
      help,
    ]),
  );
}

function describeValue(value: string | undefined, otherwise: string | undefined): string {
  if (value === undefined) return "";
  return otherwise === undefined ? ` ${value}` : `[=${value}]`;
}
