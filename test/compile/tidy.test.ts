/** The structure check finds each kind of fault in a small tree, and nothing in a sound one. */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { unusedRules } from "../../compile/structure/imports.ts";
import type { Source } from "../../compile/structure/sources.ts";
import { findings } from "../../compile/tidy.ts";

const directory = mkdtempSync(join(tmpdir(), "patchbay-tidy-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const sound = {
  "src/main.ts": 'import { loadPlugin } from "./plugins/table.ts";\nloadPlugin("x");\n',
  "src/plugins/table.ts":
    'export function loadPlugin(name: string) {\n  return name && (require("./main/x/x.ts") as typeof import("./main/x/x.ts")).default;\n}\n',
  "src/plugins/main/x/x.ts": 'import type { Y } from "./x.schema.ts";\nexport default {} as Y;\n',
  "src/plugins/main/x/x.schema.ts":
    'import { z } from "zod";\nexport type Y = object;\nexport const y = z.object({});\n',
  "src/runtime/show.ts": "const text = `\nimport nothing\n`; // console.log(text)\nexport { text };\n",
};

/** What is found in the sound tree with these files added or replaced. */
function foundWith(files: Record<string, string>, table = ["x"]): string[] {
  const root = mkdtempSync(join(directory, "tree-"));
  for (const [path, text] of Object.entries({ ...sound, ...files })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  Bun.spawnSync(["git", "init", "-q"], { cwd: root });
  Bun.spawnSync(["git", "add", "."], { cwd: root });
  return findings(root, table);
}

test("findings() has nothing to say of a sound tree", () => {
  expect(foundWith({})).toEqual([]);
});

test("findings() lets a file call its own function as another file's is called", () => {
  expect(foundWith({ "src/net/a.ts": "function loadPlugin() {}\nloadPlugin();\n" })).toEqual([]);
});

test("findings() lets a sentence go on in a line that begins with such a word", () => {
  const text =
    "// The addresses,\n// Of ours.\n/*\n * The links\n * Those are.\n */\nexport const a = `\n// Offset`;\n";
  expect(foundWith({ "src/net/a.ts": text })).toEqual([]);
});

test("a permission that nobody needs is found", () => {
  const none = unusedRules([]), source = { path: "src/main.ts", imports: ["src/ffi/libc.ts"] } as Source;
  expect(none).toContain("ARCHITECTURE.md: main.ts does not import ffi");
  expect(none.filter((one) => !unusedRules([source]).includes(one))).toEqual([
    "ARCHITECTURE.md: main.ts does not import ffi",
  ]);
});

const faults: [fault: string, path: string, text: string, finding: string][] = [
  [
    "an upward import",
    "src/net/a.ts",
    'import "../engine/run.ts";',
    "src/net/a.ts: must not import src/engine/run.ts",
  ],
  [
    "an upward import of types",
    "src/ffi/a.ts",
    'import type { A } from "../engine/run.ts";\nexport type B = A;',
    "src/ffi/a.ts: must not import src/engine/run.ts",
  ],
  [
    "a lazy upward import",
    "src/ffi/a.ts",
    'export const a = () => require("../main.ts");',
    "must not import src/main.ts",
  ],
  ["a package", "src/engine/a.ts", 'import { z } from "zod";\nexport const a = z;', "must not import zod"],
  ["a built-in module", "src/engine/a.ts", 'import { a } from "node:fs";\na;', "must not import node:fs"],
  ["a part without a rule", "src/new/a.ts", "export {};", "src/new/a.ts: ARCHITECTURE.md does not say"],
  [
    "a schema that is loaded",
    "src/plugins/main/x/x.ts",
    'import { y } from "./x.schema.ts";\nexport default y;',
    "may only import types from src/plugins/main/x/x.schema.ts",
  ],
  [
    "a schema on the way of a verb",
    "src/plugins/table.ts",
    'export const loadPlugin = () => require("./main/x/x.schema.ts");',
    "src/main.ts → src/plugins/table.ts → src/plugins/main/x/x.schema.ts → zod: loaded on the way of a plugin verb",
  ],
  ["the module of FFI", "src/ffi/a.ts", 'import { ptr } from "bun:ffi";\nptr;', "only types from bun:ffi"],
  ["output", "src/engine/a.ts", "console.log(1);", "calls console.log"],
  ["a stream", "src/engine/a.ts", "process.stdout.write('');", "calls process.stdout"],
  ["waiting", "src/engine/a.ts", "await 1;", "calls await"],
  [
    "a file that is opened without being judged",
    "src/engine/a.ts",
    'import { openFile } from "../ffi/files.ts";\nopenFile("/run/state", 0);',
    "src/engine/a.ts: opens files without judging them",
  ],
  [
    "an opening that is listed and gone",
    "src/engine/build.ts",
    "export {};",
    "src/engine/build.ts opens no file any more",
  ],
  [
    "a loop without end",
    "src/engine/a.ts",
    "for (;;) { a(); }",
    "src/engine/a.ts: waits or loops without end: for (;;",
  ],
  [
    "a loop with only a beginning",
    "src/engine/a.ts",
    "for (let a = b(1, c()), d = 2;; a++) d;",
    "loops without end: for (",
  ],
  ["a loop that is always true", "src/engine/a.ts", "while (true) a();", "loops without end: while ("],
  ["poll without a limit", "src/engine/a.ts", "poll([{ fd: a(1) }], -1);", "loops without end: poll("],
  ["a child that is waited for", "src/engine/a.ts", "waitFor(pid);", "loops without end: waitFor("],
  ["a lock that is waited for", "src/engine/a.ts", "fcntl(fd, F_OFD_SETLKW);", "loops without end: F_OFD_SETLKW"],
  [
    "waiting in C",
    "src/native/a.c",
    "CALL(ppoll, &closed, 1, 0, 0, 0, 0);",
    "src/native/a.c: waits or loops without end",
  ],
  ["a pause", "src/engine/a.ts", "Bun.sleepSync(5);", "src/engine/a.ts: pauses: sleepSync("],
  [
    "a permission to wait that is not needed any more",
    "src/frontends/resident/serve.ts",
    "export {};",
    "compile/structure/waits.ts: permits 3 in src/frontends/resident/serve.ts, which has 0",
  ],
  [
    "a type that has another's name",
    "src/engine/a.ts",
    "export interface A {}\nexport const b = 1;\nexport class Y {}",
    "src/engine/a.ts, src/plugins/main/x/x.schema.ts: export types of one name, Y",
  ],
  [
    "a function that has another's name",
    "src/net/a.ts",
    "export const loadPlugin = (name: string): string => name;\nfunction b() {}\nb();",
    "src/net/a.ts, src/plugins/table.ts: export functions of one name, loadPlugin",
  ],
  [
    "a permission to share a name that is not needed any more",
    "src/engine/a.ts",
    "export interface PluginConfig {}",
    "compile/structure/names.ts: permits PluginConfig in contract frontends/library, and it is in engine",
  ],
  ["a drawer", "src/net/utils.ts", "export {};", "src/net/utils.ts: is a drawer"],
  ["a name in another case", "test/someTest.ts", "export {};", "test/someTest.ts: is not in kebab-case"],
  ["a long file", "test/long.ts", "\n".repeat(701), "test/long.ts: has 701 lines"],
  [
    "a test file that says nothing",
    "test/a.test.ts",
    "/** */\nexport {};",
    "test/a.test.ts: does not say at its head",
  ],
  [
    "a comment that begins with no subject",
    "compile/a.mjs",
    "/* Of a link. */\nexport {};",
    'compile/a.mjs:1: a sentence begins with "Of"',
  ],
  [
    "a later sentence of a comment that begins with no subject",
    "src/native/a.c",
    "int a;\t// A link.\nint b;\t/* The end. Those of bridges. */",
    'src/native/a.c:2: a sentence begins with "Those"',
  ],
  [
    "a sentence without a subject in a line of its own",
    "test/a.ts",
    "/**\n * A link (see `b`).\n * Whoever has it.\n */",
    'test/a.ts:3: a sentence begins with "Whoever"',
  ],
  ["a plugin that is not in the table", "src/plugins/meta/y/y.ts", "export {};", "table.ts: lacks y"],
  ["a path of one machine", "docs/a.md", `see ${["", "home", "me", "notes"].join("/")}`, "docs/a.md:1: names a path"],
];

for (const [fault, path, text, finding] of faults) {
  test(`findings() finds ${fault}`, () => {
    expect(foundWith({ [path]: text }).join("\n")).toContain(finding);
  });
}

test("findings() finds folders that import one another in a circle, and which files do", () => {
  const importing = (path: string) => `import "${path}";`;
  const files = {
    "src/net/a/1.ts": importing("../b/1.ts"),
    "src/net/b/1.ts": importing("../c/1.ts"),
    "src/net/b/2.ts": importing("../d/1.ts"),
    "src/net/c/1.ts": importing("../d/1.ts"),
    "src/net/c/2.ts": importing("../a/2.ts"),
    "src/net/a/2.ts": "export {};",
    "src/net/d/1.ts": "export {};",
  };
  expect(foundWith(files)).toEqual([
    "src/net/a/1.ts imports src/net/b/1.ts: closes a circle of folders, src/net/a → src/net/b → … → src/net/a",
    "src/net/b/1.ts imports src/net/c/1.ts: closes a circle of folders, src/net/b → src/net/c → … → src/net/b",
    "src/net/c/2.ts imports src/net/a/2.ts: closes a circle of folders, src/net/c → src/net/a → … → src/net/c",
  ]);
});

test("findings() finds a plugin in the table that has no folder, and a table out of order", () => {
  expect(foundWith({}, ["x", "a"])).toEqual([
    "src/plugins/table.ts: is not sorted",
    "src/plugins/table.ts: names a, which has no folder",
  ]);
});
