/** Checks a document against a schema: unknown keys and wrong values. Letter case of keys does not count, as in plugins. */
import { foldKey, isObject } from "../../cni/json.ts";
import type { JsonEntry, JsonNode } from "../conf/positioned-json.ts";
import { closestKey } from "../../cni/spelling.ts";
import { keyPath, type Remark, remark, type Reporter } from "./remark.ts";
import { pluginsWithOption, type Schema } from "./schema.ts";

/** How a remark begins about a key that stands in the wrong plugin. */
export const OPTION_OF = "is an option of";

/** Words of ip(8) for those of routes. */
const synonyms: Readonly<Record<string, string>> = { via: "gw", nexthop: "gw", destination: "dst" };
/** What stands in no plugin's schema. */
const ofOthers: Readonly<Record<string, string>> = {
  isolate: 'podman\'s networks, as "ingressPolicy" is of firewall',
};

/** An unknown key may belong to another part of `root`, the plugin's whole schema. */
export function checkSchema(node: JsonNode, schema: Schema, path: string, report: Reporter, root = schema): void {
  if (node.value === null) return; // Counts as absent.
  if (schema.anyOf !== undefined) {
    const alternatives = schema.anyOf.map((one) => remarksOn(node, one, path));
    if (alternatives.every((remarks) => remarks.length > 0)) alternatives[0]!.forEach(report);
    return;
  }
  if (schema.type !== undefined && !types[schema.type].has(node.value)) {
    report(remark(node, "error", path, `must be ${types[schema.type].name}, got ${shortened(node.value)}`));
    return;
  }
  checkValue(node, schema, path, report);
  node.items?.forEach((item, index) =>
    schema.items && checkSchema(item, schema.items, `${path}[${index}]`, report, root)
  );
  if (node.entries !== undefined) checkKeys(node, schema, path, report, root);
}

function remarksOn(node: JsonNode, schema: Schema, path: string): Remark[] {
  const remarks: Remark[] = [];
  checkSchema(node, schema, path, (remark) => remarks.push(remark));
  return remarks;
}

function checkKeys(node: JsonNode, schema: Schema, path: string, report: Reporter, root: Schema): void {
  const known = Object.keys(schema.properties ?? {});
  const seen = new Set<string>();
  for (const entry of node.entries!) {
    const { key, at, value } = entry, folded = foldKey(key), inside = keyPath(path, key);
    // Editors go by it.
    if (key === "$schema") continue;
    if (seen.has(folded)) report(remark(at, "warning", inside, "stands here again, and only the last counts"));
    seen.add(folded);
    const name = known.find((one) => foldKey(one) === folded);
    const expected = name === undefined ? schema.additionalProperties : schema.properties![name]!;
    if (isObject(expected)) checkSchema(value, expected as Schema, inside, report, root);
    else if (schema.properties !== undefined) reportUnknownKey(entry, node, schema, inside, report, root);
  }
  for (const key of schema.required ?? []) {
    if (!seen.has(foldKey(key))) report(remark(node, "error", keyPath(path, key), "is missing"));
  }
}

function reportUnknownKey(
  { key, at }: JsonEntry,
  { entries }: JsonNode,
  schema: Schema,
  path: string,
  report: Reporter,
  root: Schema,
): void {
  const used = entries!.map((entry) => foldKey(entry.key));
  const unused = Object.keys(schema.properties!).filter((known) => !used.includes(foldKey(known)));
  const isOpen = schema.additionalProperties === true;
  const folded = foldKey(key), synonym = unused.find((known) => known === synonyms[folded]);
  const meant = (isOpen ? undefined : placeIn(root, folded)) ?? synonym ?? closestKey(key, unused);
  if (isOpen && meant === undefined) return;
  const others = ofOthers[folded] ?? pluginsWithOption(folded).join(", ");
  if (meant === undefined && schema === root && others !== "") {
    report(remark(at, "warning", path, `${OPTION_OF} ${others}, and ignored here`));
    return;
  }
  report(remark(at, meant === undefined ? "note" : "warning", path, "is not known, and ignored", meant));
}

/** Where in the schema the key stands, for example `ipam.subnet`. The shallowest place counts. */
function placeIn(root: Schema, folded: string): string | undefined {
  let level: { path: string; schema: Schema }[] = [{ path: "", schema: root }];
  while (level.length > 0) {
    const next: typeof level = [];
    for (const { path, schema } of level) {
      for (const [key, part] of Object.entries(schema.properties ?? {})) {
        if (["args", "runtimeConfig", "prevResult"].includes(key)) continue;
        if (foldKey(key) === folded) return path + key;
        next.push({ path: `${path}${key}.`, schema: part });
        if (part.items !== undefined) next.push({ path: `${path}${key}[].`, schema: part.items.items ?? part.items });
      }
    }
    level = next;
  }
  return undefined;
}

function checkValue(node: JsonNode, schema: Schema, path: string, report: Reporter): void {
  const { value } = node;
  if (schema.enum !== undefined && !schema.enum.includes(value as string)) {
    const choices = schema.enum.filter(Boolean);
    const message = `must be one of ${choices.map((choice) => JSON.stringify(choice)).join(", ")}, got ` +
      shortened(value);
    report(remark(node, "error", path, message, closestKey(String(value), choices)));
  }
  const { minimum = -Infinity, maximum = Infinity, minLength = 0, maxLength = Infinity, pattern } = schema;
  const warn = (message: string) => report(remark(node, "warning", path, message));
  if (typeof value === "number" && (value < minimum || value > maximum)) {
    warn(`must be ${range(minimum, maximum)}, got ${value}`);
  }
  if (typeof value === "string" && value !== "") {
    if (value.length < minLength || value.length > maxLength) {
      warn(`must have ${range(minLength, maxLength)} characters`);
    } else if (pattern !== undefined && !new RegExp(pattern, "u").test(value)) {
      warn(`must match ${pattern}, got ${shortened(value)}`);
    }
  }
  if (Array.isArray(value)) {
    const { minItems = 0, maxItems = Infinity } = schema;
    if (value.length < minItems || value.length > maxItems) warn(`must have ${range(minItems, maxItems)} items`);
  }
}

const types: Record<NonNullable<Schema["type"]>, { name: string; has(value: unknown): boolean }> = {
  object: { name: "an object", has: isObject },
  array: { name: "a list", has: Array.isArray },
  string: { name: "a string", has: (value) => typeof value === "string" },
  integer: { name: "an integer", has: Number.isInteger },
  boolean: { name: "true or false", has: (value) => typeof value === "boolean" },
};

function range(least: number, most: number): string {
  if (most === Infinity) return `${least} or more`;
  return least === -Infinity || least === 0 ? `at most ${most}` : `between ${least} and ${most}`;
}

function shortened(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
