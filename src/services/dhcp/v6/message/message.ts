/**
 * A DHCPv6 message between client and server as bytes, with the options that have options in them (RFC 8415 sections 8
 * and 21). Pure. What options mean is read in offer.ts.
 */

export const SOLICIT = 1, ADVERTISE = 2, REQUEST = 3, CONFIRM = 4, RENEW = 5, REBIND = 6, REPLY = 7, RELEASE = 8;
export const DECLINE = 9, RECONFIGURE = 10, INFORMATION_REQUEST = 11;
/** Within a message, or within one option of it: more than any server sends, and each costs time. */
const MOST_OPTIONS = 128;
const HEADER_BYTES = 4, OPTION_HEADER_BYTES = 4, IA_BYTES = 12, IA_ADDRESS_BYTES = 24, STATUS_BYTES = 2;
/** A link with the usual MTU carries so much in one piece. */
export const LONGEST_BYTES = 1500;
/** A type and up to 128 bytes (RFC 8415 section 11.1). */
const SHORTEST_DUID = 3, LONGEST_DUID = 130;
const FOREVER = 0xffffffff;

export const option = {
  clientId: 1,
  server: 2,
  ia: 3,
  iaAddress: 5,
  wanted: 6,
  preference: 7,
  elapsed: 8,
  status: 13,
  rapidCommit: 14,
  nameServers: 23,
  search: 24,
  refresh: 32,
  timeServers: 56,
  longestSolicitPause: 82,
  longestInformPause: 83,
} as const;

/** RFC 8415 section 21.13. */
export const status = {
  success: 0,
  unspecified: 1,
  noAddresses: 2,
  noBinding: 3,
  notOnLink: 4,
  useMulticast: 5,
} as const;

/** As RFC 8415 writes it. */
export function statusName(code: number): string {
  const names: Record<number, string> = {
    [status.unspecified]: "UnspecFail",
    [status.noAddresses]: "NoAddrsAvail",
    [status.noBinding]: "NoBinding",
    [status.notOnLink]: "NotOnLink",
    [status.useMulticast]: "UseMulticast",
  };
  return names[code] ?? `status ${code}`;
}

/** Options in the order of the message. Repeated ones are never joined (RFC 8415 section 21.1). */
export type Options6 = readonly (readonly [number: number, value: Uint8Array])[];

export interface Message6 {
  type: number;
  /** 24 bits. */
  xid: number;
  options: Options6;
}

/** Option 3: addresses for one interface of the client. */
export interface Ia {
  /** 4 bytes. */
  iaid: Uint8Array;
  /** T1 and T2, in seconds; 0 leaves them to the client. */
  renew: number;
  rebind: number;
  options: Options6;
}

/** Option 5, within option 3. */
export interface IaAddress {
  /** 16 bytes. */
  address: Uint8Array;
  /** In seconds. */
  preferred: number;
  valid: number;
  options: Options6;
}

export function first(options: Options6, number: number): Uint8Array | undefined {
  return options.find(([one]) => one === number)?.[1];
}

export function all(options: Options6, number: number): Uint8Array[] {
  return options.filter(([one]) => one === number).map(([, value]) => value);
}

export function isDuid(bytes: Uint8Array): boolean {
  return bytes.length >= SHORTEST_DUID && bytes.length <= LONGEST_DUID;
}

/** Throws when the options are too long for one packet. */
export function encode({ type, xid, options }: Message6): Uint8Array<ArrayBuffer> {
  const bytes = withOptions(HEADER_BYTES, options);
  if (bytes.length > LONGEST_BYTES) throw new Error("the options are too long for one packet");
  new DataView(bytes.buffer).setUint32(0, xid);
  bytes[0] = type;
  return bytes;
}

/** Every answer to this message begins with one of these. */
export function headsOfReply(request: Uint8Array): Uint8Array[] {
  return [ADVERTISE, REPLY].map((type) => Uint8Array.of(type, ...request.subarray(1, HEADER_BYTES)));
}

/** Undefined when the bytes are no message between client and server, or not a sound one. */
export function decode(bytes: Uint8Array): Message6 | undefined {
  const type = bytes[0];
  if (type === undefined || type < SOLICIT || type > INFORMATION_REQUEST) return undefined;
  if (bytes.length < HEADER_BYTES || bytes.length > LONGEST_BYTES) return undefined;
  const options = readOptions(bytes.subarray(HEADER_BYTES));
  return options && { type, xid: viewOf(bytes).getUint32(0) & 0xffffff, options };
}

export function encodeIa({ iaid, renew, rebind, options }: Ia): Uint8Array<ArrayBuffer> {
  const bytes = withOptions(IA_BYTES, options), view = viewOf(bytes);
  bytes.set(iaid);
  view.setUint32(4, Math.min(renew, FOREVER));
  view.setUint32(8, Math.min(rebind, FOREVER));
  return bytes;
}

export function decodeIa(bytes: Uint8Array): Ia | undefined {
  if (bytes.length < IA_BYTES) return undefined;
  const options = readOptions(bytes.subarray(IA_BYTES));
  return options &&
    { iaid: bytes.slice(0, 4), renew: secondsAt(bytes, 4), rebind: secondsAt(bytes, 8), options };
}

export function encodeIaAddress({ address, preferred, valid, options }: IaAddress): Uint8Array<ArrayBuffer> {
  const bytes = withOptions(IA_ADDRESS_BYTES, options), view = viewOf(bytes);
  bytes.set(address);
  view.setUint32(16, Math.min(preferred, FOREVER));
  view.setUint32(20, Math.min(valid, FOREVER));
  return bytes;
}

export function decodeIaAddress(bytes: Uint8Array): IaAddress | undefined {
  if (bytes.length < IA_ADDRESS_BYTES) return undefined;
  const options = readOptions(bytes.subarray(IA_ADDRESS_BYTES));
  return options &&
    { address: bytes.slice(0, 16), preferred: secondsAt(bytes, 16), valid: secondsAt(bytes, 20), options };
}

export function decodeStatus(bytes: Uint8Array): { code: number; text: Uint8Array } | undefined {
  if (bytes.length < STATUS_BYTES) return undefined;
  return { code: viewOf(bytes).getUint16(0), text: bytes.slice(STATUS_BYTES) };
}

/** All ones are for ever (RFC 8415 section 7.7). */
export function secondsAt(bytes: Uint8Array, at: number): number {
  const seconds = viewOf(bytes).getUint32(at);
  return seconds === FOREVER ? Infinity : seconds;
}

/** Reads a list of options or suboptions. Returns undefined when one is longer than the rest, or when they are many. */
export function readOptions(field: Uint8Array): Options6 | undefined {
  const found: [number, Uint8Array][] = [], view = viewOf(field);
  for (let at = 0; at < field.length;) {
    const from = at + OPTION_HEADER_BYTES;
    if (from > field.length || found.length === MOST_OPTIONS) return undefined;
    const end = from + view.getUint16(at + 2);
    if (end > field.length) return undefined;
    found.push([view.getUint16(at), field.slice(from, end)]);
    at = end;
  }
  return found;
}

/** The options behind room for what comes before them. */
function withOptions(room: number, options: Options6): Uint8Array<ArrayBuffer> {
  const length = options.reduce((sum, [, value]) => sum + OPTION_HEADER_BYTES + value.length, room);
  const bytes = new Uint8Array(length), view = viewOf(bytes);
  let at = room;
  for (const [number, value] of options) {
    view.setUint16(at, number);
    view.setUint16(at + 2, value.length);
    bytes.set(value, at + OPTION_HEADER_BYTES);
    at += OPTION_HEADER_BYTES + value.length;
  }
  return bytes;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}
