/** What the JSON Schemas (schemas/) say of a plugin's configuration, put together for a plugin and its IPAM plugin. */
import { capabilities, common, list, plugins } from "./schemas.gen.ts";

/** The part of JSON Schema that ours use. */
export interface Schema {
  readonly type?: "object" | "array" | "string" | "integer" | "boolean";
  readonly properties?: Readonly<Record<string, Schema>>;
  /** Of values under other keys; `true` where others may have theirs too, and a slip of ours is one nevertheless. */
  readonly additionalProperties?: Schema | true;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
}

export function listSchema(): Schema {
  return read(list);
}

export function wellKnownCapabilities(): string[] {
  return Object.keys(read(capabilities).properties!);
}

/** Undefined for a plugin that is none of ours. */
export function pluginSchema(type: string, ipamType: string): Schema | undefined {
  const own = schemaOf(type);
  if (own === undefined) return undefined;
  const schema = merged(withoutSay(read(common)), own), ipam = schemaOf(ipamType);
  // What another plugin is to know, nobody can tell: of flannel's delegate, or of an IPAM plugin of another make.
  if (delegates(schema)) return merged(schema, { properties: { runtimeConfig: anything, ipam: anything } });
  if (ipam !== undefined) return merged(schema, ipam);
  return ipamType === "" ? schema : merged(schema, { properties: { runtimeConfig: anything, ipam: anything } });
}

/** Of the key `ipam` alone. */
export function ipamSchema(type: string): Schema | undefined {
  return schemaOf(type)?.properties?.["ipam"];
}

export function delegates({ properties }: Schema): boolean {
  return properties?.["delegate"] !== undefined;
}

const anything: Schema = { additionalProperties: true };

/** By conventions, `args` has keys of everybody's. */
function withoutSay(schema: Schema): Schema {
  const args: Schema = { type: "object", additionalProperties: {}, properties: { cni: anything } };
  // The runtime adds the name.
  const free = { ...schema, required: [] };
  return merged(free, { properties: { args, runtimeConfig: { type: "object", properties: {} } } });
}

function schemaOf(type: string): Schema | undefined {
  return Object.hasOwn(plugins, type) ? read(plugins[type]!) : undefined;
}

function read(text: string): Schema {
  return JSON.parse(text);
}

/** Objects have the keys of both; of anything else the second counts. */
function merged(one: Schema, other: Schema): Schema {
  const properties: Record<string, Schema> = { ...one.properties };
  for (const [key, schema] of Object.entries(other.properties ?? {})) {
    const known = properties[key];
    properties[key] = known?.type === "object" || known?.additionalProperties === true
      ? merged(known, schema)
      : schema;
  }
  return { ...one, ...other, properties };
}
