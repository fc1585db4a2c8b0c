/** JSON Schemas of the zod schemas: with descriptions for people and editors, without for `patchbay lint`. */
import { z } from "zod";
import { foldKey } from "../src/cni/json.ts";
import * as common from "../src/cni/config.schema.ts";
import { networkConfigList } from "../src/cni/network.schema.ts";

/** Removes what zod adds and no reader needs. zod has merged `meta` already. */
export function jsonSchemaText(schema: z.ZodType): string {
  const document = z.toJSONSchema(schema, {
    io: "input",
    override: ({ jsonSchema }) => {
      const written = jsonSchema as Record<string, unknown>;
      if (written.default === "") delete written.default;
      const properties = (written.properties ?? {}) as Record<string, Record<string, unknown>>;
      for (const key of written.required as string[] ?? []) delete properties[key]?.default;
      if (written.minimum === Number.MIN_SAFE_INTEGER) delete written.minimum;
      if (written.maximum === Number.MAX_SAFE_INTEGER) delete written.maximum;
      delete written.propertyNames;
      delete written.format; // Our formats are not standard, and some validators reject unknown formats.
      for (const key of Object.keys(written)) if (written[key] === undefined) delete written[key];
      if (written.type === "object" && JSON.stringify(written.additionalProperties) === "{}") {
        delete written.additionalProperties;
      }
    },
  });
  return `${JSON.stringify(document, null, 2)}\n`;
}

type Json = Record<string, unknown>;

/** Keywords that do not affect validation. */
const words = ["$schema", "title", "description", "examples", "default"];

function withoutWords(value: unknown, isKeys = false): unknown {
  if (Array.isArray(value)) return value.map((part) => withoutWords(part));
  if (typeof value !== "object" || value === null) return value;
  const remaining = Object.entries(value).filter(([key]) => isKeys || !words.includes(key));
  return Object.fromEntries(
    remaining.map(([key, part]) => [key, withoutWords(part, key === "properties" && !isKeys)]),
  );
}

/** As texts, so that processes that do not use them need not build objects. Plugins without the common keys. */
export function lintText(plugins: ReadonlyMap<string, z.ZodType>): string {
  const bare = (schema: z.ZodType) => withoutWords(JSON.parse(jsonSchemaText(schema))) as { properties: Json };
  const shared = bare(z.object(common.commonKeys));
  const list = bare(networkConfigList);
  delete list.properties.plugins; // They are validated one by one.
  const capabilities = bare(z.object(common.capability));
  const line = (name: string, schema: unknown) => `  ${JSON.stringify(name)}: ${quoted(JSON.stringify(schema))},`;
  const own = [...plugins].map(([name, schema]) => {
    const { properties } = bare(schema);
    const remaining = Object.entries(properties).filter(([key, part]) =>
      !Bun.deepEquals(part, shared.properties[key])
    );
    return line(name, { type: "object", properties: Object.fromEntries(remaining) });
  });
  return [
    ...lintHead,
    `export const common = ${quoted(JSON.stringify(shared))};`,
    `export const list = ${quoted(JSON.stringify(list))};`,
    `export const capabilities = ${quoted(JSON.stringify(capabilities))};`,
    "",
    "export const plugins: Readonly<Record<string, string>> = {",
    ...own,
    "};",
    "",
  ].join("\n");
}

const lintHead = [
  "// Generated from the *.schema.ts files by compile/validators.ts; change those.",
  "// deno-fmt-ignore-file",
  "",
];

/** Every folded key of every schema, between spaces: a document without other keys needs no schema read. */
export function knownKeysText(schemas: Iterable<z.ZodType>): string {
  const keys = new Set<string>();
  const collect = (part: unknown): void => {
    if (typeof part !== "object" || part === null) return;
    for (const [keyword, value] of Object.entries(part)) {
      if (keyword === "properties") Object.keys(value).forEach((key) => keys.add(foldKey(key)));
      Object.values(keyword === "properties" ? value : { value }).forEach(collect);
    }
  };
  for (const schema of schemas) collect(JSON.parse(jsonSchemaText(schema)));
  return [...lintHead, `export const knownKeys = ${quoted(` ${[...keys].sort().join(" ")} `)};`, ""].join("\n");
}

function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}
