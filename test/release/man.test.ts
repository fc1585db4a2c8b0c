/** The manual pages: what mandoc and man read, beside the help, the completion and the lists of docs/commands.md. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { manPages } from "../../release/man/pages.ts";
import { sectionOfCommands } from "../../release/man/command-lists.ts";
import { DEFAULT_DIRECTORY, DEFAULT_SOCKET } from "../../src/services/dhcp/service-protocol.ts";
import { DIRECTORY_OF_ROOT, RESIDENT_SOCKET } from "../../src/process/state-directory.ts";
import { DEFAULT_DATA_DIRECTORY } from "../../src/ipam/go-directory.ts";
import { cnitoolCommands, ownCommands } from "../../src/frontends/cli/command-line.ts";
import { type Command, parseArguments } from "../../src/frontends/cli/command.ts";
import { DEFAULT_CACHE_DIRECTORY, DEFAULT_CONFIG_DIRECTORY, NETNS_DIRECTORY } from "../../src/runtime/paths.ts";
import { repositoryFiles, root } from "../support/documents.ts";
import { PATCHBAY } from "../support/plugins.ts";

const pages = manPages(1700000000), names = pages.map(({ name }) => name);
const directory = mkdtempSync(`${tmpdir()}/man-`), inDirectory = (name: string) => join(directory, name);
beforeAll(() => pages.forEach(({ name, text }) => writeFileSync(inDirectory(name), text)));
afterAll(() => rmSync(directory, { recursive: true }));

function output(...command: string[]): { code: number; text: string; complaints: string } {
  const env = { ...process.env, LC_ALL: "C.UTF-8", MANWIDTH: "100" };
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { env, stdout: "pipe", stderr: "pipe" });
  return { code: exitCode, text: String(stdout), complaints: String(stderr) };
}

/** As people read it, in lines that are long enough for every word. */
function shown(name: string): string {
  const { text } = output("mandoc", "-T", "ascii", "-O", "width=400", inDirectory(name));
  return text.replaceAll(/.[\b]/g, "");
}

describe("each page", () => {
  test.each(names)("%s has nothing that mandoc warns of", (name) => {
    expect(output("mandoc", "-T", "lint", "-W", "warning", inDirectory(name))).toEqual({
      code: 0,
      text: "",
      complaints: "",
    });
  });

  test.each(names)("%s has nothing that man warns of", (name) => {
    const { code, text, complaints } = output("man", "--warnings", "--local-file", inDirectory(name));
    expect({ code, complaints }).toEqual({ code: 0, complaints: "" });
    expect(text).toContain("SEE ALSO");
  });

  test.each(names)("%s refers to pages that are there", (name) => {
    const { text } = pages.find((page) => page.name === name)!;
    const others = [...text.matchAll(/^\.(?:It )?Xr (\S+) (\d)/gm)].map(([, page, number]) => `${page}.${number}`);
    expect(others).not.toEqual([]);
    expect(others.filter((other) => !names.includes(other))).toEqual([]);
    expect(others).not.toContain(name);
  });

  test("is ASCII, and the same for the same date", () => {
    expect(pages.filter(({ text }) => !/^[\n\x20-\x7e]*$/.test(text)).map(({ name }) => name)).toEqual([]);
    expect(manPages(1700000000)).toEqual(pages);
    const later = manPages(1700000000 + 86400);
    expect(later.map(({ text }) => text.split("\n")[0])).toEqual(pages.map(() => ".Dd November 15, 2023"));
    expect(later.map(({ text }) => text.split("\n").slice(1))).toEqual(
      pages.map(({ text }) => text.split("\n").slice(1)),
    );
  });
});

const ownNames = Object.keys(ownCommands);

test("there is a page for each command, for the program and for cnitool, and no other", () => {
  expect(names.sort()).toEqual(["cnitool.1", "patchbay.1", ...ownNames.map((name) => `patchbay-${name}.1`)].sort());
});

/** `--ifname NAME`, `--podman[=DIR]`, `--json`. */
function formsOf({ options }: Command): string[] {
  return Object.entries(options).map(([name, { value, otherwise }]) => {
    if (value === undefined) return `--${name}`;
    return otherwise === undefined ? `--${name} ${value}` : `--${name}[=${value}]`;
  });
}

const summaries = (text: string) => text.toLowerCase();

describe.each(ownNames)("%s", (name) => {
  const command = ownCommands[name]!();

  test("page, help and completion have the same options", () => {
    const page = shown(`patchbay-${name}.1`), help = output(PATCHBAY, "help", name).text;
    const completed = output(PATCHBAY, "__complete", name, "--").text.split("\n").filter((word) => word !== "");
    const forms = formsOf(command);
    const ofPage = [...page.matchAll(/^ {5}(?:-\w(?: \S+)?, )?(--\S+(?: [A-Za-z/|]+)?)(?= {2}|$)/gm)].map((
      [, form],
    ) => form!);
    expect(ofPage).toEqual(forms);
    expect(forms.filter((form) => !new RegExp(`^ {2}[- ][\\w ][, ] ${RegExp.escape(form)}(?= {2})`, "m").test(help)))
      .toEqual([]);
    expect(completed.sort()).toEqual(Object.keys(command.options).map((option) => `--${option}`).sort());
  });

  test("page, overview and help have its summary, its operands and its examples", () => {
    const page = shown(`patchbay-${name}.1`), help = output(PATCHBAY, "help", name).text;
    const ellipsis = (text: string) => text.replaceAll("…", "...").replaceAll(/\s*([|])\s*/g, "$1");
    const [, usage = "no usage"] = /^Usage: (.*)$/m.exec(help) ?? [];
    expect(ellipsis(page)).toContain(`     ${ellipsis(usage)}\n`);
    expect(page).toContain(`patchbay-${name} - ${command.summary}\n`);
    expect(summaries(shown("patchbay.1"))).toContain(`${summaries(command.summary)}.\n`);
    for (const { args, what } of command.examples ?? []) {
      const line = `patchbay ${name} ${args}`.trimEnd();
      expect(help).toContain(`  ${line}\n      ${what}\n`);
      expect(page).toContain(`${line}\n`);
    }
    const [firstSentence = ""] = (command.exitStatus ?? "").split(/[\n.]/);
    expect(page).toContain(firstSentence.slice(1));
  });

  test("its examples are such that it takes them", () => {
    const [least, most] = command.operandCount;
    for (const { args } of command.examples ?? []) {
      const words = [...args.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word);
      const { operands } = parseArguments(words, command.options);
      expect(operands.length).toBeWithin(least, most + 1);
      for (const [at, operand] of operands.entries()) {
        const place = command.operands.split(" ")[at] ?? "";
        if (/^[a-z|]+$/.test(place)) expect(place.split("|")).toContain(operand);
      }
    }
  });
});

test("cnitool's page has each of its commands with each option", () => {
  const page = shown("cnitool.1");
  for (const [name, load] of Object.entries(cnitoolCommands)) {
    const part = page.split(/^ {3}(?=\w)/m).find((text) => text.startsWith(`${name}\n`));
    expect([name, formsOf(load()).filter((form) => !part?.includes(form))]).toEqual([name, []]);
  }
});

describe("the lists of docs/commands.md, which the overview repeats", () => {
  const first = (heading: string) =>
    sectionOfCommands(heading).rows.flatMap(([names]) => names.replaceAll("`", "").split(", "));

  test("have every variable that the program reads for people", () => {
    // Variables of the protocol, of systemd, of the shell, and of our own tests.
    const others = ["CNI_COMMAND", "PATH", "PATCHBAY_NETLINK"];
    const ofSystemd = ["LISTEN_FDNAMES", "LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET"];
    const { after } = sectionOfCommands("Environment variables");
    const known = [...first("Environment variables"), ...after.matchAll(/[A-Z]+_[A-Z_]+/g).map(([name]) => name)];
    const read = repositoryFiles().filter((path) => /^src\/.*\.ts$/.test(path)).flatMap((path) =>
      [...readFileSync(join(root, path), "utf8").matchAll(/\bvariable\("(\w+)"\)/g)].map(([, name]) => name!)
    );
    expect(read).toContain("NETCONFPATH");
    expect([...new Set(read)].filter((name) => ![...known, ...others, ...ofSystemd].includes(name))).toEqual([]);
  });

  test("have every directory that the program takes unless it is told another", () => {
    const directories = [DEFAULT_CONFIG_DIRECTORY, `${DEFAULT_CACHE_DIRECTORY}/results`, DEFAULT_DATA_DIRECTORY];
    const ofServices = [DEFAULT_DIRECTORY, DEFAULT_SOCKET, DIRECTORY_OF_ROOT, RESIDENT_SOCKET];
    const listed = first("Files");
    expect([...directories, ...ofServices, NETNS_DIRECTORY].filter((path) => !listed.includes(path))).toEqual([]);
  });

  test("are in the overview", () => {
    const page = shown("patchbay.1");
    for (const heading of ["Environment variables", "Files", "Exit statuses"]) {
      const missing = first(heading).filter((name) => !page.includes(`     ${name}`) && !page.includes(`, ${name}`));
      expect([heading, missing]).toEqual([heading, []]);
    }
  });

  test("a heading without a list is refused", () => {
    expect(() => sectionOfCommands("Ctrl-C")).toThrow('docs/commands.md has no list under "Ctrl-C"');
  });
});
