/**
 * Runs a tool of this checkout, as `npm run` does: reads its arguments, sets the machine up for it, and begins.
 *
 *     npx bun compile/tool.ts FILE [ARGUMENT…]
 *
 * The file exports `tool`. Without this program, `npx bun FILE` runs it on the machine as it is.
 */
import { resolve } from "node:path";
import { type Arguments, type Options, orRefuse, readArguments, type Usage, usage } from "./arguments.mjs";
import { orSay, setUp } from "./setup.mjs";

export const root = resolve(import.meta.dir, "..");

type Work = () => number | void | Promise<number | void>;

export interface Tool<Known extends Options = Options> extends Usage<Known> {
  /** What has to be there before the work. */
  needs: "packages" | "all" | ((given: Arguments<Known>) => "packages" | "all");
  /** Throws `Refused` for what the tool cannot do. Changes nothing: the machine is not set up yet. */
  begin(given: Arguments<Known>, argv: readonly string[]): Work;
}

/** Lets `begin` know the types of the options. */
export function defineTool<const Known extends Options>(tool: Tool<Known>): Tool<Known> {
  return tool;
}

/** Returns the exit status. */
export function runTool<Known extends Options>(
  tool: Tool<Known>,
  argv: readonly string[] = process.argv.slice(2),
  prepare: (upTo: "packages" | "all") => Promise<void> = async () => {},
): Promise<number> {
  return orRefuse(tool, () =>
    orSay(async () => {
      const given = readArguments(tool, argv);
      if (given === undefined) return console.log(usage(tool));
      const work = tool.begin(given, argv);
      await prepare(typeof tool.needs === "function" ? tool.needs(given) : tool.needs);
      return await work();
    }));
}

if (import.meta.main) {
  const [file, ...argv] = process.argv.slice(2);
  const { tool } = await import(resolve(root, file!)) as { tool: Tool };
  process.exitCode = await runTool(tool, argv, setUp);
}
