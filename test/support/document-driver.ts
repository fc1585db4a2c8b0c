/**
 * `patchbay` from its sources. It records the document that each of our plugins gets in this process, as a line
 * `<plugin> <document>` in the file $NOTES. Runs the commands of a JSON list, one after the other.
 */
import { appendFileSync } from "node:fs";
import { loadPlugin, pluginNames } from "../../src/plugins/table.ts";
import { runCommandLine } from "../../src/frontends/cli/command-line.ts";

/** JSON leaves undefined out. */
const telling = (_key: string, value: unknown) => value === undefined ? "(undefined)" : value;

for (const name of pluginNames) {
  const plugin = loadPlugin(name)! as { validate: (document: unknown) => unknown };
  const { validate } = plugin;
  plugin.validate = (document) => {
    appendFileSync(process.env.NOTES!, `${name} ${JSON.stringify(document, telling)}\n`);
    return validate(document);
  };
}

const commands: string[][] = JSON.parse(process.argv[2]!);
for (const args of commands) {
  const status = runCommandLine("patchbay", args);
  if (status !== 0) throw new Error(`${args.join(" ")}: exit status ${status}`);
}
