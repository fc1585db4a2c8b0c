/**
 * The life of one IPv6 lease as RFC 8415 section 18.2 has it, from the first SOLICIT to its end. Pure: its caller says
 * what time it is and what arrived, and does what it answers. It holds no socket and no timer.
 *
 * Longer than 300 lines: the states of one machine.
 */
import { formatAddress, isSameBytes } from "../../../../net/address.ts";
import { ADVERTISE, first, type Message6, option, REPLY, status, statusName } from "../message/message.ts";
import { readReply, type Reply, UnusableReply } from "../message/offer.ts";
import { type Action6, endOf, heldBy, type Lease6, type Offered6, type Settings6 } from "./lease.ts";
import {
  confirm,
  decline,
  type Exchange6,
  type Held,
  type Identity6,
  rebind,
  release,
  renew,
  request,
  solicit,
} from "./request.ts";
import { type Asking, LONGEST_PAUSE_S, nextPause, timerOf, timers } from "./timers.ts";

export type State6 = Asking | "idle" | "probing" | "bound";

/** SOL_MAX_DELAY and CNF_MAX_DELAY, while nobody waits. */
const LONGEST_DELAY_S = 1;
/** CNF_MAX_RD. */
const CONFIRMING_S = 10;
/** The least time between two packets of a lease while no request is pending, whatever a server says. */
const SHORTEST_PAUSE_S = 1;
/** The link may go away while it is asked; then no answer comes. */
const PROBE_PATIENCE_S = 10;
/** Leases that began together are not renewed together. */
const RENEWAL_SPREAD = 0.05;
const HIGHEST_PREFERENCE = 255;

export class LeaseClient6 {
  state: State6 = "idle";
  lease: Lease6 | undefined;
  /** Why there is no lease yet, for a caller that waits. */
  obstacle = "no server has answered";

  /** When the state wants something done. */
  private wake = Infinity;
  private xid = 0;
  private began = 0;
  private sent = -Infinity;
  private tries = 0;
  /** The pause after the last message; and after the last SOLICIT, which servers that refuse do not shorten. */
  private pause = 0;
  private solicitPause = 0;
  private longestPause = LONGEST_PAUSE_S;
  /** When ADVERTISEs are not compared any more, and the best so far. */
  private compareUntil = 0;
  private best: Offered6 | undefined;
  /** Whom a REQUEST or DECLINE is for. */
  private partner: Held | undefined;
  /** The lease that is confirmed or probed, in these states. */
  private pending: Lease6 | undefined;
  private hint: Uint8Array | undefined;

  constructor(
    private readonly who: Identity6,
    private readonly settings: Settings6,
    /** Whether somebody waits for the first lease. */
    private isAwaited: boolean,
  ) {}

  /** When `tick` is due; `Infinity` when only an answer goes on. */
  get due(): number {
    return Math.min(this.wake, this.lease === undefined ? Infinity : endOf(this.lease));
  }

  /** ADD has its answer without this lease. */
  goOnPatiently(): void {
    this.isAwaited = false;
  }

  /** Begins without a lease. The hint is an address of a former lease. */
  start(now: number, hint?: Uint8Array): Action6[] {
    this.hint = hint;
    return this.begin("soliciting", now);
  }

  /** Asks whether the address of a former lease is right on this link, which may be another one. */
  confirm(now: number, lease: Lease6): Action6[] {
    if (now >= endOf(lease)) return this.start(now, lease.offered.binding.address);
    this.pending = lease;
    return this.begin("confirming", now);
  }

  /** Goes on with a lease of an earlier process, which is in use. */
  resume(now: number, lease: Lease6): Action6[] {
    this.isAwaited = false;
    this.lease = lease;
    this.state = "bound";
    this.wake = this.renewalTime(lease);
    return this.tick(now);
  }

  /** Returns the message that ends the lease on the server's side, if there is one (RFC 8415 section 18.2.7). */
  release(): Action6[] {
    const held = this.held();
    this.state = "idle";
    this.wake = Infinity;
    this.lease = undefined;
    if (held === undefined) return [];
    return [{ do: "multicast", bytes: release(this.who, { xid: this.newXid(), elapsed: 0 }, held) }];
  }

  tick(now: number): Action6[] {
    if (this.lease === undefined || now < endOf(this.lease)) return now < this.wake ? [] : this.advance(now);
    const { state, lease: { offered } } = this;
    const actions = this.stopUsing("the lease has expired");
    // Everything else goes on.
    if (state !== "bound" && state !== "renewing" && state !== "rebinding") return [...actions, ...this.tick(now)];
    this.hint = offered.binding.address;
    return [...actions, ...this.begin("soliciting", now)];
  }

  receive(message: Message6, now: number): Action6[] {
    if (!this.isForUs(message)) return [];
    const server = first(message.options, option.server) ?? new Uint8Array();
    const asked = this.askedServer();
    if (asked !== undefined && !isSameBytes(server, asked)) return log(`server ${server.toHex()} was not asked`);
    const reply = this.read(message);
    if ("unusable" in reply) {
      this.obstacle = `server ${server.toHex()}: ${reply.unusable}`;
      return log(`message ignored: ${this.obstacle}`);
    }
    // Servers that give nothing count, too (RFC 8415 section 18.2.9).
    this.longestPause = reply.solMaxRt ?? this.longestPause;
    if (this.state === "soliciting") return this.advertised(message, reply, now);
    return message.type === REPLY ? this.replied(reply, now) : [];
  }

  /** The answer to the action "probe". */
  probed(isTaken: boolean, now: number): Action6[] {
    const lease = this.pending;
    if (this.state !== "probing" || lease === undefined) return [];
    if (!isTaken) return this.use(lease, now);
    const held = heldBy(lease);
    this.hint = undefined;
    this.partner = held;
    this.obstacle = `another host has ${formatAddress(held.address)}, which server ${held.server.toHex()} gave`;
    this.enter("declining");
    return [...log(this.obstacle), ...this.transmit(now)];
  }

  /** The message of each state that waits for an answer. */
  private message(state: Asking, exchange: Exchange6): Uint8Array {
    const { who, partner, lease, pending } = this;
    switch (state) {
      case "soliciting":
        return solicit(who, exchange, this.hint);
      case "requesting":
        return request(who, exchange, partner!);
      case "confirming":
        return confirm(who, exchange, pending!.offered.binding.address);
      case "renewing":
        return renew(who, exchange, heldBy(lease!));
      case "rebinding":
        return rebind(who, exchange, lease!.offered.binding.address);
      case "declining":
        return decline(who, exchange, partner!);
    }
  }

  /** Enters a state that is not in answer to anything: while nobody waits, not together with others. */
  private begin(state: "soliciting" | "confirming", now: number): Action6[] {
    this.enter(state);
    if (this.isAwaited) return this.transmit(now);
    this.wake = now + LONGEST_DELAY_S * this.settings.random();
    return [];
  }

  private enter(state: Asking): void {
    this.state = state;
    this.xid = this.newXid();
    this.tries = 0;
    this.pause = state === "soliciting" ? this.solicitPause : 0;
    this.best = undefined;
  }

  private newXid(): number {
    return this.settings.newXid() & 0xffffff;
  }

  private transmit(now: number): Action6[] {
    const state = this.state as Asking;
    if (!this.isAwaited && now < this.sent + SHORTEST_PAUSE_S) {
      this.wake = this.sent + SHORTEST_PAUSE_S;
      return [];
    }
    if (this.tries++ === 0) {
      this.began = now;
      this.compareUntil = now + nextPause(0, timers.soliciting, this.settings.random(), true);
    }
    this.sent = now;
    this.pause = this.pauseAfter(state, this.pause);
    if (state === "soliciting") this.solicitPause = this.pause;
    this.wake = Math.min(now + this.pause, this.deadline());
    const bytes = this.message(state, { xid: this.xid, elapsed: Math.round((now - this.began) * 100) });
    return [{ do: "multicast", bytes }];
  }

  private pauseAfter(state: Asking, before: number): number {
    const timer = timerOf(state, this.longestPause, this.isAwaited);
    return nextPause(before, timer, this.settings.random(), state === "soliciting");
  }

  /** MRD: when the exchange ends without an answer. */
  private deadline(): number {
    if (this.state === "renewing") return this.lease!.since + this.lease!.offered.binding.rebind;
    return this.state === "confirming" ? Math.min(this.began + CONFIRMING_S, endOf(this.pending!)) : Infinity;
  }

  private advance(now: number): Action6[] {
    const { state } = this;
    switch (state) {
      case "bound":
      case "renewing":
      case "rebinding":
        return this.renew(now);
      case "soliciting":
        return this.best === undefined ? this.transmit(now) : this.take(this.best, now);
      case "confirming":
        return this.tries > 0 && now >= this.deadline() ? this.unconfirmed(now) : this.transmit(now);
      case "probing":
        return this.begin("soliciting", now);
      case "idle":
        return [];
      default:
        return this.tries < timerOf(state, this.longestPause, this.isAwaited).tries
          ? this.transmit(now)
          : this.unanswered(now);
    }
  }

  private unanswered(now: number): Action6[] {
    const server = this.partner!.server.toHex();
    if (this.state === "requesting") this.obstacle = `server ${server} offered, then was silent`;
    return this.solicitAgain(now);
  }

  /** Nobody has said that the address is wrong (RFC 8415 section 18.2.3). */
  private unconfirmed(now: number): Action6[] {
    const lease = this.pending!;
    if (now < endOf(lease)) return this.adopt(lease, now);
    return this.start(now, lease.offered.binding.address);
  }

  private isForUs({ type, xid, options }: Message6): boolean {
    const isAsking = this.state in timers && this.tries > 0;
    if (!isAsking || xid !== this.xid || (type !== ADVERTISE && type !== REPLY)) return false;
    const clientId = first(options, option.clientId);
    return clientId !== undefined && isSameBytes(clientId, this.who.duid);
  }

  /** The lease that a server has given, or may have given. */
  private held(): Held | undefined {
    if (this.lease !== undefined) return heldBy(this.lease);
    if (this.state === "requesting") return this.partner;
    return this.state === "confirming" || this.state === "probing" ? heldBy(this.pending!) : undefined;
  }

  /** The server whose answer counts; undefined when every server's does. */
  private askedServer(): Uint8Array | undefined {
    if (this.state === "renewing") return this.lease!.offered.server;
    return this.state === "requesting" || this.state === "declining" ? this.partner!.server : undefined;
  }

  private read(message: Message6): Reply | { unusable: string } {
    try {
      return readReply(message, this.who.iaid, this.lease?.offered.binding.address);
    } catch (error) {
      if (!(error instanceof UnusableReply)) throw error;
      return { unusable: error.message };
    }
  }

  /** A REPLY counts only if it is a rapid one. */
  private advertised({ type, options }: Message6, reply: Reply, now: number): Action6[] {
    if (type === REPLY && first(options, option.rapidCommit) === undefined) return [];
    if (!hasBinding(reply)) return this.note(reply);
    if (type === REPLY) return this.accept(reply, now);
    if (this.isAwaited || reply.preference === HIGHEST_PREFERENCE || now >= this.compareUntil) {
      return this.take(reply, now);
    }
    if (this.best === undefined || reply.preference > this.best.preference) this.best = reply;
    this.wake = Math.min(this.wake, this.compareUntil);
    return [];
  }

  private take({ server, binding: { address } }: Offered6, now: number): Action6[] {
    this.partner = { server, address };
    this.enter("requesting");
    return this.transmit(now);
  }

  private replied(reply: Reply, now: number): Action6[] {
    switch (this.state) {
      case "requesting":
        return this.requested(reply, now);
      case "confirming":
        return this.confirmed(reply, now);
      case "renewing":
      case "rebinding":
        return this.renewed(reply, now);
      case "declining":
        return this.solicitAgain(now);
      default:
        return [];
    }
  }

  private requested(reply: Reply, now: number): Action6[] {
    if (hasBinding(reply)) return this.accept(reply, now);
    const { code } = reply.status;
    // We multicast as it is; and what went wrong without a name may go right another time.
    const isTemporary = code === status.unspecified || code === status.useMulticast;
    return isTemporary ? this.note(reply) : [...this.note(reply), ...this.solicitAgain(now)];
  }

  private confirmed(reply: Reply, now: number): Action6[] {
    const lease = this.pending!;
    if (reply.status.code === status.success) return this.adopt(lease, now);
    if (reply.status.code !== status.notOnLink) return this.note(reply);
    const reason = "the address is not of this link";
    return [...this.note(reply), { do: "stopUsing", lease, reason }, ...this.begin("soliciting", now)];
  }

  private renewed(reply: Reply, now: number): Action6[] {
    if (hasBinding(reply)) return this.accept(reply, now);
    const { server, withdrawn } = reply, { address } = this.lease!.offered.binding;
    if (reply.status.code === status.noBinding) {
      // The server has forgotten the lease, not refused it (RFC 8415 section 18.2.10.1).
      this.partner = { server, address };
      this.enter("requesting");
      return [...this.note(reply), ...this.transmit(now)];
    }
    if (!withdrawn.some((one) => isSameBytes(one, address))) return this.note(reply);
    return [...this.stopUsing(`server ${server.toHex()} has withdrawn the address`), ...this.solicitAgain(now)];
  }

  /** Says why this server is of no help. */
  private note({ server, status: { code, text }, ignored }: Reply): Action6[] {
    const reason = code === status.success ? "gives no address" : `answers ${statusName(code)}`;
    this.obstacle = `server ${server.toHex()} ${reason}${text === "" ? "" : `: ${text}`}`;
    return [...log(this.obstacle), ...logAll(ignored)];
  }

  /** Begins anew after a pause, as if nobody had answered: servers that give and refuse in turn make no storm. */
  private solicitAgain(now: number): Action6[] {
    this.enter("soliciting");
    this.wake = now + this.pauseAfter("soliciting", this.pause);
    return [];
  }

  private accept(offered: Offered6, now: number): Action6[] {
    return [...logAll(offered.ignored), ...this.adopt({ offered, since: this.sent }, now)];
  }

  private adopt(lease: Lease6, now: number): Action6[] {
    const { address } = lease.offered.binding, current = this.lease?.offered.binding.address;
    const isNew = current === undefined || !isSameBytes(address, current);
    if (!isNew || !this.settings.probe) return this.use(lease, now);
    this.pending = lease;
    this.state = "probing";
    this.wake = now + PROBE_PATIENCE_S;
    return [{ do: "probe", address }];
  }

  private use(lease: Lease6, now: number): Action6[] {
    const before = this.lease;
    this.lease = lease;
    this.state = "bound";
    this.hint = undefined;
    this.solicitPause = 0;
    this.isAwaited = false;
    this.wake = Math.max(this.renewalTime(lease), now + SHORTEST_PAUSE_S);
    return [{ do: "use", lease, before }];
  }

  private renewalTime({ offered: { binding }, since }: Lease6): number {
    return since + binding.renew * (1 - RENEWAL_SPREAD * this.settings.random());
  }

  /** T1 and T2. */
  private renew(now: number): Action6[] {
    const { offered: { binding }, since } = this.lease!;
    const state = now < since + binding.rebind ? "renewing" : "rebinding";
    if (this.state !== state) this.enter(state);
    return this.transmit(now);
  }

  private stopUsing(reason: string): Action6[] {
    const { lease } = this;
    this.lease = undefined;
    return lease === undefined ? [] : [{ do: "stopUsing", lease, reason }];
  }
}

function hasBinding(reply: Reply): reply is Offered6 {
  return reply.binding !== undefined;
}

function log(text: string): Action6[] {
  return [{ do: "log", text }];
}

function logAll(texts: readonly string[]): Action6[] {
  return texts.map((text) => ({ do: "log", text }));
}
