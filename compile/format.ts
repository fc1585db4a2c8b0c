/** `npm run format`: formats what `npm run check -- format` compares. deno.json says how. */
import { join } from "node:path";
import { defineTool, root, runTool } from "./tool.ts";

/** Formats these files, by default all, and then it lists what it has changed. Returns the exit status. */
export function format(paths: readonly string[] = []): number {
  const command = [join(root, "node_modules/.bin/deno"), "fmt", ...paths.length > 0 ? ["--quiet"] : [], ...paths];
  const env = { ...process.env, DENO_NO_UPDATE_CHECK: "1", RUST_BACKTRACE: "0" };
  return Bun.spawnSync(command, { cwd: root, env, stdin: "ignore", stdout: "inherit", stderr: "inherit" }).exitCode;
}

export const tool = defineTool({
  name: "format",
  about: "Formats the sources and pages.",
  needs: "packages",
  begin: () => () => format(),
});

if (import.meta.main) process.exitCode = await runTool(tool);
