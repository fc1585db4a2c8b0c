/** A document beside a schema: keys nobody reads, and values that are none. Keys count in any case, as plugins read them. */
import { foldKey, isObject } from "../../cni/json.ts";
import { editDistance } from "../cli/nearest.ts";
import type { Node, Place } from "./document.ts";
import type { Schema } from "./schema.ts";

/**
 * `error`: it is refused. `warning`: it does not do what it looks like. `note`: it is ignored, perhaps by intention.
 */
export type Severity = "error" | "warning" | "note";

export interface Remark extends Place {
  readonly severity: Severity;
  /** `ipam.ranges[0][0].subnet`; "" for the document itself. */
  readonly key: string;
  readonly message: string;
  /** The key or value that was probably meant. */
  readonly meant?: string;
}

export type Report = (remark: Remark) => void;

/** `root` is the schema of the plugin: a key that is not known here may be one of another place there. */
export function judge(node: Node, schema: Schema, path: string, report: Report, root = schema): void {
  if (node.value === null) return; // As if it were not there.
  if (schema.anyOf !== undefined) {
    const found: Remark[][] = schema.anyOf.map((one) => remarksOn(node, one, path));
    if (found.every((remarks) => remarks.length > 0)) found[0]!.forEach(report);
    return;
  }
  const expected = schema.type && !isOfType(node.value, schema.type) ? typeNames[schema.type] : undefined;
  if (expected !== undefined) {
    report({
      ...placeOf(node),
      severity: "error",
      key: path,
      message: `must be ${expected}, got ${shown(node.value)}`,
    });
    return;
  }
  judgeValue(node, schema, path, report);
  node.items?.forEach((item, index) => schema.items && judge(item, schema.items, `${path}[${index}]`, report, root));
  if (node.entries !== undefined) judgeKeys(node, schema, path, report, root);
}

/** The candidate that is a slip away: few edits for its length, another case, or the same letters in another order. */
export function meantBy(name: string, candidates: readonly string[]): string | undefined {
  const plain = (text: string) => foldKey(text).replace(/[_-]/g, "");
  const letters = (text: string) => [...plain(text)].sort().join("");
  const distance = (candidate: string) =>
    letters(candidate) === letters(name) ? 0 : editDistance(plain(name), plain(candidate));
  const best = candidates.map((candidate) => ({ candidate, distance: distance(candidate) }))
    .sort((one, other) => one.distance - other.distance)[0];
  const most = name.length < 4 ? 1 : Math.max(2, Math.floor(name.length / 3));
  return best !== undefined && best.distance <= most ? best.candidate : undefined;
}

function judgeKeys(node: Node, schema: Schema, path: string, report: Report, root: Schema): void {
  const known = Object.keys(schema.properties ?? {});
  const seen = new Set<string>();
  for (const { key, at, value } of node.entries!) {
    const folded = foldKey(key), inside = path === "" ? key : `${path}.${key}`;
    const about = { ...at, key: inside };
    if (seen.has(folded)) {
      report({ ...about, severity: "warning", message: "stands here again, and only the last counts" });
    }
    seen.add(folded);
    const name = known.find((one) => foldKey(one) === folded);
    if (name !== undefined) judge(value, schema.properties![name]!, inside, report, root);
    else if (isObject(schema.additionalProperties)) judge(value, schema.additionalProperties, inside, report, root);
    else if (schema.properties !== undefined) {
      const unused = known.filter((one) => !node.entries!.some((entry) => foldKey(entry.key) === foldKey(one)));
      const others = schema.additionalProperties === true;
      const meant = (others ? undefined : placeIn(root, folded)) ?? meantBy(key, unused);
      if (others && meant === undefined) continue;
      const severity = meant === undefined ? "note" : "warning";
      report({ ...about, severity, message: "is not known, and ignored", ...meant !== undefined && { meant } });
    }
  }
  for (const key of schema.required ?? []) {
    if (!seen.has(foldKey(key))) {
      report({
        ...placeOf(node),
        severity: "error",
        key: path === "" ? key : `${path}.${key}`,
        message: "is missing",
      });
    }
  }
}

/** Where in the schema a key stands: `ipam.subnet` for a subnet that is not there. The shallowest place counts. */
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

function judgeValue(node: Node, schema: Schema, path: string, report: Report): void {
  const { value } = node, about = { ...placeOf(node), key: path };
  if (schema.enum !== undefined && !schema.enum.includes(value as string)) {
    const meant = meantBy(String(value), schema.enum.filter(Boolean));
    const choices = schema.enum.filter(Boolean).map((choice) => JSON.stringify(choice)).join(", ");
    const message = `must be one of ${choices}, got ${shown(value)}`;
    report({ ...about, severity: "error", message, ...meant !== undefined && { meant } });
  }
  const { minimum = -Infinity, maximum = Infinity, minLength = 0, maxLength = Infinity, pattern } = schema;
  const warn = (message: string) => report({ ...about, severity: "warning", message });
  if (typeof value === "number" && (value < minimum || value > maximum)) {
    warn(`must be ${range(minimum, maximum)}, got ${value}`);
  }
  if (typeof value === "string" && value !== "") {
    if (value.length < minLength || value.length > maxLength) {
      warn(`must have ${range(minLength, maxLength)} characters`);
    } else if (pattern !== undefined && !new RegExp(pattern, "u").test(value)) {
      warn(`must match ${pattern}, got ${shown(value)}`);
    }
  }
  if (Array.isArray(value)) {
    const { minItems = 0, maxItems = Infinity } = schema;
    if (value.length < minItems || value.length > maxItems) warn(`must have ${range(minItems, maxItems)} items`);
  }
}

function remarksOn(node: Node, schema: Schema, path: string): Remark[] {
  const remarks: Remark[] = [];
  judge(node, schema, path, (remark) => remarks.push(remark));
  return remarks;
}

const typeNames = {
  object: "an object",
  array: "a list",
  string: "a string",
  integer: "an integer",
  boolean: "true or false",
};

function isOfType(value: unknown, type: keyof typeof typeNames): boolean {
  switch (type) {
    case "object":
      return isObject(value);
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
  }
  const is: string = typeof value;
  return is === type;
}

function range(least: number, most: number): string {
  if (most === Infinity) return `${least} or more`;
  return least === -Infinity || least === 0 ? `at most ${most}` : `between ${least} and ${most}`;
}

function placeOf({ start, end }: Node): Place {
  return { start, end };
}

function shown(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
