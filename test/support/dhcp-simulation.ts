/** A DHCP client in simulated time: a clock that only the test moves, and a server of a few lines. */
import { expect } from "bun:test";
import { type Deed, LeaseClient, type Settings } from "../../src/dhcp/v4/lease/client.ts";
import type { Identity } from "../../src/dhcp/v4/lease/request.ts";
import {
  ACK,
  decodeReply,
  decodeRequest,
  encodeReply,
  type Message,
  NAK,
  OFFER,
  option,
} from "../../src/dhcp/v4/message/message.ts";

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
export class Simulation {
  now = 1000;
  readonly sent: Sent[] = [];
  readonly did: string[] = [];
  readonly client: LeaseClient;
  private xids = 0;

  constructor(settings: Partial<Settings> = {}, isAwaited = true) {
    const random = () => 0.5, newXid = () => ++this.xids;
    this.client = new LeaseClient(
      identity,
      { probe: false, allowsServer: () => true, random, newXid, ...settings },
      isAwaited,
    );
  }

  take(deeds: Deed[]): Sent[] {
    const sent: Sent[] = [];
    for (const deed of deeds) {
      if (deed.do === "broadcast" || deed.do === "unicast") {
        const message = decodeRequest(deed.bytes)!;
        sent.push({ at: this.now, how: deed.do, kind: names[message.options.get(53)![0]!]!, message });
      } else {
        this.did.push(deed.do === "log" ? deed.text : deed.do);
      }
    }
    this.sent.push(...sent);
    return sent;
  }

  /** Lets time pass; nobody answers. */
  pass(seconds: number): Sent[] {
    const end = this.now + seconds, sent: Sent[] = [];
    for (let count = 0; this.client.due <= end; count++) {
      if (count > 1000) throw new Error("a storm");
      this.now = Math.max(this.now, this.client.due);
      sent.push(...this.take(this.client.tick(this.now)));
    }
    this.now = end;
    return sent;
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
