/**
 * `patchbay` from its sources, which notes the document that each of our plugins is called with in this process: a line
 * `<plugin> <document>` in the file that NOTES names.
 */
import { appendFileSync } from "node:fs";
import { loadPlugin, pluginNames } from "../../src/plugins/table.ts";
import { runCommandLine } from "../../src/runtime/cli/command-line.ts";

/** JSON alone would leave it out. */
const telling = (_key: string, value: unknown) => value === undefined ? "(undefined)" : value;

for (const name of pluginNames) {
  const plugin = loadPlugin(name)! as { validate: (document: unknown) => unknown };
  const { validate } = plugin;
  plugin.validate = (document) => {
    appendFileSync(process.env.NOTES!, `${name} ${JSON.stringify(document, telling)}\n`);
    return validate(document);
  };
}

process.exit(runCommandLine("patchbay", process.argv.slice(2)));
