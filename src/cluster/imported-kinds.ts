/**
 * What `kubectl get KINDS -A -o json` prints of another program's kinds, out of a file. Nothing of it is trusted: what is
 * wrong is told with its key and value.
 */
import { isObject, nestsDeeper } from "../cni/json.ts";
import { inside, invalid } from "../cni/decode.ts";
import { objectAt, shownValue, textAt, type WrittenValues } from "./written-values.ts";

export interface ImportedObject {
  kind: string;
  name: string;
  /** `items[3]`, for sentences. */
  at: string;
  value: WrittenValues;
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
