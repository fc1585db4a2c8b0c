/** The program is a plugin or the runtime, depending on the name it is called by. */
import { exitNow } from "./ffi/libc.ts";
import { restrictUmask } from "./ffi/umask.ts";
import { loadPlugin } from "./plugins/table.ts";

const calledAs = process.argv0.slice(process.argv0.lastIndexOf("/") + 1);
const plugin = loadPlugin(calledAs);
restrictUmask();
exitNow(
  plugin === undefined
    ? (require("./runtime/cli/command-line.ts") as typeof import("./runtime/cli/command-line.ts")).runCommandLine(
      calledAs,
      process.argv.slice(2),
    )
    : (require("./engine/exec-plugin.ts") as typeof import("./engine/exec-plugin.ts")).execPlugin(plugin),
);
