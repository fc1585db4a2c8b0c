/**
 * Checks of the sources: types, lint, format, generated files, structure. `npm run check` prints a line for each, and
 * what to do about one that fails. test/compile/check.test.ts runs them with the tests.
 */
import { join } from "node:path";
import { Refused } from "./arguments.mjs";
import { defineTool, root, runTool } from "./tool.ts";

const bin = (name: string) => join(root, "node_modules/.bin", name);

interface Check {
  command: string[];
  /** What to do when it fails. */
  remedy: string;
  /** Picks what a person needs from what the command prints. Without it, everything is shown. */
  findings?(output: string): string;
}

export const checks: Record<string, Check> = {
  types: {
    command: [bin("tsc"), "--noEmit", "--pretty", "false", "-p", "."],
    remedy: "change these lines until the types agree",
  },
  lint: {
    command: [bin("deno"), "lint", "--compact"],
    remedy: "change these lines; `// deno-lint-ignore RULE` above one permits it",
    findings: (output) =>
      linesWith(output, /^(?:file:\/\/|Error linting: )/).replaceAll(
        new RegExp(`(?:file://)?${RegExp.escape(root)}/`, "g"),
        "",
      ),
  },
  format: {
    command: [bin("deno"), "fmt", "--check"],
    remedy: "npm run format",
    findings: (output) =>
      linesWith(output, /^(?:from .*:|Error checking: .*)$/).replaceAll(/^from (.*):$/gm, "not formatted: $1")
        .replaceAll(`${root}/`, ""),
  },
  generated: { command: [process.execPath, "compile/generate.ts", "--check"], remedy: "npm run generate" },
  structure: {
    command: [process.execPath, "compile/tidy.ts"],
    remedy: 'CONTRIBUTING.md, "House rules", and ARCHITECTURE.md say what goes where',
  },
};

function linesWith(output: string, pattern: RegExp): string {
  return output.split("\n").filter((line) => pattern.test(line)).join("\n");
}

/** `output` is empty when the check has passed. */
export async function check(name: string): Promise<{ passed: boolean; output: string }> {
  const { command, findings, remedy } = checks[name]!;
  // Deno takes FORCE_COLOR=0, too, for a wish for colours.
  const plain = { NO_COLOR: "1", FORCE_COLOR: undefined, DENO_NO_UPDATE_CHECK: "1", RUST_BACKTRACE: "0" };
  const env = { ...process.env, ...plain };
  const child = Bun.spawn(command, { cwd: root, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if (await child.exited === 0) return { passed: true, output: "" };
  const said = `${stdout}${stderr}`.trimEnd();
  // What it cannot read, it shows.
  return { passed: false, output: `${findings?.(said) || said}\n→ ${remedy}` };
}

export const tool = defineTool({
  name: "check",
  about: "Checks the sources. With names, only these checks.",
  words: `[${Object.keys(checks).join("|")}]`,
  needs: "packages",
  begin({ positionals }) {
    const unknown = positionals.filter((name) => !Object.hasOwn(checks, name));
    if (unknown.length > 0) {
      throw new Refused(`no check is called ${unknown.join(", ")}; there are ${Object.keys(checks).join(", ")}`);
    }
    return async () => {
      let status = 0;
      for (const name of positionals.length > 0 ? positionals : Object.keys(checks)) {
        const { passed, output } = await check(name);
        console.log(`${passed ? "ok    " : "FAILED"} ${name}`);
        if (!passed) console.log(output.replaceAll(/^/gm, "       "));
        if (!passed) status = 1;
      }
      return status;
    };
  },
});

if (import.meta.main) process.exitCode = await runTool(tool);
