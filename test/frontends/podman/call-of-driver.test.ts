/** The launcher keeps stdin for a resident: it knows the verbs and commands that read it. */
import { expect, test } from "bun:test";
import { commands as netavarkCommands } from "../../../src/frontends/netavark/program/commands.ts";
import { DRIVER_VERBS } from "../../../src/frontends/podman/call-of-driver.ts";
import { ownCommands } from "../../../src/frontends/cli/command-line.ts";

const launcher = await Bun.file(`${import.meta.dir}/../../../src/native/launch.h`).text();

test("the launcher knows the verbs of a driver that read stdin", () => {
  const [known] = /(?<=is_podmans\(const char \*verb\) \{)[^}]*/.exec(launcher)!;
  const verbs = [...known.matchAll(/is_same\(verb, "(\w+)"\)/g)].map(([, verb]) => verb);
  expect(verbs).toEqual(DRIVER_VERBS.filter((verb) => verb !== "info"));
});

test("the launcher knows the commands that read stdin", () => {
  const [, known] = /return (.*) \? WORDS_AND_STDIN : WORDS;/.exec(launcher)!;
  const commands = [...known!.matchAll(/is_same\(verb, "(\w+)"\)/g)].map(([, command]) => command);
  expect(commands).toEqual(Object.keys(ownCommands).filter((name) => ownCommands[name]!().readsStdin));
});

test("the launcher knows the subcommands of netavark's that a resident runs", () => {
  const [known] = /(?<=is_netavarks\(const struct call \*call\) \{)[^]*?\n\}/.exec(launcher)!;
  const subcommands = [...known.matchAll(/is_same\(verb, "(\w+)"\)/g)].map(([, subcommand]) => subcommand);
  expect(subcommands).toEqual(Object.keys(netavarkCommands).filter((name) => netavarkCommands[name]!.isServed));
});
