/**
 * What generated validators consist of: one function a JSON type, which returns the value or rejects it with the path of
 * its key. compile/validators.ts compiles validators from zod schemas; zod itself is not in the program, because loading
 * it takes longer than an attachment. Loops replace `map` and the like: JavaScriptCore compiles those from source in every
 * process that uses them, which takes as long as all of the decoding.
 */
import { canonicalAddress, canonicalPrefix, isMappedPrefix } from "../net/address.ts";
import { CniError, INVALID_CONFIG, UNSUPPORTED_FIELD } from "./error.ts";
import { foldKey, isObject } from "./json.ts";

/** Decodes the value at the path. */
type Decoder<Value> = (value: unknown, at: string) => Value;
export type Keys = Record<string, Decoder<unknown>>;
type Values<Of extends Keys> = { [Key in keyof Of]: ReturnType<Of[Key]> };
type Decoded<Of extends Keys, Sure> = Pick<Values<Of>, Sure & keyof Of> & Partial<Values<Of>>;

export function object(value: unknown, at: string): Record<string, unknown> {
  if (isObject(value)) return value;
  throw wrongType(at, "an object", value);
}

/** The path of a key inside `at`. */
export function inside(at: string, key: string): string {
  return at === "" ? key : `${at}.${key}`;
}

/**
 * The decoder of an object with these keys, in any case. `null` counts as absent, and so do other keys. Keys that have
 * neither a default nor to be there are optional.
 */
export function objectOf<Of extends Keys, Defaults extends Partial<Values<Of>>, Required extends keyof Of & string>(
  keys: Of,
  defaults: Defaults,
  ...required: Required[]
): Decoder<Decoded<Of, keyof Defaults | Required>> {
  let byFolded: Record<string, string> | undefined;
  const known = (name: string): string | undefined => {
    if (Object.hasOwn(keys, name)) return name;
    if (byFolded === undefined) {
      byFolded = Object.create(null) as Record<string, string>;
      for (const key of Object.keys(keys)) byFolded[foldKey(key)] = key;
    }
    return byFolded[foldKey(name)];
  };
  return (document, at) => {
    const source = object(document, at);
    const decoded: Record<string, unknown> = { ...defaults };
    for (const name of Object.keys(source)) {
      const value = source[name];
      if (value === null) continue;
      const key = known(name);
      if (key !== undefined) decoded[key] = keys[key]!(value, inside(at, key));
    }
    for (const key of required) if (decoded[key] === undefined) throw missing(inside(at, key));
    return decoded as Decoded<Of, keyof Defaults | Required>;
  };
}

export function string(value: unknown, at: string): string {
  if (typeof value === "string") return value;
  throw wrongType(at, "a string", value);
}

export function boolean(value: unknown, at: string): boolean {
  if (typeof value === "boolean") return value;
  throw wrongType(at, "true or false", value);
}

/** Rejects numbers beyond 2^53, which JSON.parse may have rounded. */
export function integer(value: unknown, at: string): number {
  if (Number.isSafeInteger(value)) return value as number;
  throw wrongType(at, "an integer", value);
}

export function list<Item>(value: unknown, at: string, item: Decoder<Item>): Item[] {
  if (!Array.isArray(value)) throw wrongType(at, "a list", value);
  const items: Item[] = [];
  for (let index = 0; index < value.length; index++) items.push(item(value[index], `${at}[${index}]`));
  return items;
}

/** An object whose keys are data. The copy has no prototype, so that it has no other keys. */
export function map<Item>(value: unknown, at: string, item: Decoder<Item>): Record<string, Item> {
  const source = object(value, at);
  const copy: Record<string, Item> = Object.create(null);
  for (const key of Object.keys(source)) {
    if (source[key] !== null) copy[key] = item(source[key], inside(at, key));
  }
  return copy;
}

export function anything(value: unknown): unknown {
  return value;
}

export function integerBetween(
  value: unknown,
  at: string,
  min: number,
  max: number,
  refusal: (value: number) => string,
): number {
  const number = integer(value, at);
  if (number >= min && number <= max) return number;
  throw invalid(at, refusal(number));
}

/** One of several strings. The specification has an error code of its own for unsupported values. */
export function choice<Choice extends string>(
  value: unknown,
  at: string,
  choices: readonly Choice[],
  refusal: (value: string) => string,
): Choice {
  const text = string(value, at);
  if (choices.includes(text as Choice)) return text as Choice;
  throw new CniError(UNSUPPORTED_FIELD, `${JSON.stringify(at)}: ${refusal(text)}`);
}

export function prefix(value: unknown, at: string, refusal: (value: string) => string): string {
  const text = string(value, at);
  const canonical = canonicalPrefix(text);
  if (canonical === undefined) throw invalid(at, refusal(text));
  return canonical;
}

/** Like `prefix`, but keeps the text of an IPv4-mapped prefix. */
export function subnet(value: unknown, at: string, refusal: (value: string) => string): string {
  const canonical = prefix(value, at, refusal);
  return isMappedPrefix(value as string) ? value as string : canonical;
}

/** Undefined for the empty text, which means none. */
export function address(value: unknown, at: string, refusal: (value: string) => string): string | undefined {
  const text = string(value, at);
  if (text === "") return undefined;
  const canonical = canonicalAddress(text);
  if (canonical === undefined) throw invalid(at, refusal(text));
  return canonical;
}

export function addressOrPrefix(value: unknown, at: string, refusal: (value: string) => string): string {
  const text = string(value, at);
  const canonical = canonicalPrefix(text) ?? canonicalAddress(text);
  if (canonical === undefined) throw invalid(at, refusal(text));
  return canonical;
}

export function missing(at: string): CniError {
  return new CniError(INVALID_CONFIG, `${JSON.stringify(at)} is missing`);
}

export function invalid(at: string, refusal: string): CniError {
  return new CniError(INVALID_CONFIG, `${JSON.stringify(at)}: ${refusal}`);
}

function wrongType(at: string, expected: string, value: unknown): CniError {
  const shown = JSON.stringify(value);
  const got = shown.length > 80 ? `${shown.slice(0, 77)}...` : shown;
  const what = at === "" ? "the document" : JSON.stringify(at);
  return new CniError(INVALID_CONFIG, `${what} must be ${expected}, got ${got}`);
}

/** Runs a decoder, and prefixes its errors with `subject`. `code` replaces the code of the decoder. */
export function decoding<Value>(subject: string, decode: () => Value, code?: number): Value {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof CniError)) throw error;
    throw new CniError(code ?? error.code, `${subject}: ${error.message}`, error.details, { cause: error });
  }
}
