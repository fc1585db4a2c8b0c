/**
 * JSON documents from outside: the configuration on stdin, a delegate's result, files. One document, within limits.
 *
 * `JSON.parse` itself refuses trailing bytes, control characters and everything else RFC 8259 does not have, keeps the
 * last of repeated keys as Go does, and makes `__proto__` an ordinary property. What it lacks are limits: it reads
 * nesting so deep that nothing else could handle the value afterwards.
 */
import { CniError, DECODING_FAILURE } from "./error.ts";

/** GC for a full node is about 7 MB. */
export const DOCUMENT_LIMIT_BYTES = 16 * 1024 * 1024;

/** No configuration or result nests deeper than a dozen. */
export const DOCUMENT_LIMIT_DEPTH = 100;

declare const parsed: unique symbol;

/**
 * What stood in a text, or what a text would say (`asRead`). Nothing else is one, so that a plugin sees the same
 * document in process and on stdin: a member that is `undefined` would be there in the one and not in the other.
 */
export type ParsedObject = Record<string, unknown> & { readonly [parsed]: true };
export type Parsed = ParsedObject | unknown[] | string | number | boolean | null;

const decoder = new TextDecoder();

/** Bad UTF-8 becomes U+FFFD, as Go has it. A byte order mark stays what it is: not JSON. */
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
  // Without that many brackets it cannot be that deep, and counting them costs next to nothing.
  if (mayNestDeeper(text) && nestsDeeper(value, DOCUMENT_LIMIT_DEPTH)) {
    throw failure(subject, `the document nests deeper than ${DOCUMENT_LIMIT_DEPTH}`);
  }
  return value;
}

/** An object of ours as it goes to stdin, and as whoever reads it there finds it. */
export function asWritten(document: Record<string, unknown>): { stdin: string; document: ParsedObject } {
  return { stdin: JSON.stringify(document), document: asRead(document) };
}

/**
 * The object as a reader of its JSON text finds it, without writing and parsing: a copy in which what JSON does not have
 * is left out, or is null in a list.
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

/** How often the character occurs; stops where it no longer matters. */
function count(text: string, character: string): number {
  let found = 0;
  for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1)) {
    if (++found > DOCUMENT_LIMIT_DEPTH) break;
  }
  return found;
}

function nestsDeeper(value: unknown, allowed: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (allowed === 0) return true;
  return Object.values(value).some((part) => nestsDeeper(part, allowed - 1));
}

/**
 * The form in which keys are compared. Go's decoder, and so everybody who writes configurations for it, takes
 * `HostPort` for `hostPort`; its folding knows two letters outside ASCII that stand for ASCII ones.
 */
export function foldKey(key: string): string {
  return key.toLowerCase().replaceAll("ſ", "s"); // The other one, the Kelvin sign, becomes k by itself.
}

/** The value of a key as Go finds it: in any case; of several the last, but null leaves what an earlier one said. */
export function field(document: Record<string, unknown>, key: string): unknown {
  const folded = foldKey(key);
  let found: unknown;
  for (const name of Object.keys(document)) {
    if (foldKey(name) === folded) found = document[name] ?? found ?? null;
  }
  return found;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
