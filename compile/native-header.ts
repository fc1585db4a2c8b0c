/** Writes src/native/shared.h: what the first code has in common with the program, from where the program has it. */
import { aboutText, versionDocument } from "../src/cni/about.ts";
import { PROJECTS } from "../src/cni/plugin-name.ts";
import { KNOWN_VERSIONS } from "../src/cni/versions.ts";
import { BUILD_BYTES } from "../src/engine/build.ts";
import { refusalOf } from "../src/engine/exec-plugin.ts";
import { ownCommands } from "../src/frontends/cli/command-line.ts";
import { commands as netavarkCommands } from "../src/frontends/netavark/program/commands.ts";
import { VERBS_WITH_STDIN } from "../src/frontends/podman/call-of-driver.ts";
import { SLOTS } from "../src/frontends/resident/board.ts";
import * as protocol from "../src/frontends/resident/protocol.ts";
import { loadPlugin, netavarkDriverNames, pluginNames } from "../src/plugins/table.ts";
import { RESIDENT_BOARD, RESIDENT_SOCKET, TURNS } from "../src/process/state-directory.ts";
import { VERSION } from "../src/process/version.ts";

export const NATIVE_HEADER = "src/native/shared.h";

export function nativeHeader(): string {
  const { PROTOCOL, READY, DECLINED, DONE, DONE_IN_FILES, PROVE, MESSAGE_BYTES } = protocol;
  const readStdin = Object.keys(ownCommands).filter((name) => ownCommands[name]!().readsStdin);
  const served = Object.keys(netavarkCommands).filter((name) => netavarkCommands[name]!.isServed);
  return `/* What the first code has in common with the program. \`npm run generate\` writes it (compile/native-header.ts).
 * A LIST is texts that end with NUL, and an empty one behind the last. */
#pragma once

#define SOCKET_PATH ${text(RESIDENT_SOCKET)}
#define BOARD_PATH ${text(RESIDENT_BOARD)}
#define TURNS_PATH ${text(TURNS)}
enum { PROTOCOL = ${PROTOCOL}, MESSAGE_BYTES = ${MESSAGE_BYTES}, BUILD_BYTES = ${BUILD_BYTES}, SLOTS = ${SLOTS} };
${constants("answer", { READY, DECLINED, DONE, DONE_IN_FILES, PROVE })}

/* Words that read stdin, of a driver of podman's networks and of the runtime; and those of netavark's that a resident runs. */
${list("DRIVER_VERBS", VERBS_WITH_STDIN)}
${list("COMMANDS_WITH_STDIN", readStdin)}
${list("NETAVARK_SERVED", served)}

/* A prefix may stand before a plugin's name, but these are none. A project's name is followed by the plugin that it means. */
${list("NO_PLUGINS", netavarkDriverNames)}
${list("PROJECTS", Object.entries(PROJECTS).flat())}

/* EACH(plugins, document, about) for plugins that support the same versions: the answer to VERSION, and what follows the
 * plugin's name when there is no command. */
#define ABOUT ${text(ABOUT!)}
#define FOR_PLUGINS(EACH) \\
${[...byVersions()].map(([versions, names]) => answersOf(versions.split(" "), names)).join(" \\\n")}

/* The error of a name that is no plugin's: before the name, and after it. */
${
    around(refusalOf(NAME)).map((part, at) => `#define ${at === 0 ? "NO_PLUGIN" : "NO_PLUGIN_END"} ${text(part)}`)
      .join("\n")
  }
`;
}

/** Stands for the name, and is nowhere else. */
const NAME = "a-name-of-no-plugin", [ABOUT] = around(aboutText(NAME, VERSION, []));

/** What stands before the name, and what behind it. */
function around(text: string): string[] {
  const parts = text.split(NAME);
  if (parts.length !== 2) throw new Error(`not exactly one name in ${JSON.stringify(text)}`);
  return parts;
}

function byVersions(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const name of pluginNames) {
    const versions = (loadPlugin(name)!.versions ?? KNOWN_VERSIONS).join(" ");
    found.set(versions, [...found.get(versions) ?? [], name]);
  }
  return found;
}

function answersOf(versions: readonly string[], names: readonly string[]): string {
  const [, about] = around(aboutText(NAME, VERSION, versions));
  return `  EACH(${textsOf(names, " ")}, \\\n       ${text(versionDocument(versions))}, \\\n       ${text(about!)})`;
}

function constants(name: string, values: Readonly<Record<string, number>>): string {
  return `enum ${name} { ${Object.entries(values).map(([name, value]) => `${name} = ${value}`).join(", ")} };`;
}

function list(name: string, texts: readonly string[]): string {
  return `#define ${name}_LIST ${textsOf(texts, " \\\n  ")}`;
}

function textsOf(list: readonly string[], between: string): string {
  return list.map((one) => text(`${one}\0`)).join(between);
}

/** As C and JSON both write it, but for NUL, whose short form in C must not have a digit behind it. */
function text(value: string): string {
  return JSON.stringify(value).replaceAll("\\u0000", "\\000");
}

/** By a process that loads the sources as they are now. */
export function nativeHeaderOfNow(): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, import.meta.path]);
  if (exitCode !== 0) throw new Error(`the sources do not load: ${stderr}`);
  return stdout.toString();
}

if (import.meta.main) process.stdout.write(nativeHeader());
