/** The messages that a client sends: which options each kind has (RFC 8415 section 18.2 and appendix B). Pure. */
import {
  CONFIRM,
  DECLINE,
  encode,
  encodeIa,
  encodeIaAddress,
  option,
  type Options6,
  REBIND,
  RELEASE,
  RENEW,
  REQUEST,
  SOLICIT,
} from "../message/message.ts";

/** The same in every message of a lease. */
export interface Identity6 {
  duid: Uint8Array;
  /** 4 bytes. */
  iaid: Uint8Array;
}

/** One exchange: its messages have the number in common. */
export interface Exchange6 {
  xid: number;
  /** Hundredths of a second since its first message. */
  elapsed: number;
}

/** An address and who gave it. */
export interface Held {
  address: Uint8Array;
  /** The server's DUID. */
  server: Uint8Array;
}

const wanted = [
  option.nameServers,
  option.search,
  option.refresh,
  option.timeServers,
  option.longestSolicitPause,
  option.longestInformPause,
];
const WANTED: Options6[number] = [
  option.wanted,
  Uint8Array.from(wanted.flatMap((number) => [number >> 8, number & 0xff])),
];

const NONE = new Uint8Array(), MOST_ELAPSED = 0xffff;

/** `hint`: the address that the client would like to have again. */
export function solicit(who: Identity6, exchange: Exchange6, hint?: Uint8Array): Uint8Array {
  return message(SOLICIT, who, exchange, [[option.rapidCommit, NONE], ia(who, hint), WANTED]);
}

export function request(who: Identity6, exchange: Exchange6, { address, server }: Held): Uint8Array {
  return message(REQUEST, who, exchange, [[option.server, server], ia(who, address), WANTED]);
}

/** Is the address right for this link? Any server may answer. */
export function confirm(who: Identity6, exchange: Exchange6, address: Uint8Array): Uint8Array {
  return message(CONFIRM, who, exchange, [ia(who, address)]);
}

export function renew(who: Identity6, exchange: Exchange6, { address, server }: Held): Uint8Array {
  return message(RENEW, who, exchange, [[option.server, server], ia(who, address), WANTED]);
}

/** The same as `renew`, but any server may answer. */
export function rebind(who: Identity6, exchange: Exchange6, address: Uint8Array): Uint8Array {
  return message(REBIND, who, exchange, [ia(who, address), WANTED]);
}

export function release(who: Identity6, exchange: Exchange6, { address, server }: Held): Uint8Array {
  return message(RELEASE, who, exchange, [[option.server, server], ia(who, address)]);
}

export function decline(who: Identity6, exchange: Exchange6, { address, server }: Held): Uint8Array {
  return message(DECLINE, who, exchange, [[option.server, server], ia(who, address)]);
}

/** The times are the server's to say (RFC 8415 section 18.2.1). */
function ia({ iaid }: Identity6, address?: Uint8Array): Options6[number] {
  const options: Options6 = address === undefined
    ? []
    : [[option.iaAddress, encodeIaAddress({ address, preferred: 0, valid: 0, options: [] })]];
  return [option.ia, encodeIa({ iaid, renew: 0, rebind: 0, options })];
}

function message(type: number, { duid }: Identity6, { xid, elapsed }: Exchange6, options: Options6): Uint8Array {
  const hundredths = Math.min(elapsed, MOST_ELAPSED);
  const elapsedTime = Uint8Array.of(hundredths >> 8, hundredths & 0xff);
  return encode({ type, xid, options: [[option.clientId, duid], [option.elapsed, elapsedTime], ...options] });
}
