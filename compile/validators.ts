/**
 * Compiles zod schemas into what runs and what is published, with both checked in:
 *
 * - `<name>.validate.gen.ts` beside each plugin's schema and the results': plain functions over src/cni/decode.ts, with
 *   one file for what they have in common;
 * - `schemas/*.json`: JSON Schemas for people and editors;
 * - `src/runtime/lint/*.gen.ts`: the same without words, for `patchbay lint`.
 *
 *     bun compile/validators.ts           writes what changed
 *     bun compile/validators.ts --check   exits with status 1 when something would change
 *
 * Why a generator of our own: docs/decisions/0002-validators.md. It knows the part of zod that the schemas use, and
 * stops at anything else.
 */
import { join, relative } from "node:path";
import { z } from "zod";
import { foldKey } from "../src/cni/json.ts";
import * as common from "../src/cni/config.schema.ts";
import { networkConfig, networkConfigList } from "../src/cni/network.schema.ts";
import * as results from "../src/cni/result.schema.ts";

const root = join(import.meta.dir, "..");

/** The part of zod's definitions that is read here. */
interface Definition {
  type: string;
  innerType?: z.ZodType;
  element?: z.ZodType;
  valueType?: z.ZodType;
  defaultValue?: unknown;
  in?: z.ZodType;
  entries?: Record<string, string>;
  checks?: { _zod: { def: Check } }[];
  error?: (issue: { input: unknown }) => string;
}

interface Check {
  check: string;
  value?: number;
  error?: (issue: { input: unknown }) => string;
}

const definition = (schema: z.ZodType) => schema._zod.def as unknown as Definition;

/** Text of an arrow function that answers zod's own message for a value: its message, asked about a placeholder. */
function refusal(error: Definition["error"], fallback: string): string {
  const message = error?.({ input: "\u0000" }) ?? fallback;
  return `(got) => \`${message.replace(/[`\\$]/g, "\\$&").replaceAll("\u0000", "${got}")}\``;
}

const formats: Record<string, string | undefined> = {
  "cidr": "prefix",
  "subnet": "subnet",
  "ip": "address",
  "ip-or-cidr": "addressOrPrefix",
};

/** Objects that several configurations have a part of: their functions stand in a file of their own. */
const shared = new Map<z.ZodType, string>(
  Object.entries(common).filter(([, schema]) => schema instanceof z.ZodObject)
    .map(([name, schema]) => [schema as z.ZodObject, name]),
);
const SHARED_FILE = "src/cni/config.validate.gen.ts";

type Keys = Record<string, z.ZodType>;

/** Keys that objects have beside their own, likewise. An object may have its own idea of some of them. */
const groups: [name: string, keys: Keys][] = [
  ["commonKeys", common.commonKeys],
  ["ipamPluginKeys", common.ipamPluginKeys],
];

/** One generated file: its functions, and what they use of decode.ts and of the shared ones. */
class ValidatorFile {
  readonly functions: string[] = [];
  readonly pieces = new Set<string>();
  readonly sharedNames = new Set<string>();
  readonly #elsewhere: ReadonlyMap<z.ZodType, string>;
  readonly #names: Map<z.ZodType, string>;

  constructor(elsewhere: ReadonlyMap<z.ZodType, string>) {
    this.#elsewhere = elsewhere;
    this.#names = new Map(elsewhere);
  }

  #piece(name: string): string {
    this.pieces.add(name);
    return name;
  }

  /** The expression that decodes the expression `value`, found at the path that the expression `at` tells. */
  decode(schema: z.ZodType, value: string, at: string, name: string): string {
    const inner = definition(schema);
    switch (inner.type) {
      case "optional":
      case "default":
        return this.decode(inner.innerType!, value, at, name);
      case "pipe":
        return this.decode(inner.in!, value, at, name);
      case "string":
        return this.#string(schema, value, at);
      case "boolean":
        return `${this.#piece("boolean")}(${value}, ${at})`;
      case "number":
        return this.#integer(schema, value, at);
      case "enum": {
        const choices = `${JSON.stringify(Object.values(inner.entries!))} as const`;
        return `${this.#piece("choice")}(${value}, ${at}, ${choices}, ${refusal(inner.error, "is not supported")})`;
      }
      case "unknown":
        return value;
      case "array":
        return `${this.#piece("list")}(${value}, ${at}, ${this.#decoder(inner.element!, `${name}Item`)})`;
      case "record":
        return `${this.#piece("map")}(${value}, ${at}, ${this.#decoder(inner.valueType!, `${name}Value`)})`;
      case "object":
        return `${this.object(schema as z.ZodObject, name)}(${value}, ${at})`;
    }
    throw new Error(`${name}: the generator does not know zod's ${inner.type}`);
  }

  /** The same as a function of (value, at). */
  #decoder(schema: z.ZodType, name: string): string {
    if (definition(schema).type === "unknown") return this.#piece("anything");
    const call = this.decode(schema, "value", "at", name);
    const plain = /^(\w+)\(value, at\)$/.exec(call);
    return plain ? plain[1]! : `(value, at) => ${call}`;
  }

  #string(schema: z.ZodType, value: string, at: string): string {
    const checks = definition(schema).checks ?? [];
    if (checks.length === 0) return `${this.#piece("string")}(${value}, ${at})`;
    const format = schema.meta()?.["format"] ?? "ip"; // The inner half of a pipe does not carry the pipe's meta.
    const piece = formats[String(format)];
    if (piece === undefined) throw new Error(`the generator does not know the format ${format}`);
    const { error } = checks[0]!._zod.def;
    return `${this.#piece(piece)}(${value}, ${at}, ${refusal(error, `invalid ${format}`)})`;
  }

  #integer(schema: z.ZodType, value: string, at: string): string {
    const checks = (definition(schema).checks ?? []).map((check) => check._zod.def);
    const lower = checks.find((check) => check.check === "greater_than");
    const upper = checks.find((check) => check.check === "less_than");
    if (!lower || !upper) return `${this.#piece("integer")}(${value}, ${at})`;
    const bounds = `${lower.value}, ${upper.value}`;
    const message = refusal(upper.error, `\u0000 is not between ${lower.value} and ${upper.value}`);
    return `${this.#piece("integerBetween")}(${value}, ${at}, ${bounds}, ${message})`;
  }

  /** Writes the object's function and answers its name. */
  object(schema: z.ZodObject, name: string): string {
    const known = this.#names.get(schema);
    if (known !== undefined && this.#elsewhere.has(schema)) this.sharedNames.add(known);
    if (known !== undefined) return known;
    this.#names.set(schema, name);
    const keys = Object.entries(schema.shape as Record<string, z.ZodType>);
    if (new Set(keys.map(([key]) => foldKey(key))).size !== keys.length) {
      throw new Error(`${name}: keys fold together`);
    }
    const group = groups.find(([, shared]) => Object.keys(shared).every((key) => key in schema.shape));
    const own = group === undefined ? keys : keys.filter(([key, part]) => group[1][key] !== part);
    const cases = this.#cases(own, name);
    if (group !== undefined) {
      this.sharedNames.add(group[0]);
      cases.push(`      default:\n        ${group[0]}(out, folded, value, at);`);
    }
    const defaults = keys.filter(([, part]) => definition(part).type === "default")
      .map(([key, part]) => `${JSON.stringify(key)}: ${JSON.stringify(definition(part).defaultValue)}`);
    const required = keys.filter(([, part]) => !["default", "optional"].includes(definition(part).type))
      .map(([key]) => `  if (out${property(key)} === undefined) throw missing(inside(at, ${JSON.stringify(key)}));`);
    if (required.length > 0) this.#piece("missing");
    for (const piece of ["object", "foldKey", "inside"]) this.#piece(piece);
    const type = typeName(name);
    this.functions.push([
      `type ${type} = ${group === undefined ? "" : `${remainder(group, own)} & `}${this.#typeText(own, name)};`,
      ``,
      `function ${name}(document: unknown, at: string): ${type} {`,
      `  const source = object(document, at);`,
      `  const out: Partial<${type}> = {${defaults.length > 0 ? ` ${defaults.join(", ")} ` : ""}};`,
      `  for (const key of Object.keys(source)) {`,
      `    const value = source[key];`,
      `    if (value === null) continue;`,
      ...group === undefined
        ? [`    switch (foldKey(key)) {`]
        : [`    const folded = foldKey(key);`, `    switch (folded) {`],
      ...cases,
      `    }`,
      `  }`,
      ...required,
      `  return out as ${type};`,
      `}`,
    ].join("\n"));
    return name;
  }

  /** Writes the function that takes one key of the group, which came folded; others it leaves. */
  group(shared: Keys, name: string): void {
    const keys = Object.entries(shared), type = typeName(name);
    const cases = this.#cases(keys, name);
    this.functions.push([
      `type ${type} = ${this.#typeText(keys, name)};`,
      ``,
      `function ${name}(out: { [Key in keyof ${type}]?: unknown }, folded: string, value: unknown, at: string): void {`,
      `  switch (folded) {`,
      ...cases.map((text) => text.replace(/^ {2}/gm, "")),
      `  }`,
      `}`,
    ].join("\n"));
  }

  #cases(keys: [string, z.ZodType][], name: string): string[] {
    return keys.map(([key, part]) => {
      const call = this.decode(part, "value", `inside(at, ${JSON.stringify(key)})`, name + pascalCase(key));
      return [
        `      case ${JSON.stringify(foldKey(key))}:`,
        `        out${property(key)} = ${call};`,
        `        break;`,
      ].join("\n");
    });
  }

  /** The TypeScript type of what comes out; nested objects by the name of the type that stands with their function. */
  #type(schema: z.ZodType, name: string): string {
    const inner = definition(schema);
    switch (inner.type) {
      case "optional":
      case "default":
        return this.#type(inner.innerType!, name);
      case "pipe":
        return "string | undefined";
      case "number":
        return "number";
      case "enum":
        return Object.values(inner.entries!).map((choice) => JSON.stringify(choice)).join(" | ");
      case "array":
        return `Array<${this.#type(inner.element!, `${name}Item`)}>`;
      case "record":
        return `Record<string, ${this.#type(inner.valueType!, `${name}Value`)}>`;
      case "object":
        return typeName(this.#names.get(schema)!);
    }
    return inner.type;
  }

  #typeText(keys: [string, z.ZodType][], name: string): string {
    const members = keys.map(([key, part]) => {
      const optional = definition(part).type === "optional" ? "?" : "";
      return `  ${JSON.stringify(key)}${optional}: ${this.#type(part, name + pascalCase(key))};`;
    });
    return members.length === 0 ? "unknown" : `{\n${members.join("\n")}\n}`;
  }
}

/** The type of the group's keys that the object has no idea of its own about. */
function remainder([name, shared]: [string, Keys], own: [string, z.ZodType][]): string {
  const replaced = own.map(([key]) => key).filter((key) => key in shared);
  if (replaced.length === 0) return typeName(name);
  return `Omit<${typeName(name)}, ${replaced.map((key) => JSON.stringify(key)).join(" | ")}>`;
}

function pascalCase(text: string): string {
  return text.split(/[^A-Za-z0-9]+/).map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}

const typeName = (functionName: string) => `${pascalCase(functionName)}Shape`;

const property = (key: string) => /^[A-Za-z_]\w*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;

/** A public function of a generated file. `subject` starts the messages of what it refuses. */
interface Entry {
  name: string;
  schemaName: string;
  schema: z.ZodObject;
  subject?: string;
}

function validatorText(schemaFile: string, entries: Entry[], fromFolder: string): string {
  const file = new ValidatorFile(shared);
  const exported = entries.map(({ name, schemaName, schema, subject }) => {
    const decode = `${file.object(schema, schemaName)}(document ?? {}, "")`;
    if (subject !== undefined) file.pieces.add("decoding");
    const body = subject === undefined ? decode : `decoding(${JSON.stringify(subject)}, () => ${decode})`;
    return `export function ${name}(document: unknown): ${pascalCase(schemaName)} {\n  return ${body};\n}`;
  });
  const types = entries.map((entry) => pascalCase(entry.schemaName)).join(", ");
  const own = `import type { ${types} } from "./${schemaFile}";`;
  return [...headOf(schemaFile, file, fromFolder), own, ``, exported.join("\n\n"), ``, textOf(file)].join("\n");
}

function sharedText(): string {
  const file = new ValidatorFile(new Map());
  for (const [schema, name] of shared) file.object(schema as z.ZodObject, name);
  for (const [name, keys] of groups) file.group(keys, name);
  const text = textOf(file).replace(/^(type|function) /gm, "export $1 ");
  return [...headOf("config.schema.ts", file, join(root, SHARED_FILE, "..")), ``, text].join("\n");
}

function headOf(schemaFile: string, file: ValidatorFile, fromFolder: string): string[] {
  const from = (path: string) => {
    const way = relative(fromFolder, join(root, path));
    return `from "${way.startsWith(".") ? "" : "./"}${way}";`;
  };
  const names = [...file.sharedNames].sort(), types = names.map((name) => `type ${typeName(name)}`);
  return [
    `// Generated from ${schemaFile} by compile/validators.ts; change those.`,
    `import { ${[...file.pieces].sort().join(", ")} } ${from("src/cni/decode.ts")}`,
    ...names.length > 0 ? [`import { ${[...types, ...names].join(", ")} } ${from(SHARED_FILE)}`] : [],
  ];
}

function textOf(file: ValidatorFile): string {
  return `${file.functions.join("\n\n")}\n`;
}

/** What zod writes and no reader needs is left out; what `meta` says has been laid over it by zod. */
function jsonSchemaText(schema: z.ZodType): string {
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
      delete written.format; // Ours are not among the standard's, and validators stop at formats they do not know.
      for (const key of Object.keys(written)) if (written[key] === undefined) delete written[key];
      if (written.type === "object" && JSON.stringify(written.additionalProperties) === "{}") {
        delete written.additionalProperties;
      }
    },
  });
  return `${JSON.stringify(document, null, 2)}\n`;
}

type Json = Record<string, unknown>;

/** Keywords that judge nothing. */
const words = ["$schema", "title", "description", "examples", "default"];

function withoutWords(value: unknown, isKeys = false): unknown {
  if (Array.isArray(value)) return value.map((part) => withoutWords(part));
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([key]) => isKeys || !words.includes(key));
  return Object.fromEntries(kept.map(([key, part]) => [key, withoutWords(part, key === "properties" && !isKeys)]));
}

/** As texts, which cost a process nothing that does not read them. Plugins without the keys that all have. */
function lintText(plugins: ReadonlyMap<string, z.ZodType>): string {
  const bare = (schema: z.ZodType) => withoutWords(JSON.parse(jsonSchemaText(schema))) as { properties: Json };
  const shared = bare(z.object(common.commonKeys));
  const list = bare(networkConfigList);
  delete list.properties.plugins; // They are judged one by one.
  const capabilities = bare(z.object(common.capability));
  const line = (name: string, schema: unknown) => `  ${JSON.stringify(name)}: ${quoted(JSON.stringify(schema))},`;
  const own = [...plugins].map(([name, schema]) => {
    const { properties } = bare(schema);
    const kept = Object.entries(properties).filter(([key, part]) => !Bun.deepEquals(part, shared.properties[key]));
    return line(name, { type: "object", properties: Object.fromEntries(kept) });
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

/** Every key that any schema has, folded, between spaces: who uses no other need not read the schemas. */
function knownKeysText(schemas: Iterable<z.ZodType>): string {
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

/** Every generated file by its path from the root. */
export async function generate(): Promise<Map<string, string>> {
  const files = new Map<string, string>([[SHARED_FILE, sharedText()]]);
  files.set(
    "src/cni/result.validate.gen.ts",
    validatorText("result.schema.ts", [
      { name: "decodeResult01", schemaName: "result01", schema: results.result01 },
      { name: "decodeResult03", schemaName: "result03", schema: results.result03 },
      { name: "decodeResult10", schemaName: "result10", schema: results.result10 },
    ], join(root, "src/cni")),
  );
  files.set("schemas/result.json", jsonSchemaText(results.result10));
  files.set("schemas/network-config.json", jsonSchemaText(networkConfig));
  files.set("schemas/network-config-list.json", jsonSchemaText(networkConfigList));
  const confs = new Map<string, z.ZodType>();
  for (const path of [...new Bun.Glob("src/plugins/*/*/*.schema.ts").scanSync(root)].sort()) {
    const folder = join(root, path, "..");
    const schemaFile = path.slice(path.lastIndexOf("/") + 1);
    const plugin = schemaFile.replace(".schema.ts", "");
    const pluginPascal = pascalCase(plugin);
    const schemaName = `${pluginPascal.charAt(0).toLowerCase()}${pluginPascal.slice(1)}Conf`;
    const schema = (await import(join(root, path)))[schemaName] as z.ZodObject | undefined;
    if (schema === undefined) throw new Error(`${path} does not export ${schemaName}`);
    const entry = { name: `validate${pluginPascal}Conf`, schemaName, schema, subject: "failed to load netconf" };
    files.set(path.replace(".schema.ts", ".validate.gen.ts"), validatorText(schemaFile, [entry], folder));
    files.set(`schemas/${plugin}.json`, jsonSchemaText(schema));
    confs.set(plugin, schema);
  }
  files.set("src/runtime/lint/schemas.gen.ts", lintText(confs));
  const capabilities = z.object(common.capability);
  files.set(
    "src/runtime/lint/known-keys.gen.ts",
    knownKeysText([...confs.values(), networkConfigList, capabilities]),
  );
  return files;
}

/** The paths, from the root, of generated files that do not say what the schemas say. */
export async function outdated(): Promise<string[]> {
  const stale: string[] = [];
  for (const [path, text] of await generate()) {
    const file = Bun.file(join(root, path));
    if (!(await file.exists()) || await file.text() !== text) stale.push(path);
  }
  return stale;
}

if (import.meta.main) {
  const stale = await outdated();
  const checking = process.argv.includes("--check");
  const files = await generate();
  for (const path of stale) {
    if (!checking) await Bun.write(join(root, path), files.get(path)!);
    console.log(`${checking ? "out of date" : "wrote"}: ${path}`);
  }
  if (checking && stale.length > 0) {
    console.log("run: bun compile/validators.ts");
    process.exit(1);
  }
}
