/**
 * `npm run new` makes files with the new name alone, and for a name that cannot be taken, or when it fails, nothing. That
 * what it makes passes the checks and works is in test/plugins/skeleton.test.ts.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readArguments, Refused } from "../../compile/arguments.mjs";
import { tool } from "../../compile/new.ts";
import { copyRepository } from "../support/documents.ts";

const tree = mkdtempSync(join(tmpdir(), "patchbay-new-"));
beforeAll(() => copyRepository(tree, ["compile", "docs", "examples", "schemas", "src", "types"]));
afterAll(() => rmSync(tree, { recursive: true }));

function run(...words: string[]) {
  const command = [process.execPath, ...words];
  const { stdout, stderr, exitCode } = Bun.spawnSync(command, { cwd: tree, stdout: "pipe", stderr: "pipe" });
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

/** Every path of the sources, with the digest of a file. */
function state(): Map<string, string> {
  const paths = ["docs/plugins", "src", "schemas"].flatMap((folder) =>
    readdirSync(join(tree, folder), { recursive: true, encoding: "utf8" }).map((path) => join(folder, path))
  );
  return new Map(
    paths.map((path): [string, string] => {
      const full = join(tree, path);
      return [path, statSync(full).isFile() ? Bun.hash(readFileSync(full)).toString() : "folder"];
    }).sort(),
  );
}

test.each([
  [["plugin"], "takes one name"],
  [["plugin", "a", "b"], "takes one name"],
  [["plugin", "Label"], "is no name"],
  [["plugin", "my_plugin"], "is no name"],
  [["plugin", "-"], "is no name"],
  [["plugin", "a--b"], "is no name"],
  [["plugin", "../x"], "is no name"],
  [["plugin", "bridge"], "is taken"],
  [["plugin", "veth"], "is taken"],
  [["plugin", "netavark"], "is taken"],
  [["plugin", "link-alias"], "is taken"],
  [["plugin", "delete"], "means something else"],
  [["plugin", "resource"], "means something else"],
  [["plugin", "host"], "means something else"],
  [["plugin", "label", "--kind", "nosuch"], "a plugin is one of main, ipam, meta"],
  [["plugin", "label", "--theme", "nosuch"], "there are address"],
  [["resource", "label", "--kind", "meta"], "a plugin is one of"],
  [["resource", "veth"], "is taken"],
  [["network", "label"], "say plugin or resource"],
])("%j is refused in one line", (words, text) => {
  const begin = () => tool.begin(readArguments(tool, words)!, words);
  expect(begin).toThrow(Refused);
  expect(begin).toThrow(text);
  expect(begin).not.toThrow("\n");
});

test("when a step fails, what the others made is taken back", () => {
  const schema = "src/plugins/meta/tuning/tuning.schema.ts", text = readFileSync(join(tree, schema), "utf8");
  appendFileSync(join(tree, schema), 'throw new Error("broken");\n');
  const before = state();
  const { code, stdout, stderr } = run("compile/new.ts", "plugin", "label");
  expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: "", stderr: "new: broken; nothing was made\n" });
  expect(state()).toEqual(before);
  writeFileSync(join(tree, schema), text);
});

test("a plugin and a resource are in their folders, and no spelling of the skeleton stays", () => {
  const before = state();
  const plugin = run("compile/new.ts", "plugin", "zone-label", "--kind", "main", "--theme", "traffic");
  expect(plugin, plugin.stderr).toMatchObject({ code: 0, stderr: "" });
  const resource = run("compile/new.ts", "resource", "a9-tag");
  expect(resource, resource.stderr).toMatchObject({ code: 0, stderr: "" });
  const made = [...state().keys()].filter((path) => !before.has(path)).sort();
  expect(made).toEqual([
    "docs/plugins/zone-label.md",
    "schemas/zone-label.json",
    "src/plugins/main/zone-label",
    "src/plugins/main/zone-label/zone-label.schema.ts",
    "src/plugins/main/zone-label/zone-label.ts",
    "src/plugins/main/zone-label/zone-label.validate.gen.ts",
    "src/resources/link/a9-tag.ts",
    "src/resources/traffic/zone-label.ts",
  ]);
  for (const path of made.filter((path) => path.endsWith(".ts"))) {
    const text = readFileSync(join(tree, path), "utf8");
    expect(text).not.toMatch(/link-?alias|skeleton|to copy/i);
    if (path.endsWith("gen.ts")) continue;
    expect(plugin.stdout + resource.stdout).toContain(`wrote ${path}\n`);
  }
  for (
    const page of [
      "README.md",
      "docs/plugins/zone-label.md",
      "docs/quirks",
      "examples",
      "docs/kernel-objects.md",
      "CHANGELOG.md",
    ]
  ) {
    expect(plugin.stdout).toContain(page);
  }
}, 300_000);
