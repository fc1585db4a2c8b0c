/** Turns zod schemas into the text of plain functions that call src/cni/decode.ts and decide like zod. */
import { z } from "zod";
import { foldKey } from "../src/cni/json.ts";
import * as common from "../src/cni/config.schema.ts";
import { type Definition, definition } from "./zod-definition.ts";

/** Text of an arrow function that makes the schema's own message for a value. We ask zod about a placeholder. */
function refusal(error: Definition["error"], fallback: string): string {
  const message = error?.({ input: "\u0000" }) ?? fallback;
  const text = message.replace(/[`\\$]/g, "\\$&").replaceAll("\u0000", "${got}");
  return `(${message.includes("\u0000") ? "got" : ""}) => \`${text}\``;
}

const formats: Record<string, string | undefined> = {
  "cidr": "prefix",
  "subnet": "subnet",
  "ip": "address",
  "ip-or-cidr": "addressOrPrefix",
};

/** Objects that several configurations contain; their functions are in SHARED_FILE. */
export const shared = new Map<z.ZodType, string>(
  Object.entries(common).filter(([, schema]) => schema instanceof z.ZodObject)
    .map(([name, schema]) => [schema as z.ZodObject, name]),
);
export type Keys = Record<string, z.ZodType>;

/** Keys that several objects have beside their own; their functions are in SHARED_FILE. An object may override keys. */
export const groups: [name: string, keys: Keys][] = [
  ["commonKeys", common.commonKeys],
  ["ipamPluginKeys", common.ipamPluginKeys],
];

/** One generated file: its functions, and which functions of decode.ts and SHARED_FILE they use. */
export class ValidatorFile {
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

  /** The text of an expression that decodes `value` at the path `at`, which are texts of expressions themselves. */
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

  /** Like `decode`, as a function of (value, at). */
  #decoder(schema: z.ZodType, name: string): string {
    if (definition(schema).type === "unknown") return this.#piece("anything");
    const call = this.decode(schema, "value", "at", name);
    const plain = /^(\w+)\(value, at\)$/.exec(call);
    return plain ? plain[1]! : `(value, at) => ${call}`;
  }

  #string(schema: z.ZodType, value: string, at: string): string {
    const checks = definition(schema).checks ?? [];
    if (checks.length === 0) return `${this.#piece("string")}(${value}, ${at})`;
    const format = schema.meta()?.["format"] ?? "ip"; // The inner half of a pipe lacks the pipe's meta.
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

  /** Writes the function that decodes one folded key of the group, and ignores other keys. */
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

  /** The TypeScript type of the decoded value; nested objects by the name of their type. */
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

/** The type of the group's keys without those that the object overrides. */
function remainder([name, shared]: [string, Keys], own: [string, z.ZodType][]): string {
  const replaced = own.map(([key]) => key).filter((key) => key in shared);
  if (replaced.length === 0) return typeName(name);
  return `Omit<${typeName(name)}, ${replaced.map((key) => JSON.stringify(key)).join(" | ")}>`;
}

export function pascalCase(text: string): string {
  return text.split(/[^A-Za-z0-9]+/).map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}

export function camelCase(text: string): string {
  const pascal = pascalCase(text);
  return pascal.charAt(0).toLowerCase() + pascal.slice(1);
}

export const typeName = (functionName: string) => `${pascalCase(functionName)}Shape`;

const property = (key: string) => /^[A-Za-z_]\w*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
