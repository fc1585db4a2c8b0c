/**
 * `npm run new -- plugin NAME`: copies the skeletons of a plugin and of its resource, under a name of their own, and adds
 * both to their tables. `resource NAME` copies that of a resource alone. When anything fails, nothing is left.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pluginNames } from "../src/plugins/table.ts";
import { kindNames } from "../src/resources/table.ts";
import { Refused } from "./arguments.mjs";
import { format } from "./format.ts";
import { outdated } from "./generate.ts";
import { NATIVE_HEADER, nativeHeaderOfNow } from "./native-header.ts";
import { defineTool, root, runTool } from "./tool.ts";
import { camelCase, pascalCase } from "./validator-file.ts";

const SKELETON = "link-alias";
const PLUGIN = `src/plugins/skeleton/${SKELETON}/${SKELETON}`, RESOURCE = `src/resources/skeleton/${SKELETON}.ts`;
const KINDS = ["main", "ipam", "meta"];
const themes = readdirSync(join(root, "src/resources"), { withFileTypes: true })
  .filter((one) => one.isDirectory() && one.name !== "skeleton").map(({ name }) => name).sort();
/** What else this program is called by. */
const PROGRAMS = ["patchbay", "cnitool", "netavark"];

interface Wanted {
  name: string;
  /** The folder of the plugin; undefined for a resource alone. */
  kind: string | undefined;
  theme: string;
}

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

function requireName({ name, kind, theme }: Wanted): void {
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name)) {
    throw new Refused(`${JSON.stringify(name)} is no name: small letters and digits, with "-" between words`);
  }
  const paths = [...KINDS.map((one) => `src/plugins/${one}/${name}`), `src/resources/${theme}/${name}.ts`];
  const isTaken = [...kind === undefined ? [] : [...pluginNames, ...PROGRAMS], ...kindNames, SKELETON].includes(name);
  const there = paths.find((path) => existsSync(join(root, path)));
  if (isTaken || there !== undefined) {
    throw new Refused(`${name} is taken${there === undefined ? "" : ` by ${there}`}`);
  }
  const words = new Set([`${PLUGIN}.ts`, RESOURCE].flatMap((path) => read(path).match(/\w+/g) ?? []));
  if (words.has(camelCase(name)) || words.has(pascalCase(name)) || !isVariable(camelCase(name))) {
    throw new Refused(
      `${name} means something else in the code of the skeleton; take another name, and rename it then`,
    );
  }
}

function isVariable(word: string): boolean {
  try {
    new Bun.Transpiler({ loader: "ts" }).transformSync(`export const ${word} = 1;`);
    return true;
  } catch {
    return false;
  }
}

/** A file of the skeleton under the new name, without the sentence that it is one. */
function renamed(path: string, { name, theme }: Wanted): string {
  return read(path)
    .replace(/ A (?:plugin|kind) to copy \([^)]*\)[^]*? table[^.]*\./, "")
    .replaceAll("resources/skeleton/", `resources/${theme}/`)
    .replaceAll(SKELETON, name)
    .replaceAll(camelCase(SKELETON), camelCase(name))
    .replaceAll(pascalCase(SKELETON), pascalCase(name));
}

/** The table with a row more, in its place. */
function withRow(path: string, name: string, file: string, member: string): string {
  const row = `  "${name}": () => (require("${file}") as typeof import("${file}")).${member},\n`;
  const text = read(path), end = text.indexOf("\n};\n") + 1;
  const after = [...text.slice(0, end).matchAll(/^ {2}"([\w-]+)": /gm)].find(([, other]) => other! > name);
  const at = after?.index ?? end;
  return text.slice(0, at) + row + text.slice(at);
}

/** By path; generated files are not among them. */
function filesOf(wanted: Wanted): Map<string, string> {
  const { name, kind, theme } = wanted, files = new Map<string, string>();
  files.set(`src/resources/${theme}/${name}.ts`, renamed(RESOURCE, wanted));
  const resources = "src/resources/table.ts", plugins = "src/plugins/table.ts";
  files.set(resources, withRow(resources, name, `./${theme}/${name}.ts`, `${camelCase(name)}Kind`));
  if (kind === undefined) return files;
  for (const end of [".ts", ".schema.ts"]) {
    files.set(`src/plugins/${kind}/${name}/${name}${end}`, renamed(`${PLUGIN}${end}`, wanted));
  }
  return files.set(plugins, withRow(plugins, name, `./${kind}/${name}/${name}.ts`, "default"));
}

class Writing {
  /** Undefined for files that were not there. */
  readonly #before = new Map<string, string | undefined>();
  readonly #folders: string[] = [];

  write(path: string, text: string): void {
    const full = join(root, path);
    this.#before.set(full, existsSync(full) ? readFileSync(full, "utf8") : undefined);
    const made = mkdirSync(dirname(full), { recursive: true });
    if (made !== undefined) this.#folders.push(made);
    writeFileSync(full, text);
  }

  undo(): void {
    for (const [path, text] of this.#before) {
      if (text === undefined) rmSync(path, { force: true });
      else writeFileSync(path, text);
    }
    for (const path of this.#folders) rmSync(path, { recursive: true, force: true });
  }
}

async function make(wanted: Wanted): Promise<number> {
  const files = filesOf(wanted), writing = new Writing();
  // Ctrl-C must not leave half of it.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
  try {
    for (const [path, text] of files) writing.write(path, text);
    if (format([...files.keys()]) !== 0) throw new Error("the files could not be formatted");
    const generated = await outdated();
    for (const [path, text] of generated) writing.write(path, text);
    // It loads the plugins.
    writing.write(NATIVE_HEADER, nativeHeaderOfNow());
    console.log([...files.keys(), ...generated.keys(), NATIVE_HEADER].map((path) => `wrote ${path}`).join("\n"));
  } catch (error) {
    writing.undo();
    console.error(`new: ${(error as Error).message}; nothing was made`);
    return 1;
  }
  console.log(`\n${leftToDo(wanted)}`);
  return 0;
}

/** CONTRIBUTING.md has more words for each. */
function leftToDo({ name, kind, theme }: Wanted): string {
  const resource = [
    `src/resources/${theme}/${name}.ts: the specification, and how it is made, compared and removed`,
    `docs/kernel-objects.md: an item; test/resources/${theme}/: a test`,
    "test/kernel/altered.test.ts: what CHECK says when it is altered; test/release/upgrade.test.ts: its name in UNRECORDED",
  ];
  const plugin = [
    `src/plugins/${kind}/${name}/${name}.schema.ts: the configuration; then npm run generate`,
    `src/plugins/${kind}/${name}/${name}.ts: what ADD makes, and what "judge" refuses`,
    ...resource,
    `examples/${name}.conflist; README.md: an item of the plugins; docs/plugins/${name}.md: what it is for, with a link in README.md beside it; docs/quirks/${name}.md, with a row in its index`,
    "test/kernel/: what the kernel holds; test/faults/subjects.ts: a subject",
    "CHANGELOG.md: a line",
  ];
  const steps = [
    ...kind === undefined ? resource : plugin,
    "npm run check and npm run test:unit say what is missing",
  ];
  return ["It gives a link an alias, as the skeleton does. Left to do:", ...steps.map((step) => `  ${step}`)].join(
    "\n",
  );
}

export const tool = defineTool({
  name: "new",
  about: "Copies the skeletons of a plugin and its resource, or of a resource alone, to a name of their own.",
  words: "plugin|resource NAME",
  options: {
    kind: { type: "string", value: "KIND", about: `the folder of the plugin: ${KINDS.join(", ")}; by default meta` },
    theme: {
      type: "string",
      value: "THEME",
      default: "link",
      about: `the folder of the resource: ${themes.join(", ")}; by default link`,
    },
  },
  needs: "packages",
  begin({ values: { kind, theme }, positionals: [what, name, ...others] }) {
    if (what !== "plugin" && what !== "resource") throw new Refused(`${what ?? "nothing"}: say plugin or resource`);
    if (name === undefined || others.length > 0) throw new Refused(`${what}: takes one name`);
    if (kind !== undefined && (what === "resource" || !KINDS.includes(kind))) {
      throw new Refused(`--kind ${kind}: a plugin is one of ${KINDS.join(", ")}`);
    }
    if (!themes.includes(theme)) throw new Refused(`--theme ${theme}: there are ${themes.join(", ")}`);
    const wanted: Wanted = { name, kind: what === "plugin" ? kind ?? "meta" : undefined, theme };
    requireName(wanted);
    return () => make(wanted);
  },
});

if (import.meta.main) process.exitCode = await runTool(tool);
