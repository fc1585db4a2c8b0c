/** netavark's argument grammar: options before the subcommand, `--name value`, `--name=value`, `-n value`, `-nvalue`. */
import { readInteger } from "../../../interop/podman-documents/integer.ts";

export interface OptionRule {
  long: string;
  short?: string;
  isRequired?: true;
  /** The word for its value in help texts. */
  value: string;
  /** May be given several times. */
  repeats?: boolean;
  choices?: readonly string[];
  /** The value is a whole number up to this one. */
  most?: number;
  what: string;
}

/** Is printed to stderr with exit status 2, as netavark's callers expect. */
export class RefusedArguments extends Error {}

export interface ParsedOptions {
  /** The values by the option's long name. */
  values: ReadonlyMap<string, readonly string[]>;
  wantsHelp: boolean;
  wantsVersion: boolean;
  /** The words from the first one that is not an option. */
  rest: readonly string[];
}

/** Reads options up to the first word that is not one; with `amongWords`, all options. */
export function parseOptions(
  args: readonly string[],
  rules: readonly OptionRule[],
  { amongWords = false, knowsVersion = false } = {},
): ParsedOptions {
  const values = new Map<string, string[]>(), rest: string[] = [];
  let wantsHelp = false, wantsVersion = false, at = 0;
  const take = (rule: OptionRule, attached: string | undefined) => {
    const before = values.get(rule.long);
    if (before !== undefined && !rule.repeats) {
      throw new RefusedArguments(`the argument '${shown(rule)}' cannot be used multiple times`);
    }
    const value = attached ?? nextValue(args[at++], rule);
    if (rule.choices !== undefined && !rule.choices.includes(value)) {
      throw new RefusedArguments(
        `invalid value '${value}' for '${shown(rule)}'\n  [possible values: ${rule.choices.join(", ")}]`,
      );
    }
    const wrong = rule.most === undefined ? undefined : readInteger(value, 0, rule.most);
    if (typeof wrong === "string") {
      throw new RefusedArguments(`invalid value '${value}' for '${shown(rule)}': ${wrong}`);
    }
    values.set(rule.long, [...before ?? [], value]);
  };
  while (at < args.length) {
    const word = args[at++]!;
    if (word === "--" && amongWords) {
      rest.push(...args.slice(at));
      break;
    }
    const flag = flagOf(word, knowsVersion), option = flag === undefined ? optionOf(word, rules) : undefined;
    if (flag === "help") wantsHelp = true;
    else if (flag === "version") wantsVersion = true;
    else if (option !== undefined) take(option.rule, option.value);
    else if (word.startsWith("-") && word !== "-") throw new RefusedArguments(`unexpected argument '${word}' found`);
    else if (amongWords) rest.push(word);
    else return { values, wantsHelp, wantsVersion, rest: args.slice(at - 1) };
    if (wantsHelp || wantsVersion) break;
  }
  return { values, wantsHelp, wantsVersion, rest };
}

function flagOf(word: string, knowsVersion: boolean): "help" | "version" | undefined {
  if (word === "--help" || word.startsWith("-h")) return "help";
  return knowsVersion && (word === "--version" || word.startsWith("-V")) ? "version" : undefined;
}

function optionOf(
  word: string,
  rules: readonly OptionRule[],
): { rule: OptionRule; value: string | undefined } | undefined {
  for (const rule of rules) {
    const long = `--${rule.long}`;
    if (word === long) return { rule, value: undefined };
    if (word.startsWith(`${long}=`)) return { rule, value: word.slice(long.length + 1) };
    if (rule.short === undefined || !word.startsWith(`-${rule.short}`)) continue;
    const value = word.slice(2);
    return { rule, value: value === "" ? undefined : value.startsWith("=") ? value.slice(1) : value };
  }
  return undefined;
}

function nextValue(word: string | undefined, rule: OptionRule): string {
  if (word === undefined || (word.startsWith("-") && word !== "-")) {
    throw new RefusedArguments(`a value is required for '${shown(rule)}' but none was supplied`);
  }
  return word;
}

export function shown({ long, value }: OptionRule): string {
  return `--${long} <${value}>`;
}
