/**
 * Values on the message bus, in the form that their signature says (D-Bus specification 0.42, "Marshaling (Wire Format)").
 * Every value is aligned to its size, counted from the start of the message.
 */
import { utf8 } from "../../ffi/libc.ts";

/** Texts, numbers, booleans; arrays, structures and entries of dictionaries are lists. */
export type Value = string | number | boolean | Variant | readonly Value[];

/** A value that brings its own type. */
export interface Variant {
  readonly signature: string;
  readonly value: Value;
}

const LONGEST_SIGNATURE = 255, DEEPEST = 32;

/** `ba(ss)` is `b` and `a(ss)`. */
export function completeTypes(signature: string): string[] {
  const types: string[] = [];
  if (signature.length > LONGEST_SIGNATURE) throw malformed(signature);
  for (let at = 0; at < signature.length;) {
    const end = endOfType(signature, at, 0);
    types.push(signature.slice(at, end));
    at = end;
  }
  return types;
}

function endOfType(signature: string, at: number, depth: number): number {
  const first = signature[at];
  if (first === undefined || depth > DEEPEST) throw malformed(signature);
  if (first === "a") return endOfType(signature, at + 1, depth + 1);
  if (first !== "(" && first !== "{") {
    if (!Object.hasOwn(sizes, first)) throw malformed(signature);
    return at + 1;
  }
  const close = first === "(" ? ")" : "}";
  for (at++; signature[at] !== close;) at = endOfType(signature, at, depth + 1);
  return at + 1;
}

function malformed(signature: string): Error {
  return new Error(`D-Bus: a value of type "${signature.slice(0, LONGEST_SIGNATURE)}"`);
}

/** What a value is aligned to, by the first letter of its type. */
const sizes: Readonly<Record<string, number>> = {
  y: 1,
  b: 4,
  n: 2,
  q: 2,
  i: 4,
  u: 4,
  x: 8,
  t: 8,
  d: 8,
  s: 4,
  o: 4,
  g: 1,
  v: 1,
  a: 4,
  "(": 8,
  "{": 8,
};

/** Little-endian. */
export class Encoder {
  private bytes = new Uint8Array(256);
  length = 0;

  align(size: number): void {
    this.room((size - this.length % size) % size);
  }

  /** Texts, numbers of 32 bits, booleans, and what is made of them. */
  write(type: string, value: Value): this {
    const first = type[0]!;
    this.align(sizes[first]!);
    if (first === "y") this.bytes[this.room(1)] = value as number;
    else if (first === "s" || first === "o") this.text("u", value as string);
    else if (first === "g") this.text("y", value as string);
    else if (first === "b" || first === "u" || first === "i") this.number(this.room(4), Number(value));
    else if (first === "a") this.array(type.slice(1), value as readonly Value[]);
    else if (first === "(" || first === "{") {
      this.members(completeTypes(type.slice(1, -1)), value as readonly Value[]);
    } else if (first === "v") {
      const { signature, value: inner } = value as Variant;
      this.text("y", signature);
      this.write(signature, inner);
    } else throw malformed(type);
    return this;
  }

  private members(types: readonly string[], values: readonly Value[]): void {
    types.forEach((type, index) => this.write(type, values[index]!));
  }

  private array(type: string, values: readonly Value[]): void {
    const lengthAt = this.room(4);
    this.align(sizes[type[0]!]!);
    const start = this.length;
    for (const each of values) this.write(type, each);
    this.number(lengthAt, this.length - start);
  }

  private text(lengthType: "u" | "y", value: string): void {
    const text = utf8(value);
    this.write(lengthType, text.length);
    const at = this.room(text.length + 1);
    this.bytes.set(text, at);
  }

  number(at: number, value: number): this {
    new DataView(this.bytes.buffer).setUint32(at, value, true);
    return this;
  }

  /** Answers where it begins. */
  private room(count: number): number {
    const at = this.length;
    this.length += count;
    if (this.length > this.bytes.length) {
      const larger = new Uint8Array(this.length * 2);
      larger.set(this.bytes);
      this.bytes = larger;
    }
    return at;
  }

  done(): Uint8Array {
    return this.bytes.slice(0, this.length);
  }
}

export class Decoder {
  private readonly view: DataView;

  constructor(private readonly bytes: Uint8Array, private readonly isLittle: boolean, private at = 0) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  align(size: number): void {
    this.at = Math.ceil(this.at / size) * size;
  }

  read(type: string, depth = 0): Value {
    if (depth > DEEPEST) throw malformed(type);
    const first = type[0]!, size = sizes[first]!;
    this.align(size);
    if (first === "s" || first === "o") return this.text(this.number("u", 4) as number);
    if (first === "g") return this.text(this.number("y", 1) as number);
    if (first === "a") return this.array(type.slice(1), depth);
    if (first === "(" || first === "{") {
      return completeTypes(type.slice(1, -1)).map((each) => this.read(each, depth + 1));
    }
    if (first === "v") {
      const signature = this.read("g") as string;
      if (completeTypes(signature).length !== 1) throw malformed(signature);
      return { signature, value: this.read(signature, depth + 1) };
    }
    return this.number(first, size);
  }

  private array(type: string, depth: number): Value[] {
    const length = this.number("u", 4) as number, values: Value[] = [];
    this.align(sizes[type[0]!]!);
    for (const end = this.at + length; this.at < end;) values.push(this.read(type, depth + 1));
    return values;
  }

  private text(length: number): string {
    this.at += length + 1;
    return new TextDecoder().decode(this.bytes.subarray(this.at - length - 1, this.at - 1));
  }

  private number(type: string, size: number): Value {
    const { view, at, isLittle } = this;
    this.at += size;
    if (type === "y") return view.getUint8(at);
    if (type === "b") return view.getUint32(at, isLittle) !== 0;
    if (type === "n") return view.getInt16(at, isLittle);
    if (type === "q") return view.getUint16(at, isLittle);
    if (type === "i") return view.getInt32(at, isLittle);
    if (type === "u") return view.getUint32(at, isLittle);
    if (type === "d") return view.getFloat64(at, isLittle);
    const whole = type === "x" ? view.getBigInt64(at, isLittle) : view.getBigUint64(at, isLittle);
    return Number(whole);
  }
}

/** The value, whatever type it brings; undefined for none. */
export function bare(value: Value | undefined): Value | undefined {
  return isVariant(value) ? value.value : value;
}

function isVariant(value: Value | undefined): value is Variant {
  return typeof value === "object" && "signature" in value;
}
