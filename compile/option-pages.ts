/**
 * The generated sections of docs/plugins/: for each plugin its example and its keys as lists, from its JSON Schema. What
 * else a page says, people write.
 */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type JsonSchema, ownKeys } from "./json-schemas.ts";

const root = resolve(import.meta.dir, "..");
const FOLDER = "docs/plugins";
const TITLES = ["Example", "Options", "Capabilities", "Keys of every network"];
/** The specification has them; their keys are items of their own. */
const WRAPPERS = ["ipam", "args", "args.cni"];

/** By path. `schemas` has the published ones by the plugin's name. */
export function optionPages(schemas: ReadonlyMap<string, JsonSchema>, list: JsonSchema): Map<string, string> {
  const pages = new Map<string, string>();
  for (const [name, schema] of schemas) {
    pages.set(`${FOLDER}/${name}.md`, withSections(pageOf(`${FOLDER}/${name}.md`, name), sectionsOf(name, schema)));
  }
  const index = `${FOLDER}/README.md`;
  const network = `## Keys of every network\n\n${keyList(list)}`;
  return pages.set(index, withSections(pageOf(index, "The plugins and their options"), [network]));
}

function pageOf(path: string, title: string): string {
  return existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : `# ${title}\n`;
}

/** The sections where others of these titles were, or before all that people wrote below headings. */
export function withSections(page: string, sections: readonly string[]): string {
  const parts = page.split(/^(?=## )/m);
  const isGenerated = (part: string) => TITLES.some((title) => part.startsWith(`## ${title}\n`));
  const at = Math.max(1, parts.findIndex(isGenerated));
  const written = parts.filter((part) => !isGenerated(part));
  return `${written.toSpliced(at, 0, ...sections).map((part) => part.trimEnd()).join("\n\n")}\n`;
}

function sectionsOf(name: string, schema: JsonSchema): string[] {
  const { runtimeConfig, args, ...properties } = ownKeys(schema), example = join(root, `examples/${name}.conflist`);
  if (args !== undefined) properties.args = args;
  const options = keyList({ properties, required: schema.required });
  return [
    ...existsSync(example) ? [`## Example\n\n\`\`\`json\n${readFileSync(example, "utf8").trimEnd()}\n\`\`\``] : [],
    `## Options\n\n${options || "It has none of its own."}`,
    ...runtimeConfig?.properties === undefined ? [] : [
      `## Capabilities\n\n${keyList(runtimeConfig)}`,
    ],
  ];
}

/** An item for a key and for each below it, as `deno fmt` breaks lines. */
export function keyList(schema: JsonSchema): string {
  return itemsOf(schema).map(wrapped).join("\n");
}

function itemsOf({ properties = {}, items, required = [] }: JsonSchema, path = ""): string[] {
  if (items !== undefined) return itemsOf(items, `${path.replace(/\.$/, "")}[].`);
  return Object.entries(properties).flatMap(([key, part]) => {
    const name = path + key, below = itemsOf(part, `${name}.`);
    if (WRAPPERS.includes(name) && below.length > 0) return below;
    const otherwise = part.default === undefined ? [] : [`default ${code(part.default)}`];
    const facts = [typeOf(part), ...required.includes(key) ? ["required"] : otherwise];
    return [`- \`${name}\` (${facts.join("; ")}): ${part.description ?? ""}`.trimEnd(), ...below];
  });
}

function code(value: unknown): string {
  return `\`${JSON.stringify(value)}\``;
}

function typeOf({ type, anyOf, enum: values, items, additionalProperties, minimum, maximum }: JsonSchema): string {
  if (anyOf !== undefined) return anyOf.map(typeOf).join(" or ");
  // The empty text means the same as no key.
  if (values !== undefined) return values.filter((value) => value !== "").map(code).join(", ");
  if (items !== undefined) return `list of ${several(items)}`;
  if (additionalProperties?.type !== undefined) return `object of ${several(additionalProperties)}`;
  if (minimum !== undefined && maximum !== undefined) return `${type}, ${minimum} to ${maximum}`;
  if (minimum !== undefined) return `${type}, at least ${minimum}`;
  return maximum === undefined ? type! : `${type}, at most ${maximum}`;
}

function several(schema: JsonSchema): string {
  const one = typeOf(schema);
  return schema.enum === undefined ? one.replace(/^\w+/, "$&s") : one;
}

/** As deno.json has it for pages. */
const WIDTH = 118;

/** An item of a list, in lines as `deno fmt` breaks them. */
export function wrapped(text: string): string {
  const lines: string[] = [];
  // As the formatter does it: code is one word.
  for (const word of text.match(/(?:`[^`]*`|\S)+/g) ?? []) {
    const last = lines.at(-1);
    if (last === undefined) lines.push(word);
    else if (last.length + 1 + word.length <= WIDTH) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`  ${word}`);
  }
  return lines.join("\n");
}
