/**
 * The manual pages, from what the program itself says: its commands with their options, notes and examples, and the
 * tables of docs/commands.md. Whatever a page should say, the help says.
 */
import { cnitoolCommands, OTHER_NAMES, ownCommands } from "../../src/frontends/cli/command-line.ts";
import type { Command, OptionTable } from "../../src/frontends/cli/command.ts";
import { SUMMARY, VERSION } from "../../src/process/version.ts";
import {
  display,
  escaped,
  type Item,
  joined,
  list,
  operandLines,
  paragraphs,
  prose,
  section,
  sentence,
} from "./mdoc.ts";
import { sectionOfCommands } from "./command-lists.ts";

export interface ManPage {
  /** As the file is named: `patchbay-add.1`. */
  name: string;
  text: string;
}

/** Dated by SOURCE_DATE_EPOCH, in seconds, so that the same sources give the same pages. */
export function manPages(sourceDateEpoch: number): ManPage[] {
  const own = Object.entries(ownCommands).map(([name, load]) => ({ name, command: load() }));
  const cnitool = Object.entries(cnitoolCommands).map(([name, load]) => ({ name, command: load() }));
  const bodies = [
    { name: "patchbay", summary: SUMMARY, body: overview(own) },
    ...own.map(({ name, command }) => ({
      name: pageOf(name),
      summary: command.summary,
      body: commandPage(name, command),
    })),
    { name: "cnitool", summary: "attach network namespaces to CNI networks", body: cnitoolPage(cnitool) },
  ];
  return bodies.map(({ name, summary, body }) => ({
    name: `${name}.1`,
    text: `${head(name, sourceDateEpoch)}${section("NAME", `.Nm ${name}\n.Nd ${escaped(summary)}\n`)}${body}`,
  }));
}

interface NamedCommand {
  name: string;
  command: Command;
}

const pageOf = (command: string) => `patchbay-${command}`;

function head(name: string, seconds: number): string {
  const date = new Date(seconds * 1000);
  const month = date.toLocaleString("en-US", { month: "long", timeZone: "UTC" });
  return `.Dd ${month} ${date.getUTCDate()}, ${date.getUTCFullYear()}\n` +
    `.Dt ${name.toUpperCase()} 1\n.Os "Patchbay ${VERSION}"\n`;
}

function overview(commands: readonly NamedCommand[]): string {
  const { before, rows, after } = sectionOfCommands("Environment variables");
  const statuses = sectionOfCommands("Exit statuses");
  return [
    section("SYNOPSIS", ".Nm\n.Ar COMMAND\n.Op Ar ARGUMENTS\n"),
    section("DESCRIPTION", paragraphs(OTHER_NAMES)),
    section(
      "COMMANDS",
      list(commands.map(({ name, command }) => ({ head: `Xr ${pageOf(name)} 1`, text: sentence(command.summary) }))),
    ),
    section("ENVIRONMENT", joined(prose(before), table("Ev", rows), paragraphs(after))),
    section("FILES", table("Pa", sectionOfCommands("Files").rows)),
    section("EXIT STATUS", joined(table("Li", statuses.rows), paragraphs(statuses.after))),
    seeAlso(["cnitool", ...commands.map(({ name }) => pageOf(name))]),
  ].join("");
}

function commandPage(name: string, command: Command): string {
  const { summary, options, notes = "", exitStatus, examples = [] } = command;
  return [
    section("SYNOPSIS", usageLines(`patchbay ${name}`, command)),
    section("DESCRIPTION", joined(prose(sentence(summary)), paragraphs(notes))),
    section("OPTIONS", optionList(options)),
    section("ENVIRONMENT", variablesIn(textsOf(command))),
    section(
      "EXIT STATUS",
      joined(prose("0 when it is done, 1 when it fails, 2 when the arguments are wrong."), statusOf(exitStatus)),
    ),
    section("EXAMPLES", exampleList(`patchbay ${name}`, examples)),
    seeAlso(["patchbay", ...relatedTo(name).map(pageOf)]),
  ].join("");
}

function usageLines(called: string, { operands, options }: Command): string {
  return `.Nm ${called}\n${Object.keys(options).length > 0 ? ".Op Ar OPTIONS\n" : ""}${operandLines(operands)}`;
}

/** All that the help says in words. */
function textsOf({ summary, notes = "", exitStatus = "", options, examples = [] }: Command): string {
  return [
    summary,
    notes,
    exitStatus,
    ...Object.values(options).map(({ help }) => help),
    ...examples.map(({ what }) => what),
  ].join("\n");
}

function cnitoolPage(commands: readonly NamedCommand[]): string {
  const each = commands.map(({ name, command }) => {
    const { summary, options, notes = "", exitStatus } = command;
    const body = joined(
      usageLines(`cnitool ${name}`, command),
      prose(sentence(summary)),
      optionList(options),
      paragraphs(notes),
      statusOf(exitStatus && `Exit status: ${exitStatus}`),
    );
    return `.Ss ${name}\n${body}`;
  });
  return [
    section("SYNOPSIS", ".Nm\n.Ar COMMAND\n.Op Ar ARGUMENTS\n"),
    section("COMMANDS", each.join("")),
    section("ENVIRONMENT", variablesIn(commands.map(({ command }) => textsOf(command)).join("\n"))),
    section("EXIT STATUS", prose("0 when it is done, 1 when it fails or the arguments are wrong.")),
    seeAlso(["patchbay", ...commands.map(({ name }) => pageOf(name))]),
  ].join("");
}

function statusOf(exitStatus = ""): string {
  return exitStatus === "" ? "" : prose(sentence(exitStatus));
}

function optionList(options: OptionTable): string {
  const items = Object.entries(options).map(([name, { short, value, otherwise, help }]): Item => {
    const long = `Fl \\-${escaped(name)}`, place = value === undefined ? "" : `Ar ${escaped(value)}`;
    const withValue = otherwise === undefined ? `${long} ${place}` : `${long} Ns Op = Ns ${place}`;
    const first = short === undefined ? "" : `Fl ${short} ${place}`.trimEnd() + " , ";
    return { head: `${first}${withValue}`.trimEnd(), text: sentence(help) };
  });
  return items.length === 0 ? "" : list(items);
}

function exampleList(called: string, examples: NonNullable<Command["examples"]>): string {
  return examples.map(({ args, what }, at) =>
    `${at === 0 ? "" : ".Pp\n"}${prose(`${sentence(what).replace(/\.$/, "")}:`)}${
      display([`${called} ${args}`.trimEnd()])
    }`
  ).join("");
}

const OTHER_VARIABLES = ".Xr patchbay 1\nlists the variables of all commands.\n";

/** The rows of docs/commands.md, whose first column is one name in backticks, or several. */
function table(macro: "Ev" | "Pa" | "Li", rows: readonly (readonly [string, string])[]): string {
  return list(rows.map(([first, second]) => ({
    head: `${macro} ${escaped(first.replaceAll("`", "")).replaceAll(",", " ,")}`,
    text: sentence(second),
  })));
}

function variablesIn(text: string): string {
  const named = sectionOfCommands("Environment variables").rows
    .filter(([name]) => text.includes(`$${name.replaceAll("`", "")}`));
  return joined(named.length === 0 ? "" : table("Ev", named), OTHER_VARIABLES);
}

/** The commands that this one's help names, as 'add' or 'patchbay del', and those whose help names this one. */
function relatedTo(name: string): string[] {
  const names = (one: string, other: string) =>
    new RegExp(`['\`](?:patchbay )?${other}(?: [^'\`\\n]*)?['\`]`).test(textsOf(ownCommands[one]!()));
  return Object.keys(ownCommands).filter((other) => other !== name && (names(name, other) || names(other, name)));
}

function seeAlso(pages: readonly string[]): string {
  const lines = [...pages].sort().map((page, at) => `.Xr ${page} 1${at < pages.length - 1 ? " ," : ""}\n`);
  return section("SEE ALSO", lines.join(""));
}
