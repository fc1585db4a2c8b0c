/** JSON Schemas of the zod schemas: with descriptions for people and editors, without for `patchbay lint`. */
import { z } from "zod";
import { foldKey } from "../src/cni/json.ts";
import { capability, commonKeys } from "../src/cni/config.schema.ts";
import { networkConfigList } from "../src/cni/network.schema.ts";
import { Refused } from "./arguments.mjs";

/** What our schemas use of JSON Schema. */
export interface JsonSchema {
  $ref?: string;
  type?: string;
  title?: string;
  description?: string;
  default?: unknown;
  examples?: unknown[];
  enum?: unknown[];
  const?: unknown;
  minimum?: number;
  maximum?: number;
  required?: string[];
  properties?: Record<string, JsonSchema>;
  additionalProperties?: JsonSchema;
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  allOf?: { if: JsonSchema; then: JsonSchema }[];
  definitions?: Record<string, JsonSchema>;
}

/** Removes what zod adds and no reader needs. zod has merged `meta` already; `since` becomes words. */
export function jsonSchema(schema: z.ZodType): JsonSchema {
  return z.toJSONSchema(schema, {
    // Editors' language servers know no newer one, or only parts of it.
    target: "draft-07",
    io: "input",
    override: ({ jsonSchema }) => {
      const written = jsonSchema as Record<string, unknown>;
      if (written.since !== undefined) written.description = `${written.description} Since ${written.since}.`;
      delete written.since;
      if (written.default === "") delete written.default;
      const properties = (written.properties ?? {}) as Record<string, Record<string, unknown>>;
      for (const key of written.required as string[] ?? []) delete properties[key]?.default;
      if (written.minimum === Number.MIN_SAFE_INTEGER) delete written.minimum;
      if (written.maximum === Number.MAX_SAFE_INTEGER) delete written.maximum;
      delete written.propertyNames;
      delete written.format; // Our formats are not standard, and some validators reject unknown formats.
      if (written.type === "object" && JSON.stringify(written.additionalProperties) === "{}") {
        delete written.additionalProperties;
      }
    },
  }) as JsonSchema;
}

/** `name` is the file's, without its ending. */
export function publishedText(name: string, document: JsonSchema): string {
  const silent = withoutDescription(document);
  if (silent.length > 0) {
    throw new Refused(
      `schemas/${name}.json: .describe() in the *.schema.ts file has to say what ${silent.join(", ")} means`,
    );
  }
  const { $schema, ...rest } = document as { $schema?: string };
  return `${JSON.stringify({ $schema, $id: `urn:patchbay:schema:${name}`, ...rest }, null, 2)}\n`;
}

/** The keys of which an editor or a page would say nothing. */
function withoutDescription({ properties = {}, items, additionalProperties }: JsonSchema, path = ""): string[] {
  const keys = Object.entries(properties).flatMap(([key, part]) => [
    ...part.description === undefined ? [path + key] : [],
    ...withoutDescription(part, `${path}${key}.`),
  ]);
  const parts = [items, additionalProperties].filter((part) => part !== undefined);
  return [...keys, ...parts.flatMap((part) => withoutDescription(part, path))];
}

/** The network's file has them once for all plugins, or they are what chooses the plugin. */
const FROM_NETWORK = ["cniVersion", "name", "type"];

/** Without those that every plugin has, as the specification says. */
export function ownKeys(schema: JsonSchema): Record<string, JsonSchema> {
  const common = jsonSchema(z.object(commonKeys).meta({ required: FROM_NETWORK })).properties!;
  return Object.fromEntries(
    Object.entries(schema.properties!).filter(([key, part]) => !Bun.deepEquals(part, common[key])),
  );
}

/**
 * A network's file, in which each plugin and each IPAM plugin of ours has its keys by its `type`; those of others may have
 * any. It names no other file, so that editors need this one alone.
 */
export function networkList(plugins: ReadonlyMap<string, z.ZodType>, isIpam: (name: string) => boolean): JsonSchema {
  const list = jsonSchema(networkConfigList), names = [...plugins.keys()];
  const entry = list.properties!.plugins!.items!, { type, ipam } = entry.properties!;
  type!.examples = names.filter((name) => !isIpam(name));
  ipam!.properties!.type!.examples = names.filter(isIpam);
  const typeIs = (name: string): JsonSchema => ({ required: ["type"], properties: { type: { const: name } } });
  entry.allOf = names.map((name) => ({
    if: isIpam(name) ? { required: ["ipam"], properties: { ipam: typeIs(name) } } : typeIs(name),
    then: { $ref: `#/definitions/${name}` },
  }));
  list.definitions = Object.fromEntries(names.map((name) => [name, entryOf(jsonSchema(plugins.get(name)!))]));
  return list;
}

/** What a person writes of a plugin in a network: the capabilities that it takes, in place of what a runtime passes. */
function entryOf(schema: JsonSchema): JsonSchema {
  const { runtimeConfig, ...properties } = ownKeys(schema), required = schema.required ?? [];
  const capabilities = Object.entries(runtimeConfig?.properties ?? {}).map(([name, { description }]) => [
    name,
    { type: "boolean", description },
  ]);
  if (capabilities.length > 0) properties.capabilities = { properties: Object.fromEntries(capabilities) };
  return { properties, required: required.filter((key) => !FROM_NETWORK.includes(key)) };
}

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
  const bare = (schema: z.ZodType) => withoutWords(jsonSchema(schema)) as { properties: Record<string, unknown> };
  const shared = bare(z.object(commonKeys));
  const list = bare(networkConfigList);
  delete list.properties.plugins; // They are validated one by one.
  const capabilities = bare(z.object(capability));
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
  for (const schema of schemas) collect(jsonSchema(schema));
  return [...lintHead, `export const knownKeys = ${quoted(` ${[...keys].sort().join(" ")} `)};`, ""].join("\n");
}

function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}
