/**
 * IP addresses and prefixes as text and bytes. Pure. Accepts and prints the texts of Go's net package, because results
 * and lease files must equal the reference's.
 */

export interface Prefix {
  /** 4 or 16 bytes, with host bits. */
  bytes: Uint8Array;
  bits: number;
}

/** 4 or 16 bytes; undefined when the text is not an address. An IPv4-mapped address has 4 bytes. */
export function parseAddress(text: string): Uint8Array | undefined {
  return text.includes(":") ? parseV6(text) : parseV4(text);
}

function parseV4(text: string): Uint8Array | undefined {
  const parts = text.split(".");
  if (parts.length !== 4) return undefined;
  const bytes = new Uint8Array(4);
  for (let index = 0; index < 4; index++) {
    const part = parts[index]!;
    const value = parseDecimal(part);
    // Like Go, reject leading zeros, which some programs read as octal.
    if (value === undefined || value > 255 || (part.length > 1 && part[0] === "0")) return undefined;
    bytes[index] = value;
  }
  return bytes;
}

function parseV6(text: string): Uint8Array | undefined {
  let head = text;
  let tail: Uint8Array | undefined;
  const lastColon = text.lastIndexOf(":");
  if (text.includes(".")) {
    tail = parseV4(text.slice(lastColon + 1));
    if (tail === undefined) return undefined;
    head = text.slice(0, lastColon + 1) + "0:0";
  }
  const halves = head.split("::");
  if (halves.length > 2) return undefined;
  const before = halves[0] === "" ? [] : halves[0]!.split(":");
  const after = halves.length < 2 || halves[1] === "" ? [] : halves[1]!.split(":");
  const given = before.length + after.length;
  if (halves.length === 2 ? given > 7 : given !== 8) return undefined;
  const bytes = new Uint8Array(16);
  for (let index = 0; index < given; index++) {
    const value = parseGroup(index < before.length ? before[index]! : after[index - before.length]!);
    if (value === undefined) return undefined;
    const at = index < before.length ? index : 8 - given + index;
    bytes[at * 2] = value >> 8;
    bytes[at * 2 + 1] = value & 0xff;
  }
  if (tail !== undefined) bytes.set(tail, 12);
  return isV4Mapped(bytes) ? bytes.slice(12) : bytes;
}

/** Digits only. Not a regular expression: compiling one takes longer than all of this file. */
function parseDecimal(text: string): number | undefined {
  let value = 0;
  for (let index = 0; index < text.length; index++) {
    const digit = text.charCodeAt(index) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  return text === "" ? undefined : value;
}

/** One to four hexadecimal digits. */
function parseGroup(text: string): number | undefined {
  if (text === "" || text.length > 4) return undefined;
  let value = 0;
  for (let index = 0; index < text.length; index++) {
    const digit = hexDigit(text.charCodeAt(index));
    if (digit < 0) return undefined;
    value = value * 16 + digit;
  }
  return value;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  if (code >= 0x61 && code <= 0x66) return code - 0x57;
  if (code >= 0x41 && code <= 0x46) return code - 0x37;
  return -1;
}

function isV4Mapped(bytes: Uint8Array): boolean {
  for (let index = 0; index < 10; index++) if (bytes[index] !== 0) return false;
  return bytes[10] === 0xff && bytes[11] === 0xff;
}

/** Dotted decimal for 4 bytes; RFC 5952 for 16. */
export function formatAddress(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join(".");
  let zerosAt = -1, zerosLength = 1;
  for (let start = 0; start < 8; start++) {
    let end = start;
    while (end < 8 && groupAt(bytes, end) === 0) end++;
    if (end - start > zerosLength) [zerosAt, zerosLength] = [start, end - start];
  }
  if (zerosAt < 0) return formatGroups(bytes, 0, 8);
  return `${formatGroups(bytes, 0, zerosAt)}::${formatGroups(bytes, zerosAt + zerosLength, 8)}`;
}

function groupAt(bytes: Uint8Array, index: number): number {
  return (bytes[index * 2]! << 8) | bytes[index * 2 + 1]!;
}

function formatGroups(bytes: Uint8Array, from: number, to: number): string {
  let text = "";
  for (let index = from; index < to; index++) text += (index > from ? ":" : "") + groupAt(bytes, index).toString(16);
  return text;
}

/** `10.88.0.5/16` with its host bits, or undefined. */
export function parsePrefix(text: string): Prefix | undefined {
  const slash = text.indexOf("/");
  if (slash < 0) return undefined;
  const address = text.slice(0, slash);
  const bytes = parseAddress(address);
  const written = parseDecimal(text.slice(slash + 1));
  if (bytes === undefined || written === undefined) return undefined;
  // ::ffff:10.0.0.1/120 is 10.0.0.1/24.
  const mapped = address.includes(":") && bytes.length === 4;
  if (written > (mapped ? 128 : bytes.length * 8)) return undefined;
  return { bytes, bits: !mapped ? written : written > 96 ? written - 96 : 0 };
}

export function formatPrefix(prefix: Prefix): string {
  return `${formatAddress(prefix.bytes)}/${prefix.bits}`;
}

/** The text that Go prints for this address; undefined when it is not an address. */
export function canonicalAddress(text: string): string | undefined {
  const bytes = parseAddress(text);
  return bytes && formatAddress(bytes);
}

/** Like `canonicalAddress`, in CIDR notation. */
export function canonicalPrefix(text: string): string | undefined {
  const prefix = parsePrefix(text);
  return prefix && formatPrefix(prefix);
}

/** Whether it is an IPv4 prefix in IPv6 notation: ::ffff:10.0.0.0/120. */
export function isMappedPrefix(text: string): boolean {
  return text.includes(":") && parsePrefix(text)?.bytes.length === 4;
}

/** The address with its host bits cleared. */
export function networkOf(prefix: Prefix): Uint8Array {
  const bytes = new Uint8Array(prefix.bytes);
  for (let index = 0; index < bytes.length; index++) bytes[index]! &= maskByte(prefix.bits, index);
  return bytes;
}

/** The address with its host bits set: for IPv4 the broadcast address. */
export function lastOf(prefix: Prefix): Uint8Array {
  const bytes = new Uint8Array(prefix.bytes);
  for (let index = 0; index < bytes.length; index++) bytes[index]! |= ~maskByte(prefix.bits, index) & 0xff;
  return bytes;
}

function maskByte(bits: number, index: number): number {
  const left = bits - index * 8;
  return left >= 8 ? 0xff : left <= 0 ? 0 : (0xff << (8 - left)) & 0xff;
}

export function contains(prefix: Prefix, address: Uint8Array): boolean {
  if (prefix.bytes.length !== address.length) return false;
  for (let index = 0; index < address.length; index++) {
    if (((address[index]! ^ prefix.bytes[index]!) & maskByte(prefix.bits, index)) !== 0) return false;
  }
  return true;
}

/** Whether two prefixes share addresses. */
export function overlap(one: Prefix, other: Prefix): boolean {
  return contains(one, other.bytes) || contains(other, one.bytes);
}

/** The kernel rejects such a prefix in IPv4 routes. */
export function hasHostBits(prefix: Prefix): boolean {
  return !isSameBytes(networkOf(prefix), prefix.bytes);
}

export function isSameBytes(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

/** Numeric order; shorter addresses come first. */
export function compareAddresses(a: Uint8Array, b: Uint8Array): number {
  if (a.length !== b.length) return a.length - b.length;
  for (let index = 0; index < a.length; index++) {
    if (a[index] !== b[index]) return a[index]! - b[index]!;
  }
  return 0;
}

/** The address plus `distance`; undefined when that leaves the address space. */
export function offsetAddress(address: Uint8Array, distance: bigint): Uint8Array | undefined {
  const value = toBigInt(address) + distance;
  if (value < 0n || value >= 1n << BigInt(address.length * 8)) return undefined;
  return fromBigInt(value, address.length);
}

/** The next address, without the cost of BigInt; wraps around at the end of the address space. */
export function nextAddress(address: Uint8Array): Uint8Array {
  const next = address.slice();
  for (let index = next.length - 1; index >= 0; index--) {
    next[index]!++;
    if (next[index] !== 0) break;
  }
  return next;
}

export function toBigInt(address: Uint8Array): bigint {
  let value = 0n;
  for (const byte of address) value = (value << 8n) | BigInt(byte);
  return value;
}

export function fromBigInt(value: bigint, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let index = length - 1; index >= 0; index--, value >>= 8n) bytes[index] = Number(value & 0xffn);
  return bytes;
}

/** The fewest subnets that have exactly the addresses from `first` to `last`. */
export function subnetsBetween(first: Uint8Array, last: Uint8Array): Prefix[] {
  const found: Prefix[] = [], end = toBigInt(last), width = first.length * 8;
  for (let at = toBigInt(first); at <= end;) {
    let free = 0;
    while (free < width && at % (1n << BigInt(free + 1)) === 0n && at + (1n << BigInt(free + 1)) - 1n <= end) free++;
    found.push({ bytes: fromBigInt(at, first.length), bits: width - free });
    at += 1n << BigInt(free);
  }
  return found;
}

export function isV6(text: string): boolean {
  return parseAddress(text.split("/")[0]!)?.length === 16;
}

/** fe80::/10. */
export function isLinkLocal(address: Uint8Array): boolean {
  return address.length === 16 && address[0] === 0xfe && (address[1]! & 0xc0) === 0x80;
}
