/** `patchbay lint`. */
import { identify, isDirectory } from "../../ffi/files.ts";
import { type Finding, lintDirectory, lintNetwork } from "../lint/lint.ts";
import type { Command } from "./command.ts";
import { configDirectoryOf, runtimeOf, runtimeOptions } from "./network-call.ts";
import { print, printLine } from "./print.ts";

export const lintCommand: Command = {
  summary: "check configuration files: misspelt keys, wrong values, networks that cannot be reached",
  operands: "[FILE…]",
  operandCount: [0, Infinity],
  options: {
    json: { help: "as JSON" },
    "config-dir": runtimeOptions["config-dir"]!,
    "plugin-path": runtimeOptions["plugin-path"]!,
  },
  notes:
    "Without FILE, everything in the configuration directory; a FILE may be a directory. Keys of plugins of another\n" +
    "make are not judged. Exit status 1 when something is wrong; a note is no error.\n",
  run(given) {
    const { pluginPath } = runtimeOf(given);
    const files = given.operands.length > 0 ? given.operands : [configDirectoryOf(given)];
    const findings = files.flatMap((file) =>
      isDirectory(identify(file)) ? lintDirectory(file, pluginPath) : lintNetwork(file, pluginPath)
    );
    if (given.has("json")) printLine(JSON.stringify(findings, null, 2));
    else print(findings.map((finding) => `${describeFinding(finding)}\n`).join(""));
    return findings.every(({ severity }) => severity === "note") ? 0 : 1;
  },
};

/** As compilers do, so that editors find the place. */
export function describeFinding({ file, line, column, severity, key, message, meant }: Finding): string {
  const subject = key === "" ? "" : `"${key}" `;
  const hint = meant === undefined ? "" : `; did you mean "${meant}"?`;
  return `${file}:${line}:${column}: ${severity}: ${subject}${message}${hint}`;
}
