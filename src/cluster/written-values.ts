/** What people and other programs have written: each refusal names the key and the value. */
import { inside, invalid, missing } from "../cni/decode.ts";
import { isObject } from "../cni/json.ts";
import { hasHostBits, parseAddress, parsePrefix, type Prefix } from "../net/address.ts";

export type WrittenValues = Readonly<Record<string, unknown>>;

/** A key that is not known may be a misspelt one. `whole`: what it is where `at` is empty. */
export function knownAt(value: unknown, at: string, keys: readonly string[], whole = ""): WrittenValues {
  if (!isObject(value)) throw invalid(at === "" ? whole : at, `${shownValue(value)} is no object`);
  const other = Object.keys(value).find((key) => !keys.includes(key));
  if (other !== undefined) throw invalid(inside(at, other), "is not known");
  return value;
}

export function shownValue(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

export function objectAt(value: WrittenValues, at: string, key: string): WrittenValues {
  const found = value[key];
  if (found === undefined) throw missing(inside(at, key));
  if (!isObject(found)) throw invalid(inside(at, key), `${shownValue(found)} is no object`);
  return found;
}

/** No list where it is missing. */
export function listAt(value: WrittenValues, at: string, key: string): WrittenValues[] {
  const found = value[key] ?? [];
  if (!Array.isArray(found)) throw invalid(inside(at, key), `${shownValue(found)} is no list`);
  return found.map((each: unknown, index) => {
    if (isObject(each)) return each;
    throw invalid(`${inside(at, key)}[${index}]`, `${shownValue(each)} is no object`);
  });
}

export function textAt(value: WrittenValues, at: string, key: string): string {
  const found = value[key];
  if (found === undefined) throw missing(inside(at, key));
  if (typeof found === "string") return found;
  throw invalid(inside(at, key), `${shownValue(found)} is no text`);
}

export function numberAt(value: WrittenValues, at: string, key: string): number {
  const found = value[key];
  if (found === undefined) throw missing(inside(at, key));
  if (Number.isSafeInteger(found)) return found as number;
  throw invalid(inside(at, key), `${shownValue(found)} is no whole number`);
}

export function addressAtKey(value: WrittenValues, at: string, key: string): Uint8Array {
  const text = textAt(value, at, key), address = parseAddress(text);
  if (address !== undefined) return address;
  throw invalid(inside(at, key), `${shownValue(text)} is no address`);
}

export function subnetAt(value: WrittenValues, at: string, key: string): Prefix {
  const text = textAt(value, at, key), prefix = parsePrefix(text);
  if (prefix === undefined) throw invalid(inside(at, key), `${shownValue(text)} is no subnet`);
  if (hasHostBits(prefix)) throw invalid(inside(at, key), `${shownValue(text)} has bits set behind its prefix`);
  return prefix;
}
