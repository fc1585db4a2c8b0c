/** The program is a plugin or the runtime, depending on the name it is called by; in a resident, once for each call. */
import { exitNow } from "./ffi/libc.ts";
import { restrictUmask } from "./ffi/umask.ts";
import { loadPlugin } from "./plugins/table.ts";

function run(calledBy: string, args: readonly string[]): number {
  const name = calledBy.slice(calledBy.lastIndexOf("/") + 1), plugin = loadPlugin(name);
  if (plugin !== undefined) {
    return (require("./engine/exec-plugin.ts") as typeof import("./engine/exec-plugin.ts")).execPlugin(plugin);
  }
  if (args[0] === "serve" && name !== "cnitool") return serve(args);
  return (require("./runtime/cli/command-line.ts") as typeof import("./runtime/cli/command-line.ts"))
    .runCommandLine(name, args);
}

function serve(args: readonly string[]): number {
  if (args[1] !== "--worker") {
    return (require("./resident/serve.ts") as typeof import("./resident/serve.ts")).serve(args.slice(1));
  }
  return (require("./resident/worker.ts") as typeof import("./resident/worker.ts"))
    .work(([calledBy, ...rest]) => run(calledBy!, rest));
}

restrictUmask();
exitNow(run(process.argv0, process.argv.slice(2)));
