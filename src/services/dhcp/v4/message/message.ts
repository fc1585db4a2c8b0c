/**
 * A DHCPv4 message as bytes: the fixed fields of BOOTP and the options (RFC 2131 section 2, RFC 2132, RFC 3396). Pure.
 * offer.ts reads what options mean.
 */

export const DISCOVER = 1, OFFER = 2, REQUEST = 3, DECLINE = 4, ACK = 5, NAK = 6, RELEASE = 7;
const BOOTREQUEST = 1, BOOTREPLY = 2, ETHERNET = 1;
/** More than any server sends; each costs time. */
const MOST_OPTIONS = 128;
const MAC_BYTES = 6, OPTIONS_AT = 240, MAGIC_COOKIE = 0x63825363, BROADCAST = 0x8000;
/** Relays and old servers drop what is shorter (RFC 1542 section 2.1). */
const SHORTEST_BYTES = 300;
/** A link with the usual MTU carries so much in one piece. */
export const LONGEST_BYTES = 1500 - 28;
/** The length of an option is one byte. */
export const LONGEST_OPTION = 255;

export const option = {
  pad: 0,
  subnetMask: 1,
  routers: 3,
  nameServers: 6,
  hostName: 12,
  domainName: 15,
  mtu: 26,
  broadcastAddress: 28,
  staticRoutes: 33,
  timeServers: 42,
  requestedAddress: 50,
  leaseTime: 51,
  overload: 52,
  messageType: 53,
  server: 54,
  parameterList: 55,
  text: 56,
  longestMessage: 57,
  renewalTime: 58,
  rebindingTime: 59,
  vendorClass: 60,
  clientId: 61,
  userClass: 77,
  relay: 82,
  searchList: 119,
  classlessRoutes: 121,
  end: 255,
} as const;

/** By number; a value that was split over several options is whole. */
export type Options = ReadonlyMap<number, Uint8Array>;

export interface Message {
  xid: number;
  /** Seconds since the client began. */
  secs: number;
  /** The client cannot receive a unicast before it has its address. */
  broadcast: boolean;
  /** The four of 4 bytes; unset they are 0.0.0.0. */
  clientAddress?: Uint8Array;
  yourAddress?: Uint8Array;
  relayAddress?: Uint8Array;
  /** The client's MAC address. */
  mac: Uint8Array;
  options: Options;
}

const XID_AT = 4,
  CIADDR_AT = 12,
  YIADDR_AT = 16,
  GIADDR_AT = 24,
  CHADDR_AT = 28,
  SNAME_AT = 44,
  FILE_AT = 108,
  COOKIE_AT = 236;

/** A client's message. Throws when its options are too long for one packet. */
export function encodeRequest(message: Message): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(LONGEST_BYTES), view = new DataView(bytes.buffer);
  bytes.set([BOOTREQUEST, ETHERNET, MAC_BYTES]);
  view.setUint32(XID_AT, message.xid);
  view.setUint16(8, Math.min(message.secs, 0xffff));
  view.setUint16(10, message.broadcast ? BROADCAST : 0);
  if (message.clientAddress) bytes.set(message.clientAddress, CIADDR_AT);
  if (message.yourAddress) bytes.set(message.yourAddress, YIADDR_AT);
  if (message.relayAddress) bytes.set(message.relayAddress, GIADDR_AT);
  bytes.set(message.mac, CHADDR_AT);
  view.setUint32(COOKIE_AT, MAGIC_COOKIE);
  const end = writeOptions(bytes, message.options);
  bytes[end] = option.end;
  return bytes.slice(0, Math.max(end + 1, SHORTEST_BYTES));
}

/** Writes options in ascending order, the message's type first: some servers expect it there. Returns where they end. */
function writeOptions(bytes: Uint8Array, options: Options): number {
  let at = OPTIONS_AT;
  const first = (number: number) => (number === option.messageType ? 0 : number);
  for (const [number, value] of [...options].sort(([one], [other]) => first(one) - first(other))) {
    // A value longer than 255 bytes takes several options (RFC 3396 section 5).
    for (let from = 0; from === 0 || from < value.length; from += LONGEST_OPTION) {
      const part = value.subarray(from, from + LONGEST_OPTION);
      if (at + 2 + part.length + 1 > bytes.length) throw new Error("the options are too long for one packet");
      bytes.set([number, part.length], at);
      bytes.set(part, at + 2);
      at += 2 + part.length;
    }
  }
  return at;
}

/** The bytes that every answer to this message has at these places. They are compared before its options are read. */
export function headOfReply(request: Uint8Array): [at: number, bytes: Uint8Array][] {
  return [
    [0, Uint8Array.of(BOOTREPLY, ETHERNET, MAC_BYTES)],
    [XID_AT, request.subarray(XID_AT, XID_AT + 4)],
    [CHADDR_AT, request.subarray(CHADDR_AT, CHADDR_AT + MAC_BYTES)],
    [COOKIE_AT, request.subarray(COOKIE_AT, OPTIONS_AT)],
  ];
}

/** Returns a server's message, or undefined when the bytes are no sound message. */
export function decodeReply(bytes: Uint8Array): Message | undefined {
  if (
    bytes.length < OPTIONS_AT || bytes.length > LONGEST_BYTES || bytes[0] !== BOOTREPLY || bytes[1] !== ETHERNET ||
    bytes[2] !== MAC_BYTES
  ) {
    return undefined;
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (view.getUint32(COOKIE_AT) !== MAGIC_COOKIE) return undefined;
  const options = readOptions(bytes);
  if (options === undefined) return undefined;
  return {
    xid: view.getUint32(XID_AT),
    secs: view.getUint16(8),
    broadcast: (view.getUint16(10) & BROADCAST) !== 0,
    clientAddress: bytes.slice(CIADDR_AT, CIADDR_AT + 4),
    yourAddress: bytes.slice(YIADDR_AT, YIADDR_AT + 4),
    relayAddress: bytes.slice(GIADDR_AT, GIADDR_AT + 4),
    mac: bytes.slice(CHADDR_AT, CHADDR_AT + MAC_BYTES),
    options,
  };
}

/** Option 52 says that options go on in `file`, in `sname`, or in both, in this order (RFC 2132 section 9.3). */
const IN_FILE = 1, IN_SNAME = 2;

function readOptions(bytes: Uint8Array): Options | undefined {
  const found = new Map<number, Uint8Array>();
  if (!readField(bytes.subarray(OPTIONS_AT), found)) return undefined;
  const overload = found.get(option.overload)?.[0] ?? 0;
  if (overload & IN_FILE && !readField(bytes.subarray(FILE_AT, COOKIE_AT), found)) return undefined;
  if (overload & IN_SNAME && !readField(bytes.subarray(SNAME_AT, FILE_AT), found)) return undefined;
  return found;
}

/** False when an option is longer than what there is, or when there are too many. Bytes without an end are taken as they are. */
function readField(field: Uint8Array, found: Map<number, Uint8Array>): boolean {
  for (let at = 0, count = 0; at < field.length;) {
    const number = field[at]!;
    if (number === option.end) return true;
    if (number === option.pad) {
      at++;
      continue;
    }
    if (at + 1 >= field.length || ++count > MOST_OPTIONS) return false;
    const length = field[at + 1]!;
    if (at + 2 + length > field.length) return false;
    const value = field.slice(at + 2, at + 2 + length), before = found.get(number);
    found.set(number, before === undefined ? value : joined(before, value));
    at += 2 + length;
  }
  return true;
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
