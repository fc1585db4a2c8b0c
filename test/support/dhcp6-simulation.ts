/** A DHCPv6 client in simulated time: a clock that only the test moves, and a server of a few lines. */
import { expect } from "bun:test";
import { parseAddress } from "../../src/net/address.ts";
import { LeaseClient6 } from "../../src/services/dhcp/v6/lease/client.ts";
import type { Action6, Lease6, Settings6 } from "../../src/services/dhcp/v6/lease/lease.ts";
import {
  ADVERTISE,
  decode,
  decodeIa,
  decodeIaAddress,
  encode,
  encodeIa,
  encodeIaAddress,
  first,
  type IaAddress,
  type Message6,
  option,
  type Options6,
  REPLY,
} from "../../src/services/dhcp/v6/message/message.ts";
import { SimulatedTime } from "./simulated-time.ts";

export const ip6 = (text: string) => parseAddress(text)!;
export const address = ip6("fd00:77::50"), another = ip6("fd00:77::51");
export const uint32 = (value: number) => new Uint8Array(new Uint32Array([value]).buffer).reverse();
export const duid = Uint8Array.fromHex("000400112233445566778899aabbccddeeff");
export const iaid = Uint8Array.fromHex("01020304");
export const server = Uint8Array.fromHex("00030001020000000001"), other = Uint8Array.fromHex("00030001020000000002");

const names = ["", "SOLICIT", "ADVERTISE", "REQUEST", "CONFIRM", "RENEW", "REBIND", "REPLY", "RELEASE", "DECLINE"];

/** For answers to a SOLICIT that make a lease at once. */
export const rapid: Said = { more: [[option.rapidCommit, new Uint8Array()]] };

/** What a server says; what is not said is usual. */
export interface Said {
  server?: Uint8Array | null;
  clientId?: Uint8Array | null;
  xid?: number;
  iaid?: Uint8Array;
  renew?: number;
  rebind?: number;
  /** No address: `[]`; no IA at all: null. */
  addresses?: readonly Partial<IaAddress>[] | null;
  /** The status of the message, and of the IA. */
  status?: number;
  iaStatus?: number;
  more?: Options6;
}

export function said(type: number, asked: Message6, say: Said = {}): Message6 {
  const status = (code: number | undefined): Options6 =>
    code === undefined ? [] : [[option.status, Uint8Array.of(0, code, ...new TextEncoder().encode("so\n"))]];
  const addresses = (say.addresses ?? [{}]).map((one) =>
    [
      option.iaAddress,
      encodeIaAddress({ address, preferred: 600, valid: 1000, options: [], ...one }),
    ] as const
  );
  const ia = encodeIa({
    iaid: say.iaid ?? iaid,
    renew: say.renew ?? 0,
    rebind: say.rebind ?? 0,
    options: [...addresses, ...status(say.iaStatus)],
  });
  return {
    type,
    xid: say.xid ?? asked.xid,
    options: [
      ...say.clientId === null ? [] : [[option.clientId, say.clientId ?? duid] as const],
      ...say.server === null ? [] : [[option.server, say.server ?? server] as const],
      ...say.addresses === null ? [] : [[option.ia, ia] as const],
      ...status(say.status),
      ...say.more ?? [],
    ],
  };
}

export interface Sent {
  at: number;
  kind: string;
  message: Message6;
}

/** The address that a client's message is about. */
export function addressIn({ message }: Sent): Uint8Array | undefined {
  const ia = first(message.options, option.ia), inside = ia && first(decodeIa(ia)!.options, option.iaAddress);
  return inside && decodeIaAddress(inside)!.address;
}

/** A client, its clock, and what it did. */
export class Simulation6 extends SimulatedTime<Action6, Sent> {
  readonly client: LeaseClient6;

  constructor(settings: Partial<Settings6> = {}, isAwaited = true) {
    super();
    this.client = new LeaseClient6({ duid, iaid }, { ...this.usual, ...settings }, isAwaited);
  }

  protected sentBy(action: Action6): Sent | undefined {
    if (action.do !== "multicast") return undefined;
    const message = decode(action.bytes)!;
    return { at: this.now, kind: names[message.type]!, message };
  }

  /** A server's answer to the last message. */
  answer(type: number, say: Said = {}): Sent[] {
    const bytes = encode(said(type, this.sent.at(-1)!.message, say));
    return this.take(this.client.receive(decode(bytes)!, this.now));
  }

  start(): Sent[] {
    return this.take(this.client.start(this.now));
  }

  bind(say: Said = {}): void {
    this.start();
    this.answer(ADVERTISE, say);
    this.answer(REPLY, say);
    expect(this.client.state).toBe("bound");
  }
}

export const kinds = (sent: readonly Sent[]) => sent.map(({ kind }) => kind);
/** Seconds from the simulation's beginning. */
export const times = (sent: readonly Sent[]) => sent.map(({ at }) => Math.round((at - 1000) * 100) / 100);
export const pauses = (sent: readonly Sent[]) => sent.slice(1).map(({ at }, index) => at - sent[index]!.at);
export const has = ({ message }: Sent, number: number) => first(message.options, number);
/** How many exchanges there are among the messages. */
export const exchanges = (sent: readonly Sent[]) => new Set(sent.map(({ message }) => message.xid)).size;

/** The lease of another client. */
export function leaseFor(say: Said = {}): Lease6 {
  const it = new Simulation6();
  it.bind(say);
  return it.client.lease!;
}
