/** In a tree with faults `npm run check` names the files, and says what to do. */
import { afterAll, expect, test } from "bun:test";
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checks } from "../../compile/check.ts";
import { copyRepository } from "../support/documents.ts";

const tree = mkdtempSync(join(tmpdir(), "patchbay-check-"));
afterAll(() => rmSync(tree, { recursive: true }));

/** A fault of each kind, and what of it has to be said. */
const faults: Record<keyof typeof checks, { file: string; line: string; says: RegExp }> = {
  types: {
    file: "src/process/version.ts",
    line: 'export const n: number = "1";',
    says: /^src\/process\/version\.ts\(\d+,14\): error TS/m,
  },
  lint: { file: "compile/elf.ts", line: "debugger;", says: /^compile\/elf\.ts: line \d+, .*no-debugger/m },
  format: { file: "compile/native.ts", line: "// a\n\n\n\n// b", says: /^not formatted: compile\/native\.ts$/m },
  generated: { file: "schemas/bridge.json", line: "{}", says: /^schemas\/bridge\.json: is out of date$/m },
  structure: {
    file: "src/net/mac.ts",
    line: 'import "../engine/run.ts";',
    says: /^src\/net\/mac\.ts: must not import/m,
  },
};

function makeTree(): void {
  // Without the tests, which take the types longest.
  copyRepository(tree, ["compile", "docs", "schemas", "src", "types"]);
  for (const { file, line } of Object.values(faults)) appendFileSync(join(tree, file), `${line}\n`);
}

test(
  "each check of a tree with faults names the file and the remedy, and nothing else of the tools behind it",
  () => {
    makeTree();
    const command = [process.execPath, "compile/check.ts"];
    const { stdout, stderr, exitCode } = Bun.spawnSync(command, { cwd: tree, stdout: "pipe", stderr: "pipe" });
    expect([exitCode, stderr.toString()]).toEqual([1, ""]);
    const parts = stdout.toString().split(/^(?=ok|FAILED)/m);
    expect(parts.length).toBe(Object.keys(checks).length);
    for (const [index, [name, { remedy }]] of Object.entries(checks).entries()) {
      const [head, ...lines] = parts[index]!.trimEnd().split("\n");
      expect(head).toBe(`FAILED ${name}`);
      const said = lines.map((line) => line.slice("       ".length));
      expect(said.join("\n")).toMatch(faults[name]!.says);
      expect(said.at(-1)).toBe(`→ ${remedy}`);
      expect(said.join("\n")).not.toMatch(/backtrace|Stack|\n\n/);
      expect(said.join("\n")).not.toContain(tree);
    }
  },
  300_000,
);
