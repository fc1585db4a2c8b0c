/**
 * JSON documents from outside: the configuration on stdin, a delegate's result, files. Adds limits to `JSON.parse`.
 *
 * `JSON.parse` follows RFC 8259 strictly, keeps the last of repeated keys like Go, and makes `__proto__` an ordinary
 * property. But it accepts nesting so deep that other functions overflow the stack on the value.
 */
import { CniError, DECODING_FAILURE } from "./error.ts";

/** The configuration of GC on a full node has about 7 MB. */
export const DOCUMENT_LIMIT_BYTES = 16 * 1024 * 1024;

/** Real configurations and results nest at most a dozen levels deep. */
export const DOCUMENT_LIMIT_DEPTH = 100;

declare const parsed: unique symbol;

/**
 * An object parsed from a text, or equal to one (`asRead`). The brand ensures that a plugin sees the same document in
 * process and on stdin: a member with value `undefined` would exist only in process.
 */
export type ParsedObject = Record<string, unknown> & { readonly [parsed]: true };
export type Parsed = ParsedObject | unknown[] | string | number | boolean | null;

const decoder = new TextDecoder();

/** Replaces invalid UTF-8 with U+FFFD, like Go. Keeps a byte order mark, which is not valid JSON. */
export function decodeText(bytes: Uint8Array): string {
  const text = decoder.decode(bytes);
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? `\ufeff${text}` : text;
}

/** Throws a CniError of code 6 whose message starts with `subject`. */
export function parseDocument(source: Uint8Array | string, subject: string): Parsed {
  if (source.length > DOCUMENT_LIMIT_BYTES) {
    throw failure(subject, `the document is larger than ${DOCUMENT_LIMIT_BYTES} bytes`);
  }
  const text = typeof source === "string" ? source : decodeText(source);
  let value: Parsed;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = text.trim() === "" ? "unexpected end of JSON input" : (error as Error).message;
    throw failure(subject, reason, error);
  }
  // Counting brackets is cheap and rules out deep nesting for nearly every document.
  if (mayNestDeeper(text) && nestsDeeper(value, DOCUMENT_LIMIT_DEPTH)) {
    throw failure(subject, `the document nests deeper than ${DOCUMENT_LIMIT_DEPTH}`);
  }
  return value;
}

/** Our own document as text for stdin, and as a plugin would parse it from there. */
export function asWritten(document: Record<string, unknown>): { stdin: string; document: ParsedObject } {
  return { stdin: JSON.stringify(document), document: asRead(document) };
}

/**
 * The object as it would come out of printing and parsing: a copy that omits what JSON cannot express, or has null for it
 * in lists.
 */
export function asRead(value: Record<string, unknown>): ParsedObject {
  const read: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    const part = readPart(value[key]);
    if (part === undefined) continue;
    if (key !== "__proto__") read[key] = part;
    else Object.defineProperty(read, key, { value: part, enumerable: true, configurable: true, writable: true });
  }
  return read as ParsedObject;
}

function readPart(value: unknown): unknown {
  if (typeof value === "number") return Number.isFinite(value) ? value + 0 : null; // JSON has no -0
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((part) => readPart(part) ?? null);
  return asRead(value as Record<string, unknown>);
}

function failure(subject: string, reason: string, cause?: unknown): CniError {
  return new CniError(DECODING_FAILURE, `${subject}: ${reason}`, "", { cause });
}

function mayNestDeeper(text: string): boolean {
  return count(text, "{") + count(text, "[") > DOCUMENT_LIMIT_DEPTH;
}

/** How often the character occurs, up to one more than the limit. */
function count(text: string, character: string): number {
  let found = 0;
  for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1)) {
    if (++found > DOCUMENT_LIMIT_DEPTH) break;
  }
  return found;
}

export function nestsDeeper(value: unknown, allowed: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (allowed === 0) return true;
  return Object.values(value).some((part) => nestsDeeper(part, allowed - 1));
}

/**
 * Keys are compared in this form: Go's decoder ignores the case of keys, so configurations may have `HostPort` for
 * `hostPort`. Two letters outside ASCII fold to ASCII ones.
 */
export function foldKey(key: string): string {
  return key.toLowerCase().replaceAll("ſ", "s"); // toLowerCase turns the other one, the Kelvin sign, into k.
}

/** The value of a key as Go decodes it: in any case; the last of several counts, except that null changes nothing. */
export function field(document: Record<string, unknown>, key: string): unknown {
  const folded = foldKey(key);
  let found: unknown;
  for (const name of Object.keys(document)) {
    // What folds to ASCII is as long as before.
    if (name.length === folded.length && foldKey(name) === folded) found = document[name] ?? found ?? null;
  }
  return found;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What is behind these keys, one inside of the other; undefined where one is missing. */
export function valueAt(value: unknown, ...keys: readonly string[]): unknown {
  let found = value;
  for (const key of keys) found = isObject(found) ? found[key] : undefined;
  return found;
}
