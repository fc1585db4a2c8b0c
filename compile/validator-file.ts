/** Turns zod schemas into the text of tables for src/cni/decode.ts, which decide like zod. */
import { z } from "zod";
import { foldKey } from "../src/cni/json.ts";
import * as common from "../src/cni/config.schema.ts";

/** The part of zod's definitions that the generator reads. */
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

/** Objects that several configurations contain; their decoders are in SHARED_FILE. */
export const shared = new Map<z.ZodType, string>(
  Object.entries(common).filter(([, schema]) => schema instanceof z.ZodObject)
    .map(([name, schema]) => [schema as z.ZodObject, name]),
);
type Keys = Record<string, z.ZodType>;

/** Keys that several objects have beside their own; their decoders are in SHARED_FILE. An object may override keys. */
export const groups: [name: string, keys: Keys][] = [
  ["commonKeys", common.commonKeys],
  ["ipamPluginKeys", common.ipamPluginKeys],
];

/** One generated file: its tables, and what they use of decode.ts and SHARED_FILE. */
export class ValidatorFile {
  readonly tables: string[] = [];
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

  /** The text of a function of (value, at) that decodes the value at the path. */
  #decoder(schema: z.ZodType, name: string): string {
    const inner = definition(schema);
    switch (inner.type) {
      case "optional":
      case "default":
        return this.#decoder(inner.innerType!, name);
      case "pipe":
        return this.#decoder(inner.in!, name);
      case "string":
        return this.#string(schema);
      case "boolean":
        return this.#piece("boolean");
      case "number":
        return this.#integer(schema);
      case "enum": {
        const choices = `${JSON.stringify(Object.values(inner.entries!))} as const`;
        return this.#call("choice", choices, refusal(inner.error, "is not supported"));
      }
      case "unknown":
        return this.#piece("anything");
      case "array":
        return this.#call("list", this.#decoder(inner.element!, `${name}Item`));
      case "record":
        return this.#call("map", this.#decoder(inner.valueType!, `${name}Value`));
      case "object":
        return this.object(schema as z.ZodObject, name);
    }
    throw new Error(`${name}: the generator does not know zod's ${inner.type}`);
  }

  #call(piece: string, ...rest: string[]): string {
    return `(value, at) => ${this.#piece(piece)}(${["value", "at", ...rest].join(", ")})`;
  }

  #string(schema: z.ZodType): string {
    const checks = definition(schema).checks ?? [];
    if (checks.length === 0) return this.#piece("string");
    const format = schema.meta()?.["format"] ?? "ip"; // The inner half of a pipe lacks the pipe's meta.
    const piece = formats[String(format)];
    if (piece === undefined) throw new Error(`the generator does not know the format ${format}`);
    const { error } = checks[0]!._zod.def;
    return this.#call(piece, refusal(error, `invalid ${format}`));
  }

  #integer(schema: z.ZodType): string {
    const checks = (definition(schema).checks ?? []).map((check) => check._zod.def);
    const lower = checks.find((check) => check.check === "greater_than");
    const upper = checks.find((check) => check.check === "less_than");
    if (!lower || !upper) return this.#piece("integer");
    const message = refusal(upper.error, `\u0000 is not between ${lower.value} and ${upper.value}`);
    return this.#call("integerBetween", String(lower.value), String(upper.value), message);
  }

  /** Writes the object's decoder and returns its name. */
  object(schema: z.ZodObject, name: string): string {
    const known = this.#names.get(schema);
    if (known !== undefined && this.#elsewhere.has(schema)) this.sharedNames.add(known);
    if (known !== undefined) return known;
    this.#names.set(schema, name);
    const keys = Object.entries(schema.shape as Keys);
    if (new Set(keys.map(([key]) => foldKey(key))).size !== keys.length) {
      throw new Error(`${name}: keys fold together`);
    }
    const group = groups.find(([, shared]) => Object.keys(shared).every((key) => key in schema.shape));
    if (group !== undefined) this.sharedNames.add(group[0]);
    const own = group === undefined ? keys : keys.filter(([key, part]) => group[1][key] !== part);
    const rows = [...group === undefined ? [] : [`  ...${group[0]},`], ...this.#rows(own, name)];
    const defaults = keys.filter(([, part]) => definition(part).type === "default").map(([key, part]) => {
      const value = definition(part).defaultValue;
      if (typeof value === "object") throw new Error(`${name}: every document would share the default of ${key}`);
      return `${property(key)}: ${JSON.stringify(value)}`;
    });
    const required = keys.filter(([, part]) => !["default", "optional"].includes(definition(part).type))
      .map(([key]) => `, ${JSON.stringify(key)}`).join("");
    const table = rows.length === 0 ? "{}" : `{\n${rows.join("\n")}\n}`;
    const sure = defaults.length === 0 ? "{}" : `{ ${defaults.join(", ")} }`;
    this.tables.push(`const ${name} = ${this.#piece("objectOf")}(${table}, ${sure}${required});`);
    return name;
  }

  /** Writes the decoders of the group's keys. */
  group(shared: Keys, name: string): void {
    const rows = this.#rows(Object.entries(shared), name).join("\n");
    this.tables.push(`const ${name} = {\n${rows}\n} satisfies ${this.#piece("Keys")};`);
  }

  #rows(keys: [string, z.ZodType][], name: string): string[] {
    return keys.map(([key, part]) => `  ${property(key)}: ${this.#decoder(part, name + pascalCase(key))},`);
  }
}

export function pascalCase(text: string): string {
  return text.split(/[^A-Za-z0-9]+/).map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}

export function camelCase(text: string): string {
  const pascal = pascalCase(text);
  return pascal.charAt(0).toLowerCase() + pascal.slice(1);
}

const property = (key: string) => /^[A-Za-z_]\w*$/.test(key) ? key : JSON.stringify(key);
