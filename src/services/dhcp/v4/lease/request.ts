/** The messages that a client sends: which fields and options each kind has (RFC 2131 section 4.4.1, table 5). Pure. */
import { DECLINE, DISCOVER, encodeRequest, LONGEST_BYTES, option, RELEASE, REQUEST } from "../message/message.ts";

/** The same in every message of a lease. */
export interface Identity {
  mac: Uint8Array;
  /** Option 61; undefined: the server goes by the MAC address. */
  clientId?: Uint8Array;
  /** Option 55. */
  wanted: readonly number[];
  /** The options that the configuration adds: host name, classes. */
  provided: ReadonlyMap<number, Uint8Array>;
  /** Ask for answers that every host of the link receives. */
  broadcast: boolean;
}

/** One exchange: its messages have the number and the beginning in common. */
export interface Exchange {
  xid: number;
  secs: number;
}

type Values = [number: number, value: Uint8Array | undefined][];

/** `hint`: the address that the client would like to have again. */
export function discover(who: Identity, exchange: Exchange, hint?: Uint8Array): Uint8Array {
  return message(DISCOVER, who, exchange, [[option.requestedAddress, hint], ...optionsOf(who)]);
}

/** Asks for an address that a server has offered or, without `server`, for a remembered one. */
export function request(who: Identity, exchange: Exchange, address: Uint8Array, server?: Uint8Array): Uint8Array {
  const values: Values = [[option.requestedAddress, address], [option.server, server], ...optionsOf(who)];
  return message(REQUEST, who, exchange, values);
}

/** Renews: the address is in use, so it stands in the message's own field and nowhere else. */
export function renewal(who: Identity, exchange: Exchange, address: Uint8Array): Uint8Array {
  return message(REQUEST, { ...who, broadcast: false }, exchange, optionsOf(who), address);
}

export function decline(who: Identity, exchange: Exchange, address: Uint8Array, server: Uint8Array): Uint8Array {
  return message(DECLINE, who, exchange, [[option.requestedAddress, address], [option.server, server]]);
}

export function release(who: Identity, exchange: Exchange, address: Uint8Array, server: Uint8Array): Uint8Array {
  return message(RELEASE, { ...who, broadcast: false }, exchange, [[option.server, server]], address);
}

function optionsOf({ wanted, provided }: Identity): Values {
  return [
    [option.parameterList, wanted.length === 0 ? undefined : Uint8Array.from(wanted)],
    [option.longestMessage, uint16(LONGEST_BYTES + 28)],
    ...provided,
  ];
}

function message(type: number, who: Identity, exchange: Exchange, values: Values, clientAddress?: Uint8Array) {
  const options = new Map<number, Uint8Array>([[option.messageType, Uint8Array.of(type)]]);
  for (const [number, value] of values) if (value !== undefined) options.set(number, value);
  // Every message has it: the server finds the lease by it (RFC 2132 section 9.14).
  if (who.clientId !== undefined) options.set(option.clientId, who.clientId);
  return encodeRequest({ ...exchange, broadcast: who.broadcast, clientAddress, mac: who.mac, options });
}

function uint16(value: number): Uint8Array {
  return Uint8Array.of(value >> 8, value & 0xff);
}
