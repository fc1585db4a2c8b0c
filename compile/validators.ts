/**
 * Compiles zod schemas into validators and JSON Schemas, which are checked in:
 *
 * - `<name>.validate.gen.ts` beside each schema of a plugin and of results: tables for src/cni/decode.ts,
 *   with one file for what they share;
 * - `schemas/*.json`: JSON Schemas for people and editors;
 * - `docs/plugins/*.md`: their keys as lists;
 * - `src/runtime/lint/*.gen.ts`: JSON Schemas without descriptions, for `patchbay lint`.
 *
 * `npm run generate` writes them (generate.ts). docs/decisions/0002-validators.md says why we have a generator of our
 * own. It knows the part of zod that the schemas use, and throws at anything else.
 */
import { basename, join } from "node:path";
import { z } from "zod";
import { explanations, overview } from "../src/explain/explanation.schema.ts";
import * as common from "../src/cni/config.schema.ts";
import { networkConfig, networkConfigList } from "../src/cni/network.schema.ts";
import * as results from "../src/cni/result.schema.ts";
import * as netavark from "../src/interop/podman-documents/netavark.schema.ts";
import { type JsonSchema, jsonSchema, knownKeysText, lintText, networkList, publishedText } from "./json-schemas.ts";
import { optionPages } from "./option-pages.ts";
import { camelCase, pascalCase } from "./validator-file.ts";
import { type Entry, SHARED_FILE, sharedText, validatorText } from "./validator-text.ts";

const root = join(import.meta.dir, "..");

/** Every generated file by its path from the root. */
export async function generate(): Promise<Map<string, string>> {
  const files = new Map<string, string>([[SHARED_FILE, sharedText()]]);
  const write = (schemaFile: string, entries: Entry[]) =>
    files.set(schemaFile.replace(".schema.ts", ".validate.gen.ts"), validatorText(schemaFile, entries));
  const { result01, result03, result10 } = results;
  const { pluginCall, containerCall, namedAttachment, netavarkConf, pluginStatus, creation } = netavark;
  write("src/cni/result.schema.ts", decoders({ result01, result03, result10 }));
  write("src/interop/podman-documents/netavark.schema.ts", [
    { name: "decodeNetwork", schemaName: "podmanNetwork", schema: netavark.podmanNetwork },
    ...decoders({ pluginCall, containerCall, namedAttachment, netavarkConf, pluginStatus, creation }),
  ]);
  const publish = (name: string, document: JsonSchema) => {
    files.set(`schemas/${name}.json`, publishedText(name, document));
    return document;
  };
  publish("result", jsonSchema(result10));
  publish("explanations", jsonSchema(explanations));
  publish("overview", jsonSchema(overview));
  publish("network-config", jsonSchema(networkConfig));
  const confs = new Map<string, z.ZodType>(), schemas = new Map<string, JsonSchema>(), ipam = new Set<string>();
  for (const path of [...new Bun.Glob("src/plugins/*/*/*.schema.ts").scanSync(root)].sort()) {
    const plugin = basename(path, ".schema.ts");
    const schemaName = `${camelCase(plugin)}Conf`;
    const schema = (await import(join(root, path)))[schemaName] as z.ZodObject | undefined;
    if (schema === undefined) throw new Error(`${path} does not export ${schemaName}`);
    const name = `validate${pascalCase(plugin)}Conf`;
    write(path, [{ name, schemaName, schema, subject: "failed to load netconf" }]);
    // A skeleton is to be copied, and published under its own name then.
    if (path.startsWith("src/plugins/skeleton/")) continue;
    schemas.set(plugin, publish(plugin, jsonSchema(schema)));
    confs.set(plugin, schema);
    if (path.startsWith("src/plugins/ipam/")) ipam.add(plugin);
  }
  const list = publish("network-config-list", networkList(confs, (name) => ipam.has(name)));
  for (const [path, text] of optionPages(schemas, list)) files.set(path, text);
  files.set("src/runtime/lint/schemas.gen.ts", lintText(confs));
  const capabilities = z.object(common.capability);
  files.set(
    "src/runtime/lint/known-keys.gen.ts",
    knownKeysText([...confs.values(), networkConfigList, capabilities]),
  );
  return files;
}

function decoders(schemas: Record<string, z.ZodObject>): Entry[] {
  return Object.entries(schemas).map(([schemaName, schema]) => ({
    name: `decode${pascalCase(schemaName)}`,
    schemaName,
    schema,
  }));
}
