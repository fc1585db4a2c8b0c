/** Which test files there are, which of them are unit tests, and which a person asked for. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

export const root = resolve(import.meta.dir, "../..");

/**
 * A unit test is a test file that imports none of these, neither itself nor through other files. It needs Bun and the
 * npm packages, but no root, no Debian packages and no build. test/runner/unit.test.ts shows that.
 */
export const HEAVY = [
  // Network and mount namespaces.
  "test/support/machine.ts",
  // The built program, Debian's Go plugins.
  "test/support/plugins.ts",
  // Whatever else a test says it needs.
  "test/support/needs.ts",
];

const transpiler = new Bun.Transpiler({ loader: "ts", target: "bun" });

/** Relative to `top`, sorted. */
export function testFiles(top = root): string[] {
  return [...new Bun.Glob("test/**/*.test.ts").scanSync(top)].sort();
}

/** The files whose path contains one of `filters`; all of them when there are no filters. */
export function matching(files: readonly string[], filters: readonly string[]): string[] {
  const parts = filters.map((one) => one.replace(/^\.\//, ""));
  return files.filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)));
}

export function unitTests(top = root): string[] {
  return testFiles(top).filter((file) => !importsHeavy(top, file, new Set()));
}

/** Type-only imports do not count: nothing of them is loaded. */
function importsHeavy(top: string, file: string, seen: Set<string>): boolean {
  if (seen.has(file)) return false;
  seen.add(file);
  if (HEAVY.includes(file)) return true;
  // Nothing outside of test/ imports from it; compile/tidy.ts holds src to that.
  if (!file.startsWith("test/") || !file.endsWith(".ts")) return false;
  // A test that cannot be loaded says so itself.
  if (!existsSync(join(top, file))) return false;
  return transpiler.scanImports(readFileSync(join(top, file), "utf8"))
    .filter(({ path }) => path.startsWith("."))
    .some(({ path }) => importsHeavy(top, relative(top, resolve(top, dirname(file), path)), seen));
}
