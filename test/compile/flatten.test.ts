/** The bundle without its wrappers does the same as before, and each name gets a program of its own. */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flatten, type Target } from "../../compile/flatten.ts";

const directory = mkdtempSync(join(tmpdir(), "patchbay-flatten-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Modules that say when they are loaded, and use one another in every way that the sources do. */
const sources: Record<string, string> = {
  "main.ts": `
    import { say, said } from "./say.ts";
    import { early } from "./early.ts";
    say("main");
    if (early("late")) (require("./late.ts") as typeof import("./late.ts")).late();
    const other = () => process.argv0 === "none" ? (require("./cli.ts") as typeof import("./cli.ts")).run() : "no cli";
    say(other());
    console.log(said.join(", "));
  `,
  "say.ts": `export const said: string[] = []; export function say(text: string) { said.push(text); }`,
  "early.ts": `
    import { say } from "./say.ts";
    say("early");
    export class Early { constructor(readonly name: string) {} }
    export function early(wanted: string) { return process.argv0 === wanted; }
    export const viaWhole = () => {
      const { late, value } = require("./late.ts") as typeof import("./late.ts");
      if (value) { const { twin } = require("./twin.ts") as typeof import("./twin.ts"); say(twin + typeof late); }
      return (require("./twin.ts") as typeof import("./twin.ts"));
    };
  `,
  "late.ts": `
    import { say } from "./say.ts";
    import { Early, viaWhole } from "./early.ts";
    import { shared, Sum } from "./shared.ts";
    say("late");
    export const value = shared(20);
    export function late() { local(); say(viaWhole().twin); say(require("./early.ts").early("late") ? "back" : ""); }
    function local() { say(new Early("e" + value + new Sum(1).plus(1)).name); }
    export default 1;
  `,
  "shared.ts": `export function shared(n: number) { return n + one; } const one = 1;
    export class Sum { constructor(private a: number) {} plus(b: number) { return this.a + b; } }`,
  "twin.ts": `
    import { say } from "./say.ts"; import { shared } from "./shared.ts"; say("twin");
    export const twin = "twin" + shared(1);`,
  "cli.ts": `import { say } from "./say.ts"; say("cli"); export function run() { return "ran"; }`,
};

async function bundle(name: string, files = sources): Promise<string> {
  const folder = join(directory, name);
  mkdirSync(folder);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  const words = [process.execPath, "build", "--target=bun", "--format=esm", "--minify-syntax", "--outfile=bundle.js"];
  const built = Bun.spawn([...words, "main.ts"], { cwd: folder, stderr: "pipe" });
  if (await built.exited !== 0) throw new Error(await built.stderr.text());
  return readFileSync(join(folder, "bundle.js"), "utf8");
}

async function run(program: string, argv0: string): Promise<string> {
  const path = join(directory, `${argv0}-${Bun.hash(program)}.js`);
  writeFileSync(path, program);
  const child = Bun.spawn([process.execPath, path], { argv0, stdout: "pipe", stderr: "pipe" });
  await child.exited;
  return await child.stdout.text() + await child.stderr.text();
}

const target = (names: string[] | undefined, eager: string[] = [], ...often: string[][]): Target => ({
  names,
  often: often.map((paths) => new Set(paths)),
  eager: ["say.ts", "early.ts", ...eager, "main.ts"],
});

test.each<{ often: string[][] }>([
  { often: [] },
  { often: [[]] },
  { often: [["late.ts", "shared.ts"]] },
  { often: [["twin.ts", "shared.ts"]] },
  { often: [["shared.ts"], ["late.ts", "shared.ts"]] },
  { often: [["shared.ts"], ["twin.ts", "shared.ts"], ["late.ts", "shared.ts"]] },
  { often: [["late.ts", "shared.ts", "twin.ts", "cli.ts"]] },
])(
  "flatten() keeps what a program does, wherever the lines are drawn: often %j",
  async ({ often }) => {
    const text = await bundle(`kept-${often.map((paths) => paths.join("+")).join("-")}-${often.length}`);
    const drawn = [
      { eager: [], loaded: "", late: "late, e212, twin, " },
      { eager: ["shared.ts"], loaded: "", late: "late, e212, twin, " },
      { eager: ["shared.ts", "late.ts"], loaded: "late, ", late: "e212, twin, " },
      { eager: ["shared.ts", "twin.ts"], loaded: "twin, ", late: "late, e212, " },
      { eager: ["shared.ts", "late.ts", "twin.ts"], loaded: "late, twin, ", late: "e212, " },
    ];
    for (const { eager, loaded, late } of drawn) {
      const program = flatten(text, [target(["late", "plain"], eager, ...often), target(undefined, eager, ...often)]);
      expect(program).not.toContain("__esm(");
      expect(await run(program, "plain")).toBe(`early, ${loaded}main, no cli\n`);
      expect(await run(program, "late")).toBe(`early, ${loaded}main, ${late}twin2function, twin2, back, no cli\n`);
    }
  },
  300_000,
);

test("flatten() makes the functions of what is seldom loaded only then", async () => {
  const text = await bundle("levels");
  const saying = (...often: string[][]) =>
    flatten(text, [target(["late"], [], ...often), target(undefined, [], ...often)]).replaceAll(
      /function __load(\d)\(\) \{/g,
      (head, level) => `${head} say("level ${level}");`,
    );
  const rest = "late, e212, twin, twin2function, twin2, back, no cli\n";
  expect(await run(saying(["late.ts", "shared.ts"]), "late"))
    .toBe(`early, main, level 1, ${rest.replace("twin,", "level 2, twin,")}`);
  expect(await run(saying(["late.ts", "shared.ts", "twin.ts"]), "late")).toBe(`early, main, level 1, ${rest}`);
  expect(await run(saying(["shared.ts"], ["late.ts", "shared.ts"]), "late"))
    .toBe(`early, main, level 1, level 2, ${rest.replace("twin,", "level 3, twin,")}`);
  expect(await run(saying([]), "none")).toBe("early, main, level 1, level 2, cli, ran\n");
}, 300_000);

test("flatten() gives each name its program", async () => {
  const text = await bundle("named");
  const program = flatten(text, [target(["late"], ["cli.ts"]), target(undefined)]);
  expect(await run(program, "late")).toBe("early, cli, main, late, e212, twin, twin2function, twin2, back, no cli\n");
  expect(await run(program, "none")).toBe("early, main, cli, ran\n");
}, 300_000);

test("flatten() stops at what it does not know", async () => {
  const text = await bundle("unknown");
  expect(() => flatten(text.replace("function early(", "let early2 = 1;\nfunction early("), [target(undefined)]))
    .toThrow("does not know the VariableDeclaration that Bun's bundler wrote for early.ts");
});
