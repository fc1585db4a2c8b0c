/** Help texts of netavark's command line. */
import { type OptionRule, shown } from "./arguments.ts";
import { commands, type Subcommand } from "./commands.ts";

type Row = readonly [left: string, right: string];

export function programHelp(options: readonly OptionRule[]): string {
  return [
    "Usage: netavark [OPTIONS] <COMMAND>\n",
    section("Commands", [
      ...Object.entries(commands).map(([name, { what }]): Row => [name, what]),
      ["help", "Prints this, or the help of a command"],
    ]),
    section("Options", [...options.map(row), ["-h, --help", "Prints help"], ["-V, --version", "Prints the version"]]),
  ].join("\n");
}

export function commandHelp(name: string, command: Subcommand): string {
  const { what, options = [] } = command;
  return [
    `${what}\n`,
    `${usage(name, command)}\n`,
    section("Options", [...options.map(row), ["-h, --help", "Prints help"]]),
  ].join("\n");
}

export function usage(name: string, { operand, options = [] }: Subcommand): string {
  const words = ["Usage: netavark", name, ...options.filter(({ isRequired }) => isRequired).map(shown)];
  if (operand !== undefined) words.push(`<${operand}>`);
  return words.join(" ");
}

function row(option: OptionRule): Row {
  const short = option.short === undefined ? "    " : `-${option.short}, `;
  return [short + shown(option), option.what];
}

function section(title: string, rows: readonly Row[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return `${title}:\n${rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join("")}`;
}
