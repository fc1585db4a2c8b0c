/** Bytes of which some bits are unknown, and what can be said of them for certain. */

export type Certainty = "yes" | "no" | "maybe";

export interface KnownBytes {
  /** Unknown bits are 0. */
  readonly value: Uint8Array;
  /** A bit is 1 where the value's is known. */
  readonly mask: Uint8Array;
}

export function known(value: Uint8Array): KnownBytes {
  return { value, mask: new Uint8Array(value.length).fill(0xff) };
}

export function unknown(length: number): KnownBytes {
  return { value: new Uint8Array(length), mask: new Uint8Array(length) };
}

/** A number of four bytes as the kernel has it in a register. */
export function knownNumber(number: number): KnownBytes {
  const value = new Uint8Array(4);
  new DataView(value.buffer).setUint32(0, number, true);
  return known(value);
}

/** With unknown bytes behind the end. */
export function slice({ value, mask }: KnownBytes, from: number, length: number): KnownBytes {
  const end = from + length;
  if (end <= value.length) return { value: value.slice(from, end), mask: mask.slice(from, end) };
  const part = unknown(length);
  part.value.set(value.subarray(from));
  part.mask.set(mask.subarray(from));
  return part;
}

export function withBytes({ value, mask }: KnownBytes, at: number, bytes: KnownBytes): KnownBytes {
  const changed = { value: value.slice(), mask: mask.slice() };
  changed.value.set(bytes.value, at);
  changed.mask.set(bytes.mask, at);
  return changed;
}

export function isKnown({ mask }: KnownBytes): boolean {
  return mask.every((byte) => byte === 0xff);
}

const texts = new WeakMap<KnownBytes, string>();

/** Kept, so only of bytes that nobody writes to. */
export function textOf(bytes: KnownBytes): string {
  let text = texts.get(bytes);
  if (text === undefined) texts.set(bytes, text = `${bytes.value.toHex()}/${bytes.mask.toHex()}`);
  return text;
}

/** Bits outside of `mask` become known zeros, and those of `xor` change. */
export function withMask({ value, mask: knownBits }: KnownBytes, mask: Uint8Array, xor: Uint8Array): KnownBytes {
  const result = unknown(mask.length);
  for (let at = 0; at < mask.length; at++) {
    result.mask[at] = (knownBits[at] ?? 0) | ~mask[at]!;
    result.value[at] = (((value[at] ?? 0) & mask[at]!) ^ xor[at]!) & result.mask[at]!;
  }
  return result;
}

export function xored(left: KnownBytes, right: KnownBytes): KnownBytes {
  const mask = left.mask.map((byte, at) => byte & right.mask[at]!);
  return { value: left.value.map((byte, at) => (byte ^ right.value[at]!) & mask[at]!), mask };
}

/** Whether the bytes at `from` are the others. */
export function isEqual({ value, mask }: KnownBytes, other: Uint8Array, from = 0): Certainty {
  let answer: Certainty = "yes";
  for (let at = 0; at < other.length; at++) {
    const knownBits = mask[from + at] ?? 0;
    if (((value[from + at]! ^ other[at]!) & knownBits) !== 0) return "no";
    if (knownBits !== 0xff) answer = "maybe";
  }
  return answer;
}

/** Whether nothing that is known of both differs. */
export function mayBeSame(one: KnownBytes, other: KnownBytes): boolean {
  return one.value.every((byte, at) => ((byte ^ other.value[at]!) & one.mask[at]! & other.mask[at]!) === 0);
}

/** Whether the bytes are at least the others, as memcmp(3) orders them. */
export function isAtLeast(bytes: KnownBytes, other: Uint8Array): Certainty {
  if (compare(lowest(bytes), other) >= 0) return "yes";
  return compare(highest(bytes), other) < 0 ? "no" : "maybe";
}

/** Whether the bytes are at most the others. */
export function isAtMost(bytes: KnownBytes, other: Uint8Array): Certainty {
  if (compare(highest(bytes), other) <= 0) return "yes";
  return compare(lowest(bytes), other) > 0 ? "no" : "maybe";
}

export function compare(left: Uint8Array, right: Uint8Array): number {
  for (let at = 0; at < right.length; at++) {
    const difference = left[at]! - right[at]!;
    if (difference !== 0) return difference;
  }
  return 0;
}

export function lowest({ value }: KnownBytes): Uint8Array {
  return value;
}

export function highest({ value, mask }: KnownBytes): Uint8Array {
  return value.map((byte, at) => byte | (~mask[at]! & 0xff));
}

export function not(answer: Certainty): Certainty {
  return answer === "yes" ? "no" : answer === "no" ? "yes" : "maybe";
}

export function both(left: Certainty, right: Certainty): Certainty {
  if (left === "no" || right === "no") return "no";
  return left === "yes" && right === "yes" ? "yes" : "maybe";
}
