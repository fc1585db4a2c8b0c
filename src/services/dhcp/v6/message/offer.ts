/**
 * What a server gives: the options of its message, each checked before anything believes it (RFC 8415 section 18.2.10).
 * Pure.
 */
import { compareAddresses, formatAddress } from "../../../../net/address.ts";
import { isDomainName, printableBytes } from "../../names.ts";
import { type OptionReader, optionReader, readAddressList } from "../../option-reader.ts";
import {
  all,
  decodeIa,
  decodeIaAddress,
  decodeStatus,
  first,
  type Ia,
  type IaAddress,
  isDuid,
  type Message6,
  option,
  type Options6,
  readOptions,
  secondsAt,
  status,
} from "./message.ts";

export interface Reply {
  /** Its DUID. */
  server: Uint8Array;
  /** 0 to 255; the client takes the server with the highest (RFC 8415 section 21.8). */
  preference: number;
  /** What the server says about the whole message or, when that is a success, about our IA. */
  status: { code: number; text: string };
  /** The first with a preferred lifetime. Undefined when the server gives no address. */
  binding?: Binding;
  /** Addresses that may be used no longer: the server gives them for 0 seconds. */
  withdrawn: Uint8Array[];
  nameServers: Uint8Array[];
  search: string[];
  timeServers: Uint8Array[];
  /** The longest pause between SOLICITs, when the server says it. */
  solMaxRt?: number;
  /** Options that were ignored, and why. */
  ignored: string[];
}

/** Times are seconds from the request; `Infinity` for ever. */
export interface Binding {
  /** 16 bytes. */
  address: Uint8Array;
  preferred: number;
  valid: number;
  /** T1 and T2. */
  renew: number;
  rebind: number;
}

/** The text says what is wrong with the whole message. */
export class UnusableReply extends Error {}

const MOST_SERVERS = 8, MOST_NAMES = 32;
/** RFC 8415 section 21.24. */
const LEAST_MAX_RT_S = 60, MOST_MAX_RT_S = 86400;
/** Shares of the preferred lifetime (RFC 8415 section 21.4). */
const RENEW_SHARE = 0.5, REBIND_SHARE = 0.8;
/** Suboption of option 56 with an address (RFC 5908 section 4.1). */
const TIME_SERVER = 1;

/**
 * Throws UnusableReply when the message does not say whose it is, or gives an address that may not be used as it says.
 * `current`: the address that the client has, which goes before others.
 */
export function readReply({ options }: Pick<Message6, "options">, iaid: Uint8Array, current?: Uint8Array): Reply {
  const ignored: string[] = [], read = optionReader((number) => first(options, number), ignored);
  const server = first(options, option.server);
  if (server === undefined || !isDuid(server)) {
    throw new UnusableReply("the message does not say whose it is (option 2)");
  }
  const ia = readIa(options, iaid), ofMessage = readStatus(options);
  const found = ofMessage.code === status.success && ia !== undefined ? readStatus(ia.options) : ofMessage;
  const addresses = found.code === status.success && ia !== undefined ? readAddresses(ia, ignored) : undefined;
  return {
    server,
    preference: read(option.preference, (bytes) => bytes.length === 1 ? bytes[0] : undefined) ?? 0,
    status: found,
    binding: ia && addresses && bind(ia, addresses.usable, current),
    withdrawn: addresses?.withdrawn ?? [],
    nameServers: readServers(read, ignored),
    search: read(option.search, readNames) ?? [],
    timeServers: read(option.timeServers, readTimeServers) ?? [],
    solMaxRt: read(option.longestSolicitPause, readMaxRt),
    ignored,
  };
}

function readIa(options: Options6, iaid: Uint8Array): Ia | undefined {
  for (const bytes of all(options, option.ia)) {
    const ia = decodeIa(bytes);
    if (ia === undefined) throw new UnusableReply("an IA is malformed (option 3)");
    if (compareAddresses(ia.iaid, iaid) !== 0) continue;
    if (ia.renew > ia.rebind && ia.rebind > 0) {
      throw new UnusableReply(`T1 of ${ia.renew} s is after T2 of ${ia.rebind} s`);
    }
    return ia;
  }
  return undefined;
}

/** The status is a success without the option (RFC 8415 section 21.13). */
function readStatus(options: Options6): Reply["status"] {
  const bytes = first(options, option.status);
  if (bytes === undefined) return { code: status.success, text: "" };
  const read = decodeStatus(bytes);
  if (read === undefined) throw new UnusableReply("a status is malformed (option 13)");
  return { code: read.code, text: printableBytes(read.text.subarray(0, 256)) };
}

function readAddresses({ options }: Ia, ignored: string[]): { usable: IaAddress[]; withdrawn: Uint8Array[] } {
  const usable: IaAddress[] = [], withdrawn: Uint8Array[] = [], problems: string[] = [];
  for (const bytes of all(options, option.iaAddress)) {
    const read = decodeIaAddress(bytes);
    if (read === undefined) throw new UnusableReply("an address is malformed (option 5)");
    const problem = problemOf(read);
    if (problem !== undefined) problems.push(problem);
    else if (read.valid === 0) withdrawn.push(read.address);
    else usable.push(read);
  }
  if (problems.length > 0 && usable.length + withdrawn.length === 0) throw new UnusableReply(problems[0]);
  ignored.push(...problems);
  return { usable, withdrawn };
}

function problemOf({ address, preferred, valid, options }: IaAddress): string | undefined {
  const text = formatAddress(address), { code } = readStatus(options);
  if (!isGlobal(address)) return `${text} is no address of a host`;
  if (preferred > valid) return `${text} is preferred for ${preferred} s but valid for ${valid} s`;
  return code === status.success ? undefined : `${text} has the status ${code}`;
}

/** Global unicast as far as it is handed out (2000::/3), or unique local (fc00::/7). */
export function isGlobal(address: Uint8Array): boolean {
  const top = address[0]!;
  return (top & 0xe0) === 0x20 || (top & 0xfe) === 0xfc;
}

/** One address is enough for a container: the one that it has, if that is still preferred, or the first that is. */
function bind(ia: Ia, usable: readonly IaAddress[], current: Uint8Array | undefined): Binding | undefined {
  const preferable = usable.filter(({ preferred }) => preferred > 0);
  const isCurrent = ({ address }: IaAddress) => current !== undefined && compareAddresses(address, current) === 0;
  const chosen = preferable.find(isCurrent) ?? preferable[0] ?? usable.find(isCurrent) ?? usable[0];
  if (chosen === undefined) return undefined;
  const { address, preferred, valid } = chosen;
  return { address, preferred, valid, ...renewalTimes(ia, preferred > 0 ? preferred : valid, valid) };
}

/** Times that would let the lease end before anything is asked are as good as none. */
function renewalTimes({ renew, rebind }: Ia, lifetime: number, valid: number): { renew: number; rebind: number } {
  const usual = { renew: lifetime * RENEW_SHARE, rebind: lifetime * REBIND_SHARE };
  if (renew === 0 && rebind === 0) return usual;
  const given = renew === 0
    ? { renew: Math.min(usual.renew, rebind), rebind }
    : { renew, rebind: rebind === 0 ? Math.max(usual.rebind, renew) : rebind };
  return given.rebind < valid || valid === Infinity ? given : usual;
}

/** A link-local one needs a zone, which results cannot say. */
function readServers(read: OptionReader, ignored: string[]): Uint8Array[] {
  const servers = read(option.nameServers, (bytes) => readAddressList(bytes, 16)) ?? [];
  for (const server of servers) {
    if (!isGlobal(server)) {
      ignored.push(`option ${option.nameServers} has ${formatAddress(server)}, no server's address`);
    }
  }
  return servers.filter(isGlobal).slice(0, MOST_SERVERS);
}

/** Names and multicast addresses of servers are left out: nothing here uses them. */
function readTimeServers(bytes: Uint8Array): Uint8Array[] | undefined {
  const suboptions = readOptions(bytes);
  const servers = suboptions && all(suboptions, TIME_SERVER);
  if (servers === undefined || servers.some((server) => server.length !== 16)) return undefined;
  return servers.filter(isGlobal).slice(0, MOST_SERVERS);
}

/**
 * Uncompressed (RFC 3646 section 4, RFC 8415 section 10). Undefined when one is no domain name: a pointer would be a label that
 * is too long, and of a cut name labels are left.
 */
function readNames(bytes: Uint8Array): string[] | undefined {
  const names: string[] = [];
  let labels: string[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + 1 + bytes[at]!;
    if (end > at + 1) labels.push(String.fromCharCode(...bytes.subarray(at + 1, end)));
    else if (!isDomainName(labels.join(".")) || names.push(labels.join(".")) > MOST_NAMES) return undefined;
    else labels = [];
    at = end;
  }
  return labels.length === 0 && names.length > 0 ? names : undefined;
}

function readMaxRt(bytes: Uint8Array): number | undefined {
  const seconds = bytes.length === 4 ? secondsAt(bytes, 0) : 0;
  return seconds >= LEAST_MAX_RT_S && seconds <= MOST_MAX_RT_S ? seconds : undefined;
}
