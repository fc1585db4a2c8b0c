/**
 * What `kubectl get KINDS -A -o json` prints of another program's kinds, out of a file. Nothing of it is trusted: what is
 * wrong is told with its key and value.
 */
import { isObject, nestsDeeper } from "../cni/json.ts";
import { inside, invalid, missing } from "../cni/decode.ts";
import { canonicalAddress, hasHostBits, parseAddress, parsePrefix, type Prefix } from "../net/address.ts";

export type ImportedValues = Readonly<Record<string, unknown>>;

export interface ImportedObject {
  kind: string;
  name: string;
  /** `items[3]`, for sentences. */
  at: string;
  value: ImportedValues;
}

const DEEPEST = 40;

/** The objects of the group; other programs' are left out. */
export function objectsIn(document: unknown, group: string): ImportedObject[] {
  if (!isObject(document)) throw invalid("document", "it is no object, as 'kubectl get … -o json' prints one");
  if (nestsDeeper(document, DEEPEST)) throw invalid("document", `it nests deeper than ${DEEPEST}`);
  const items = document["items"] === undefined ? [document] : document["items"];
  if (!Array.isArray(items)) throw invalid("items", `${shownValue(items)} is no list`);
  const found = items.flatMap((item: unknown, index) => {
    const at = document["items"] === undefined ? "" : `items[${index}]`;
    if (!isObject(item)) throw invalid(at, `${shownValue(item)} is no object`);
    if (!textAt(item, at, "apiVersion").startsWith(`${group}/`)) return [];
    const metadata = objectAt(item, at, "metadata");
    return [{
      kind: textAt(item, at, "kind"),
      name: textAt(metadata, inside(at, "metadata"), "name"),
      at,
      value: item,
    }];
  });
  if (found.length === 0) {
    throw invalid(document["items"] === undefined ? "apiVersion" : "items", `nothing of ${group} is there`);
  }
  return found;
}

export function shownValue(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

export function objectAt(value: ImportedValues, at: string, key: string): ImportedValues {
  const found = value[key];
  if (found === undefined) throw missing(inside(at, key));
  if (!isObject(found)) throw invalid(inside(at, key), `${shownValue(found)} is no object`);
  return found;
}

/** No list where it is missing. */
export function listAt(value: ImportedValues, at: string, key: string): ImportedValues[] {
  const found = value[key] ?? [];
  if (!Array.isArray(found)) throw invalid(inside(at, key), `${shownValue(found)} is no list`);
  return found.map((each: unknown, index) => {
    if (isObject(each)) return each;
    throw invalid(`${inside(at, key)}[${index}]`, `${shownValue(each)} is no object`);
  });
}

export function textAt(value: ImportedValues, at: string, key: string): string {
  const found = value[key];
  if (found === undefined) throw missing(inside(at, key));
  if (typeof found === "string") return found;
  throw invalid(inside(at, key), `${shownValue(found)} is no text`);
}

export function numberAt(value: ImportedValues, at: string, key: string): number {
  const found = value[key];
  if (found === undefined) throw missing(inside(at, key));
  if (Number.isSafeInteger(found)) return found as number;
  throw invalid(inside(at, key), `${shownValue(found)} is no whole number`);
}

export function addressAtKey(value: ImportedValues, at: string, key: string): Uint8Array {
  const text = textAt(value, at, key),
    address = canonicalAddress(text) === undefined ? undefined : parseAddress(text);
  if (address !== undefined) return address;
  throw invalid(inside(at, key), `${shownValue(text)} is no address`);
}

export function subnetAt(value: ImportedValues, at: string, key: string): Prefix {
  const text = textAt(value, at, key), prefix = parsePrefix(text);
  if (prefix === undefined) throw invalid(inside(at, key), `${shownValue(text)} is no subnet`);
  if (hasHostBits(prefix)) throw invalid(inside(at, key), `${shownValue(text)} has bits set behind its prefix`);
  return prefix;
}
