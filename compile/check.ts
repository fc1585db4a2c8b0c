/**
 * Checks of the sources: types, lint, format, generated files, structure. `npm run check` prints a line for each;
 * test/compile/check.test.ts runs them with the tests.
 *
 * Names as arguments select checks: `npm run check -- types`.
 */
import { join, resolve } from "node:path";

const root = resolve(import.meta.dir, "..");
const bin = (name: string) => join(root, "node_modules/.bin", name);

export const checks: Record<string, string[]> = {
  types: [bin("tsc"), "--noEmit", "-p", "."],
  lint: [bin("deno"), "lint", "--quiet"],
  format: [bin("deno"), "fmt", "--check", "--quiet"],
  generated: [process.execPath, "compile/validators.ts", "--check"],
  structure: [process.execPath, "compile/tidy.ts"],
};

export async function check(name: string): Promise<{ passed: boolean; output: string }> {
  const environment = { ...process.env, NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1" };
  const child = Bun.spawn(checks[name]!, { cwd: root, env: environment, stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { passed: await child.exited === 0, output: stdout + stderr };
}

if (import.meta.main) {
  const wanted = process.argv.slice(2);
  const unknown = wanted.filter((name) => !Object.hasOwn(checks, name));
  if (unknown.length > 0) {
    console.error(`no check is called ${unknown.join(", ")}; there are ${Object.keys(checks).join(", ")}`);
    process.exit(2);
  }
  for (const name of wanted.length > 0 ? wanted : Object.keys(checks)) {
    const { passed, output } = await check(name);
    console.log(`${passed ? "ok    " : "FAILED"} ${name}`);
    if (output.trim() !== "") console.log(output.trimEnd().replaceAll(/^/gm, "       "));
    if (!passed) process.exitCode = 1;
  }
}
