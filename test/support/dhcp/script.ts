/** What a scripted server is to do, and the bytes of its answers: right ones by default, and any wrong ones. Pure. */
import { ACK, type Message, NAK, OFFER, option } from "../../../src/services/dhcp/v4/message/message.ts";
import { encodeReply } from "./other-side.ts";
import { formatAddress, offsetAddress, parseAddress } from "../../../src/net/address.ts";
import { parseMac } from "../../../src/net/mac.ts";
import { kindOf } from "./message-name.ts";
import { value } from "./offer.ts";

/** REQUEST takes an offer, REBOOT asks for a remembered address, RENEW comes from a client that uses its address. */
export type Asked = "DISCOVER" | "REQUEST" | "REBOOT" | "RENEW" | "DECLINE" | "RELEASE" | "INFORM";

/** Options by number, in hex; null leaves one out that is usually there. */
type Options = Record<number, string | null>;

/** What differs from the usual answer. */
export interface Rule {
  silent?: boolean;
  /** The text of a message; an empty one is left out. */
  nak?: string;
  delayMs?: number;
  /** Other answers to the same message, sent before this one. */
  before?: readonly Rule[];
  /** How many times the answer is sent; 1 unless given. */
  copies?: number;
  address?: string;
  /** Added to the xid, and another MAC than the client's: an answer to somebody else. */
  addToXid?: number;
  mac?: string;
  /** In place of the usual ones. */
  options?: Options;
  /** Bytes in hex after the other options, as they are: an option twice, or one that is too long. */
  extra?: string;
  /** The fields for names, in hex, for options that overload them. */
  sname?: string;
  file?: string;
  /** "unicast" sends to the address and MAC that the client is to have. Otherwise as servers do to clients without IP. */
  to?: "broadcast" | "unicast";
  /** The whole message in hex, in place of all of that. */
  bytes?: string;
}

export interface Script {
  /** The address of the first client; the next new ones get those after it. A client is known by its id, or else its MAC. */
  address: string;
  /** Option 54; the site's address unless given. */
  server?: string;
  leaseSeconds?: number;
  /** In all answers but NAKs. Usual are 1, 3 and 51. */
  options?: Options;
  /** Rules by what is asked. In a list, the first rule is for the first such message since the script was told, and so on; the
   * last is also for all that follow. */
  rules?: Partial<Record<Asked | "any", Rule | readonly Rule[]>>;
  /** For clients that say these host names, in place of the rules. */
  hosts?: Readonly<Record<string, Rule>>;
}

export interface Reply {
  bytes: Uint8Array;
  delayMs: number;
  copies: number;
  to: { address: string; port: number; mac?: Uint8Array };
}

export function askedBy(message: Message): Asked {
  const kind = kindOf(message);
  if (kind !== "REQUEST") return kind as Asked;
  if (message.clientAddress?.some(Boolean)) return "RENEW";
  return message.options.has(option.server) ? "REQUEST" : "REBOOT";
}

/** A server's memory: who has which address, and how often a rule was used. It is another one for each script. */
export class Clerk {
  readonly #script: Script;
  readonly #server: string;
  readonly #clients = new Map<string, number>();
  readonly #counts = new Map<string, number>();

  constructor(script: Script, siteAddress: string) {
    this.#script = script;
    this.#server = script.server ?? siteAddress;
  }

  answers(message: Message): Reply[] {
    const asked = askedBy(message), rule = this.#ruleForHost(message) ?? this.#ruleFor(asked);
    if (rule.silent || asked === "DECLINE" || asked === "RELEASE") return [];
    return [...rule.before ?? [], rule].map((one) => this.#answer(message, asked, one));
  }

  #answer(message: Message, asked: Asked, rule: Rule): Reply {
    const address = parseAddress(rule.address ?? this.#addressOf(message))!;
    const bytes = rule.bytes === undefined
      ? this.#encode(message, asked, rule, address)
      : Uint8Array.fromHex(rule.bytes);
    return { bytes, delayMs: rule.delayMs ?? 0, copies: rule.copies ?? 1, to: this.#goal(message, rule, address) };
  }

  #ruleForHost(message: Message): Rule | undefined {
    const name = message.options.get(option.hostName);
    return name && this.#script.hosts?.[new TextDecoder().decode(name)];
  }

  #ruleFor(asked: Asked): Rule {
    const { rules = {} } = this.#script, name = rules[asked] === undefined ? "any" : asked;
    const given = rules[name] ?? {}, list = Array.isArray(given) ? given as readonly Rule[] : [given as Rule];
    const count = this.#counts.get(name) ?? 0;
    this.#counts.set(name, count + 1);
    return list[Math.min(count, list.length - 1)] ?? {};
  }

  #addressOf(message: Message): string {
    const key = (message.options.get(option.clientId) ?? message.mac).toHex();
    const number = this.#clients.getOrInsertComputed(key, () => this.#clients.size);
    return formatAddress(offsetAddress(parseAddress(this.#script.address)!, BigInt(number))!);
  }

  #encode(message: Message, asked: Asked, rule: Rule, address: Uint8Array): Uint8Array {
    const isNak = rule.nak !== undefined, isInform = asked === "INFORM";
    const type = isNak ? NAK : asked === "DISCOVER" ? OFFER : ACK;
    const usual: Options = {
      [option.messageType]: value.u8(type),
      [option.server]: value.addresses(this.#server),
      [option.text]: rule.nak ? value.text(rule.nak) : null,
    };
    const terms: Options = isNak ? {} : {
      [option.subnetMask]: value.addresses("255.255.255.0"),
      [option.routers]: value.addresses(this.#server),
      [option.leaseTime]: isInform ? null : value.u32(this.#script.leaseSeconds ?? 20),
      ...this.#script.options,
    };
    const options = Object.entries({ ...usual, ...terms, ...rule.options }).filter(([, hex]) => hex !== null);
    const bytes = encodeReply({
      xid: (message.xid + (rule.addToXid ?? 0)) >>> 0,
      secs: 0,
      broadcast: message.broadcast,
      clientAddress: isNak ? undefined : message.clientAddress,
      yourAddress: isNak || isInform ? undefined : address,
      relayAddress: message.relayAddress,
      mac: rule.mac === undefined ? message.mac : parseMac(rule.mac)!,
      options: new Map(options.map(([code, hex]) => [Number(code), Uint8Array.fromHex(hex!)])),
    });
    return withFields(bytes, rule);
  }

  /** To a relay; to who has an address; else to everybody, as a client without an address may not hear a unicast. */
  #goal(message: Message, rule: Rule, address: Uint8Array): Reply["to"] {
    if (rule.to === "unicast") return { address: formatAddress(address), port: 68, mac: message.mac };
    if (message.relayAddress!.some(Boolean)) return { address: formatAddress(message.relayAddress!), port: 67 };
    const isKnown = message.clientAddress!.some(Boolean) && rule.nak === undefined && rule.to !== "broadcast";
    return { address: isKnown ? formatAddress(message.clientAddress!) : "255.255.255.255", port: 68 };
  }
}

const SNAME_AT = 44, FILE_AT = 108, OPTIONS_AT = 240;

function withFields(bytes: Uint8Array, { extra, sname, file }: Rule): Uint8Array {
  if (sname !== undefined) bytes.set(Uint8Array.fromHex(sname), SNAME_AT);
  if (file !== undefined) bytes.set(Uint8Array.fromHex(file), FILE_AT);
  if (extra === undefined) return bytes;
  let end = OPTIONS_AT;
  while (bytes[end] !== option.end) end += 2 + bytes[end + 1]!;
  return Buffer.concat([bytes.subarray(0, end), Uint8Array.fromHex(extra), bytes.subarray(end)]);
}
