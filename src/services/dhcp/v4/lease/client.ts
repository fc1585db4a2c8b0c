/**
 * The life of one lease as RFC 2131 section 4.4 has it, from the first DISCOVER to its end. Pure: its caller says
 * what time it is and what arrived, and does what it answers. It holds no socket and no timer.
 *
 * Longer than 300 lines: the states of one machine.
 */
import { isSameBytes } from "../../../../net/address.ts";
import { ACK, type Message, NAK, OFFER, option } from "../message/message.ts";
import { printableBytes } from "../../names.ts";
import { type Offered, readOffer, UnusableOffer } from "../message/offer.ts";
import { decline, discover, type Exchange, type Identity, release, renewal, request } from "./request.ts";

/** A lease that a server has acknowledged. */
export interface Lease {
  offered: Offered;
  /** When the request was sent, in seconds on the driver's clock. The lease counts from there. */
  since: number;
}

export function endOf({ offered, since }: Lease): number {
  return since + offered.times.lease;
}

/** What the driver is to do, in this order. */
export type Action =
  | { do: "broadcast"; bytes: Uint8Array }
  /** Is sent from the leased address to the server. `isRepeated`: the last message has not been answered. */
  | { do: "unicast"; bytes: Uint8Array; from: Uint8Array; to: Uint8Array; isRepeated: boolean }
  /** Find out whether somebody has the address, then call `probed`. */
  | { do: "probe"; address: Uint8Array }
  /** The lease is ours, or has changed. */
  | { do: "use"; lease: Lease; before: Lease | undefined }
  /** `isRefused`: the server has taken it back, before its end. */
  | { do: "stopUsing"; lease: Lease; reason: string; isRefused: boolean }
  | { do: "log"; text: string };

export interface Settings {
  /** Whether an address is probed before it is used. */
  probe: boolean;
  allowsServer(server: Uint8Array): boolean;
  /** Returns a number between 0 and 1. */
  random(): number;
  /** 32 bits. */
  newXid(): number;
  /** How long each answer is waited for while a request is pending, in seconds. The last pause is repeated. */
  pauses?: readonly number[];
}

type State =
  | "idle"
  | "selecting"
  | "requesting"
  | "rebooting"
  | "probing"
  | "declined"
  | "bound"
  | "renewing"
  | "rebinding";

/**
 * Somebody waits for ADD: shorter than RFC 2131 section 4.1 has it. The first message is often lost, because the other end
 * of a link that has just been set up does not pass anything on yet.
 */
const IMPATIENT_S = [0.25, 1, 2, 4, 8, 16], PATIENT_S = [4, 8, 16, 32, 64];
const REQUEST_TRIES = 4, REBOOT_TRIES = 2;
/** Then answers are asked for that every host of the link receives. */
const TRIES_BEFORE_BROADCAST = 2;
/** RFC 2131 section 3.1.5 */
const AFTER_DECLINE_S = 10;
/** RFC 2131 section 4.4.5, and less for leases that are shorter than that allows for. */
const RENEWAL_PAUSE_S = 60, SHORT_RENEWAL_PAUSE_S = 5, SHORT_LEASE_S = 8 * 60;
/** The least time between two packets of a lease, whatever a server says. */
const SHORTEST_PAUSE_S = 2;
/** A server that refuses a lease so soon after it gave it may do so again and again. */
const HASTY_S = 10;
/** The link may go away while it is asked; then no answer comes. */
const PROBE_PATIENCE_S = 10;
/** Leases that began together are not renewed together. */
const SPREAD = 0.05;

export class LeaseClient {
  state: State = "idle";
  lease: Lease | undefined;
  /** When `tick` is due; `Infinity` when only an answer goes on. */
  due = Infinity;
  /** Why there is no lease yet, for a caller that waits. */
  obstacle = "no server has answered DISCOVER";

  private xid = 0;
  private began = 0;
  private sent = 0;
  private tries = 0;
  private chosen: Offered | undefined;
  /** The lease whose address is probed, in this state. */
  private pending: Lease | undefined;
  private hint: Uint8Array | undefined;

  constructor(
    private readonly who: Identity,
    private readonly settings: Settings,
    /** Whether somebody waits for the first lease. */
    private isAwaited: boolean,
  ) {}

  /** ADD has its answer without this lease. */
  goOnPatiently(): void {
    this.isAwaited = false;
  }

  /** Begins without a lease. The hint is an address of a former lease. */
  start(now: number, hint?: Uint8Array): Action[] {
    this.hint = hint;
    this.begin("selecting", now);
    return this.sendDiscover(now);
  }

  /** Asks whether the address of a former lease, maybe in another namespace, is still ours (INIT-REBOOT). */
  reboot(now: number, address: Uint8Array): Action[] {
    this.hint = address;
    this.begin("rebooting", now);
    return this.sendRequest(now);
  }

  /** Goes on with a lease of an earlier process. If many are due, each waits for a part of `spread` seconds. */
  resume(now: number, lease: Lease, spread: number): void {
    this.isAwaited = false;
    this.lease = lease;
    this.hint = lease.offered.address.bytes;
    this.state = "bound";
    const turn = now + spread * this.settings.random(), end = endOf(lease);
    this.due = end <= now ? turn : Math.min(Math.max(this.renewalTime(lease), turn), end);
  }

  /** Returns the message that ends the lease on the server's side, if there is a lease. */
  release(): Action[] {
    // An address that was asked for may be ours by now, though the answer is still on its way.
    const held = this.lease?.offered ?? this.pending?.offered ?? this.chosen;
    this.state = "idle";
    this.due = Infinity;
    this.lease = this.pending = this.chosen = undefined;
    if (held === undefined) return [];
    const { address, server } = held;
    const bytes = release(this.who, { xid: this.settings.newXid(), secs: 0 }, address.bytes, server);
    return [{ do: "unicast", bytes, from: address.bytes, to: server, isRepeated: false }];
  }

  tick(now: number): Action[] {
    if (now < this.due) return [];
    if (this.lease !== undefined && now >= endOf(this.lease)) return this.expire(now);
    switch (this.state) {
      case "selecting":
        return this.sendDiscover(now);
      case "requesting":
      case "rebooting":
        return this.retryRequest(now);
      case "declined":
      case "probing":
        this.pending = undefined;
        return this.restart(now);
      case "bound":
      case "renewing":
      case "rebinding":
        return this.renew(now);
      default:
        this.due = Infinity;
        return [];
    }
  }

  receive(message: Message, now: number): Action[] {
    if (!this.isForUs(message)) return [];
    const type = message.options.get(option.messageType)?.[0];
    const server = message.options.get(option.server);
    if (server?.length === 4 && !this.settings.allowsServer(server)) {
      const text = `server ${server.join(".")} is not allowed`;
      if (this.state === "selecting") this.obstacle = text;
      return [{ do: "log", text }];
    }
    if (type === OFFER && this.state === "selecting") return this.take(message, now);
    if (!["requesting", "rebooting", "renewing", "rebinding"].includes(this.state)) return [];
    if (type === ACK) return this.acknowledge(message, now);
    return type === NAK && this.mayRefuse(server) ? this.refused(message, now) : [];
  }

  /** The answer to the action "probe". */
  probed(isTaken: boolean, now: number): Action[] {
    const lease = this.pending;
    if (lease === undefined) return [];
    this.pending = undefined;
    if (!isTaken) return this.use(lease, now);
    const { address, server } = lease.offered;
    this.obstacle = `another host has ${address.bytes.join(".")}, which server ${server.join(".")} gave`;
    this.state = "declined";
    this.due = now + AFTER_DECLINE_S;
    this.hint = this.chosen = undefined;
    const bytes = decline(this.who, { xid: this.settings.newXid(), secs: 0 }, address.bytes, server);
    return [{ do: "log", text: this.obstacle }, { do: "broadcast", bytes }];
  }

  private isForUs({ xid, mac, options }: Message): boolean {
    if (xid !== this.xid || !isSameBytes(mac, this.who.mac)) return false;
    const clientId = options.get(option.clientId);
    // Servers before RFC 6842 do not repeat it.
    return clientId === undefined || (this.who.clientId !== undefined && isSameBytes(clientId, this.who.clientId));
  }

  /** The server that was asked; undefined when all were. */
  private mayRefuse(server: Uint8Array | undefined): boolean {
    if (server?.length !== 4) return false;
    const asked = this.state === "renewing" ? this.lease?.offered.server : this.chosen?.server;
    return asked === undefined || isSameBytes(server, asked);
  }

  private begin(state: State, now: number): void {
    this.state = state;
    this.began = now;
    this.tries = 0;
    this.xid = this.settings.newXid();
    this.chosen = undefined;
  }

  private next(now: number): Exchange {
    this.tries++;
    this.sent = now;
    return { xid: this.xid, secs: Math.floor(now - this.began) };
  }

  private sendDiscover(now: number): Action[] {
    const exchange = this.next(now), bytes = discover(this.identity(), exchange, this.hint);
    this.due = now + this.pause();
    return [{ do: "broadcast", bytes }];
  }

  private sendRequest(now: number): Action[] {
    const address = this.chosen?.address.bytes ?? this.hint!;
    const exchange = this.next(now), bytes = request(this.identity(), exchange, address, this.chosen?.server);
    this.due = now + this.pause();
    return [{ do: "broadcast", bytes }];
  }

  /** A server that cannot reach a host without an address, or is not heard, may be heard by everybody. */
  private identity(): Identity {
    return this.tries > TRIES_BEFORE_BROADCAST ? { ...this.who, broadcast: true } : this.who;
  }

  private pause(): number {
    const pauses = this.isAwaited ? this.settings.pauses ?? IMPATIENT_S : PATIENT_S;
    const pause = pauses[Math.min(this.tries, pauses.length) - 1]!;
    const spread = this.isAwaited ? pause * 0.1 : 1;
    return pause + spread * (2 * this.settings.random() - 1);
  }

  private retryRequest(now: number): Action[] {
    const most = this.state === "rebooting" ? REBOOT_TRIES : REQUEST_TRIES;
    if (this.tries < most) return this.sendRequest(now);
    // A server that does not know us stays silent (RFC 2131 section 4.3.2).
    return this.restart(now);
  }

  private restart(now: number): Action[] {
    this.begin("selecting", now);
    return this.sendDiscover(now);
  }

  private take(message: Message, now: number): Action[] {
    const read = this.read(message);
    if ("unusable" in read) return [{ do: "log", text: `offer ignored: ${read.unusable}` }];
    const { began, xid } = this;
    this.begin("requesting", now);
    // The number and the beginning are the DISCOVER's (RFC 2131 section 4.4.1).
    [this.began, this.xid, this.chosen] = [began, xid, read.offered];
    const { address, server } = read.offered;
    this.obstacle = `server ${server.join(".")} offered ${address.bytes.join(".")}, but has not answered REQUEST`;
    return this.sendRequest(now);
  }

  private read(message: Message): { offered: Offered } | { unusable: string } {
    try {
      return { offered: readOffer(message) };
    } catch (error) {
      if (!(error instanceof UnusableOffer)) throw error;
      return { unusable: this.obstacle = error.message };
    }
  }

  private acknowledge(message: Message, now: number): Action[] {
    const read = this.read(message);
    if ("unusable" in read) return [{ do: "log", text: `acknowledgement ignored: ${read.unusable}` }];
    const { offered } = read, lease = { offered, since: this.sent };
    const asked = this.chosen?.address.bytes ?? (this.lease?.offered.address.bytes ?? this.hint!);
    if (!isSameBytes(offered.address.bytes, asked)) {
      return [{ do: "log", text: `acknowledgement ignored: it is for ${offered.address.bytes.join(".")}` }];
    }
    if (this.chosen && !isSameBytes(offered.server, this.chosen.server)) {
      return [{ do: "log", text: `acknowledgement ignored: server ${offered.server.join(".")} was not asked` }];
    }
    const notes: Action[] = offered.ignored.map((text) => ({ do: "log", text }));
    const isNew = this.state === "requesting" || this.state === "rebooting";
    if (!isNew || !this.settings.probe) return [...notes, ...this.use(lease, now)];
    this.state = "probing";
    this.pending = lease;
    this.due = now + PROBE_PATIENCE_S;
    return [...notes, { do: "probe", address: offered.address.bytes }];
  }

  private use(lease: Lease, now: number): Action[] {
    const before = this.lease;
    this.lease = lease;
    this.chosen = undefined;
    this.state = "bound";
    this.hint = lease.offered.address.bytes;
    this.isAwaited = false;
    this.due = Math.max(this.renewalTime(lease), now + SHORTEST_PAUSE_S);
    return [{ do: "use", lease, before }];
  }

  private renewalTime({ offered, since }: Lease): number {
    return since + offered.times.renew * (1 - SPREAD * this.settings.random());
  }

  private refused(message: Message, now: number): Action[] {
    const text = printableBytes(message.options.get(option.text) ?? new Uint8Array());
    const server = message.options.get(option.server)?.join(".") ?? "unknown";
    this.obstacle = `server ${server} refused (NAK)${text === "" ? "" : `: ${text}`}`;
    const isHasty = this.state === "requesting" || now - (this.lease?.since ?? -Infinity) < HASTY_S;
    return [
      { do: "log", text: this.obstacle },
      ...this.stopUsing(this.obstacle, true),
      ...this.begunAgain(now, isHasty),
    ];
  }

  private begunAgain(now: number, isHasty: boolean): Action[] {
    this.hint = undefined;
    this.begin("selecting", now);
    if (!isHasty) return this.sendDiscover(now);
    // A server that gives and refuses in turn is not asked without a pause.
    this.due = now + SHORTEST_PAUSE_S;
    return [];
  }

  private expire(now: number): Action[] {
    return [...this.stopUsing("the lease has expired", false), ...this.restart(now)];
  }

  private stopUsing(reason: string, isRefused: boolean): Action[] {
    const { lease } = this;
    this.lease = undefined;
    return lease === undefined ? [] : [{ do: "stopUsing", lease, reason, isRefused }];
  }

  /** T1 and T2 (RFC 2131 section 4.4.5). */
  private renew(now: number): Action[] {
    const { offered, since } = this.lease!, { times, address, server } = offered;
    const rebindAt = since + times.rebind, end = since + times.lease;
    const state = now < rebindAt ? "renewing" : "rebinding";
    if (this.state !== state) this.begin(state, now);
    const bytes = renewal(this.who, this.next(now), address.bytes);
    const until = state === "renewing" ? rebindAt : end;
    const shortest = times.lease < SHORT_LEASE_S ? SHORT_RENEWAL_PAUSE_S : RENEWAL_PAUSE_S;
    const next = Math.min(now + Math.max((until - now) / 2, shortest), until);
    this.due = Math.min(Math.max(next, now + SHORTEST_PAUSE_S), end);
    if (state === "rebinding") return [{ do: "broadcast", bytes }];
    return [{ do: "unicast", bytes, from: address.bytes, to: server, isRepeated: this.tries > 1 }];
  }
}
