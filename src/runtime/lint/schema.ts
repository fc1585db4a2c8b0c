/** The schema of a plugin together with its IPAM plugin, from the JSON Schemas in schemas/. */
import { foldKey } from "../../cni/json.ts";
import { pluginNamed } from "../../plugins/table.ts";
import { capabilities, common, list, plugins } from "./schemas.gen.ts";

/** The subset of JSON Schema that our schemas use. */
export interface Schema {
  readonly type?: "object" | "array" | "string" | "integer" | "boolean";
  readonly properties?: Readonly<Record<string, Schema>>;
  /** The schema of other keys' values. `true`: unknown keys are fine, unless they look like a known key misspelt. */
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

/** Undefined when the plugin is not ours. `ipamType`: "" without an IPAM plugin. */
export function pluginSchema(type: string, ipamType: string): Schema | undefined {
  const own = schemaOf(type);
  if (own === undefined) return undefined;
  const schema = merged(openForRuntime(read(common)), own), ipam = schemaOf(ipamType);
  // Nothing is known of the keys for flannel's delegate, or for an IPAM plugin that is not ours.
  if (delegates(schema)) return merged(schema, { properties: { runtimeConfig: anything, ipam: anything } });
  if (ipam !== undefined) return merged(schema, ipam);
  return ipamType === "" ? schema : merged(schema, { properties: { runtimeConfig: anything, ipam: anything } });
}

/** The plugins that have an option of this name. */
export function pluginsWithOption(folded: string): string[] {
  return Object.keys(plugins).filter((name) =>
    Object.keys(schemaOf(name)?.properties ?? {}).some((key) => foldKey(key) === folded)
  );
}

/** The schema of the key `ipam` alone. */
export function ipamSchema(type: string): Schema | undefined {
  return schemaOf(type)?.properties?.["ipam"];
}

export function delegates({ properties }: Schema): boolean {
  return properties?.["delegate"] !== undefined;
}

const anything: Schema = { additionalProperties: true };

/** Before the runtime adds its part, no key is required; and the conventions let anybody add keys to `args`. */
function openForRuntime(schema: Schema): Schema {
  const args: Schema = { type: "object", additionalProperties: {}, properties: { cni: anything } };
  return merged({ ...schema, required: [] }, {
    properties: { args, runtimeConfig: { type: "object", properties: {} } },
  });
}

function schemaOf(type: string): Schema | undefined {
  const name = pluginNamed(type);
  return name !== undefined && Object.hasOwn(plugins, name) ? read(plugins[name]!) : undefined;
}

function read(text: string): Schema {
  return JSON.parse(text);
}

/** The second wins, except that objects have the keys of both. */
function merged(one: Schema, other: Schema): Schema {
  const properties: Record<string, Schema> = { ...one.properties };
  for (const [key, schema] of Object.entries(other.properties ?? {})) {
    const known = properties[key];
    const isObject = known?.type === "object" || known?.additionalProperties === true;
    properties[key] = isObject ? merged(known, schema) : schema;
  }
  return { ...one, ...other, properties };
}
