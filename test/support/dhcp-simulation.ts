/** A DHCP client in simulated time: a clock that only the test moves, and a server of a few lines. */
import { expect } from "bun:test";
import { type Action, LeaseClient, type Settings } from "../../src/services/dhcp/v4/lease/client.ts";
import type { Identity } from "../../src/services/dhcp/v4/lease/request.ts";
import { ACK, decodeReply, type Message, NAK, OFFER, option } from "../../src/services/dhcp/v4/message/message.ts";
import { decodeRequest, encodeReply } from "./dhcp/other-side.ts";
import { SimulatedTime } from "./simulated-time.ts";

export const ip = (text: string) => Uint8Array.from(text.split(".").map(Number));
export const seconds = (value: number) => new Uint8Array(new Uint32Array([value]).buffer).reverse();
const mac = Uint8Array.fromHex("020000000007");
export const clientId = new TextEncoder().encode("\0c1/net/eth0");

const identity: Identity = { mac, clientId, wanted: [1, 121, 3], provided: new Map(), broadcast: false };
const names = ["", "DISCOVER", "OFFER", "REQUEST", "DECLINE", "ACK", "NAK", "RELEASE"];

export interface Sent {
  at: number;
  how: "broadcast" | "unicast";
  kind: string;
  message: Message;
}

/** A client, its clock, and what it did. */
export class Simulation extends SimulatedTime<Action, Sent> {
  readonly client: LeaseClient;

  constructor(settings: Partial<Settings> = {}, isAwaited = true, who: Partial<Identity> = {}) {
    super();
    this.client = new LeaseClient({ ...identity, ...who }, { ...this.usual, ...settings }, isAwaited);
  }

  protected sentBy(action: Action): Sent | undefined {
    if (action.do !== "broadcast" && action.do !== "unicast") return undefined;
    const message = decodeRequest(action.bytes)!;
    return { at: this.now, how: action.do, kind: names[message.options.get(53)![0]!]!, message };
  }

  /** The server's answer to the last message. */
  answer(type: number, options: [number, Uint8Array][] = [], change: Partial<Message> = {}): Sent[] {
    const asked = this.sent.at(-1)!.message;
    const message: Message = {
      xid: asked.xid,
      secs: 0,
      broadcast: false,
      yourAddress: type === NAK ? ip("0.0.0.0") : ip("192.168.77.50"),
      mac,
      options: new Map([
        [option.messageType, Uint8Array.of(type)],
        [option.server, ip("192.168.77.1")],
        ...(type === NAK
          ? []
          : [[option.subnetMask, ip("255.255.255.0")], [option.leaseTime, seconds(1000)]] as const),
        ...options,
      ]),
      ...change,
    };
    return this.take(this.client.receive(decodeReply(encodeReply(message))!, this.now));
  }

  bind(options: [number, Uint8Array][] = []): void {
    this.take(this.client.start(this.now));
    this.answer(OFFER, options);
    this.answer(ACK, options);
    expect(this.client.state).toBe("bound");
  }
}
