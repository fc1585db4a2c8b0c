/** Rules for names and lengths of files and functions, head comments of tests, and machine-specific texts. */
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

const MOST_LINES = 300, MOST_FUNCTION_LINES = 60;
/** The beginning of a reason, in the head comment of a longer file or before a longer function. */
const EXCUSE = /Longer than (300|60) lines: \w/;
const DRAWERS = /^(index|utils?|helpers?|common|constants|types|misc|manager)\.ts$/;

export function namesAndLengths(root: string, paths: readonly string[]): string[] {
  const findings: string[] = [];
  for (const path of paths) {
    const name = basename(path);
    if (DRAWERS.test(name)) findings.push(`${path}: is a drawer, not a name`);
    if (!/^[a-z0-9.-]+$/.test(name)) findings.push(`${path}: is not in kebab-case`);
    if (name.endsWith(".gen.ts")) continue;
    const lines = readFileSync(join(root, path), "utf8").split("\n");
    const head = lines.slice(0, lines.indexOf(" */") + 1).join("\n");
    if (lines.length - 1 > MOST_LINES && !EXCUSE.test(head)) {
      findings.push(
        `${path}: has ${lines.length - 1} lines, and does not say why at its head: Longer than 300 lines: …`,
      );
    }
    // A test's body is a list of steps.
    if (!path.startsWith("test/")) findings.push(...longFunctions(path, lines));
  }
  return findings;
}

/** Finds the end of a function by its indentation: the formatter indents the closing brace like the first line. */
function longFunctions(path: string, lines: readonly string[]): string[] {
  const findings: string[] = [];
  lines.forEach((line, start) => {
    const opening = /^(\s*)(?!(?:if|for|while|switch|catch|else)\b|\}).*(?:\)(?:: [^={]+)? |=> )\{$/.exec(line);
    if (opening === null) return;
    const end = lines.findIndex((other, at) => at > start && new RegExp(`^${opening[1]}\\}`).test(other));
    const comment = lines.slice(Math.max(0, start - 6), start).join("\n");
    if (end - start + 1 <= MOST_FUNCTION_LINES || EXCUSE.test(comment)) return;
    findings.push(
      `${path}:${start + 1}: the function has ${end - start + 1} lines, more than ${MOST_FUNCTION_LINES}`,
    );
  });
  return findings;
}

/** The head comment of a test file says what it shows. */
export function testHeads(root: string, paths: string[]): string[] {
  const head = (path: string) => readFileSync(join(root, path), "utf8").match(/^\/\*\*([^]*?)\*\//)?.[1] ?? "";
  return paths.filter((path) => path.endsWith(".test.ts") && head(path).replace(/[\s*]/g, "").length < 20)
    .map((path) => `${path}: does not say at its head what it shows`);
}

/** Machine-specific texts. Joined from parts so that this file passes. */
const foreignTexts = new RegExp(
  ["/work", "/home/[a-z]+"].map((path) => `(?<![\\w.])${path}/`).join("|") +
    "|" + ["registry" + "\\.npmjs", "deb" + "\\.debian"].join("|"),
);

export function machineTexts(root: string): string[] {
  const tracked = Bun.spawnSync(["git", "ls-files", "-z"], { cwd: root }).stdout.toString().split("\0").filter(
    Boolean,
  );
  return tracked.filter((path) => path !== "compile/structure/files.ts" && existsSync(join(root, path))).flatMap(
    (path) => {
      const lines = readFileSync(join(root, path), "utf8").split("\n");
      const at = lines.findIndex((line) => foreignTexts.test(line));
      return at < 0 ? [] : [`${path}:${at + 1}: names a path of one machine or a package registry`];
    },
  );
}
