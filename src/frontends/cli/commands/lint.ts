/** `patchbay lint`. */
import { exists, identify, isDirectory } from "../../../ffi/files.ts";
import { describeFinding, lintDirectory, lintNetwork } from "../../../runtime/lint/lint.ts";
import type { Command } from "../command.ts";
import { runtimeOf, runtimeOptions } from "../network-arguments.ts";
import { print, printJson } from "../../../process/output.ts";

export const lintCommand: Command = {
  summary: "check configuration files: misspelt keys, wrong values, networks that cannot be reached",
  operands: "[FILE…]",
  operandCount: [0, Infinity],
  options: {
    json: { help: "print JSON" },
    "config-dir": runtimeOptions["config-dir"]!,
    "plugin-path": runtimeOptions["plugin-path"]!,
  },
  notes:
    "Without FILE, lint checks the configuration directory; a FILE may be a directory, too. It does not check the\n" +
    "keys of plugins that are not part of patchbay.\n",
  exitStatus: "1 when it finds an error or a warning.",
  examples: [
    { args: "", what: "all that engines read in /etc/cni/net.d" },
    { args: "10-first.conflist", what: "a file that is not there yet" },
  ],
  run(given) {
    const { configDirectory, pluginPath } = runtimeOf(given);
    const isFile = (path: string) => !exists(path) || !isDirectory(identify(path));
    if (given.operands.length === 0 && !exists(configDirectory)) {
      throw new Error(`${configDirectory}: no such directory; --config-dir names another`);
    }
    const findings = given.operands.length === 0
      ? lintDirectory(configDirectory, pluginPath)
      : given.operands.flatMap((path) => (isFile(path) ? lintNetwork : lintDirectory)(path, pluginPath));
    if (given.has("json")) printJson(findings);
    else print(findings.map((finding) => `${describeFinding(finding)}\n`).join(""));
    return findings.every(({ severity }) => severity === "note") ? 0 : 1;
  },
};
