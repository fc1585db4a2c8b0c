/**
 * The common part of leases of both families: sockets that are open only while an answer is awaited, a probe of the
 * address, and what to do when the link or the namespace is gone.
 */
import { errorText } from "../../../cni/error.ts";
import { SyscallError } from "../../../ffi/errno.ts";
import { NetlinkError } from "../../../ffi/netlink/socket.ts";
import { randomBytes } from "../../../ffi/random.ts";
import { formatAddress } from "../../../net/address.ts";
import { LinkGone, type NetnsHandle, type SharedHandle } from "../link/netns-handle.ts";
import type { Probing } from "../link/probing.ts";
import type { Arrival } from "../link/replies.ts";
import type { LeaseOptions } from "../lease-options.ts";
import { say, sayRarely } from "./log.ts";
import type { ServiceContext } from "./service-context.ts";

/** A server answers within this time. Then the sockets are closed, unless a request is pending. */
const LISTEN_S = 4;
/** Packets that are read in one go. Then others have their turn. */
const MOST_AT_ONCE = 8;

/** The attachment, as its leases see it. */
export interface LeaseAttachment {
  /** `container/network/interface`. */
  readonly name: string;
  readonly network: string;
  readonly options: LeaseOptions;
  /** Somebody waits for ADD. */
  readonly isAwaited: boolean;
  /** The container's namespace, which every lease opens while it needs it. */
  readonly netns: SharedHandle;
  /** A new or changed lease, before anything else learns of it. False: it cannot be recorded, and will be released. */
  record(durable: boolean): boolean;
  /** The lease can be used. */
  obtained(): void;
  readonly context: Pick<ServiceContext, "pauses" | "broadcasts" | "clock">;
}

interface LeaseMachine<Action> {
  readonly state: string;
  readonly due: number;
  /** Undefined without a lease. */
  readonly lease: object | undefined;
  tick(now: number): readonly Action[];
  probed(isTaken: boolean, now: number): readonly Action[];
}

interface ExchangeSockets<Message> {
  readonly fd: number;
  /** Undefined when nothing has arrived. */
  receive(): Arrival<Message> | undefined;
  /** So much has arrived that nothing is read until the next message. */
  readonly isSpent: boolean;
  close(): void;
}

export abstract class FamilyLease<Action, Message, Sockets extends ExchangeSockets<Message>> {
  protected sockets: Sockets | undefined;
  protected probing: Probing | undefined;
  private handle: NetnsHandle | undefined;
  private listenUntil = Infinity;
  /** Why the last message could not be sent. */
  protected sendFailure: string | undefined;

  constructor(protected readonly attachment: LeaseAttachment) {}

  abstract readonly client: LeaseMachine<Action>;
  protected abstract open(handle: NetnsHandle): Sockets;
  protected abstract perform(action: Action, now: number): void;
  protected abstract receive(message: Message, from: Uint8Array, now: number): void;
  /** Sets the lifetime of the link's address. Returns whether the address is there. */
  abstract limitLifetime(handle: NetnsHandle, now: number): boolean;
  abstract readonly obstacle: string;

  get hasLease(): boolean {
    return this.client.lease !== undefined;
  }

  /** When `wake` is to be called, whether or not something has arrived. */
  get due(): number {
    // The sockets stay open until the probe has ended.
    return Math.min(this.client.due, this.probing?.due ?? this.listenUntil);
  }

  get fds(): number[] {
    const found: number[] = [];
    if (this.sockets) found.push(this.sockets.fd);
    if (this.probing) found.push(this.probing.fd);
    return found;
  }

  /** Something has arrived, or is due. */
  wake(now: number): void {
    try {
      const outcome = this.probing?.look(now);
      if (outcome !== undefined) {
        this.probing?.close();
        this.probing = undefined;
        this.run(this.client.probed(outcome === "taken", now), now);
      }
      this.receiveSome(now);
      if (now >= this.client.due) this.run(this.client.tick(now), now);
    } catch (error) {
      this.failed(error);
    }
    const { state } = this.client, isOver = ["bound", "idle"].includes(state) || now >= this.listenUntil;
    if (isOver && this.probing === undefined) this.close();
  }

  /** An answer may lead to another message, or to the end of listening. */
  private receiveSome(now: number): void {
    for (let count = 0; count < MOST_AT_ONCE; count++) {
      const arrival = this.sockets?.receive();
      if (arrival === undefined) return;
      if (arrival.message !== undefined) this.receive(arrival.message, arrival.from, now);
      if (this.sockets?.isSpent === true) return this.stopListening();
    }
  }

  /** The next message opens other sockets. */
  private stopListening(): void {
    this.sockets?.close();
    this.sockets = undefined;
    const { name, network } = this.attachment;
    sayRarely(`${network} flood`, `${name}: too many answers to one message: none is read until the next message`);
  }

  /** A link that goes down or away is an error of the socket's; the next message opens another. */
  protected failed(error: unknown): void {
    if (!isOfLink(error)) throw error;
    this.sendFailure = errorText(error);
    this.close();
  }

  protected run(actions: readonly Action[], now: number): void {
    for (const action of actions) this.perform(action, now);
  }

  protected send(now: number, work: (sockets: Sockets) => void): void {
    try {
      this.sockets ??= this.open(this.netns());
      work(this.sockets);
      this.sendFailure = undefined;
    } catch (error) {
      this.failed(error);
    }
    this.listenUntil = this.attachment.isAwaited ? Infinity : now + LISTEN_S;
  }

  protected netns(): NetnsHandle {
    return this.handle ??= this.attachment.netns.open();
  }

  /** The first question is due at once. */
  protected probe(begin: (handle: NetnsHandle) => Probing): void {
    this.probing = begin(this.netns());
  }

  protected log(text: string): void {
    sayRarely(`${this.attachment.network} ${text}`, `${this.attachment.name}: ${text}`);
  }

  /** Tells of a lease: each that is new, of renewals one a minute. */
  protected announceLease(isNew: boolean, seconds: number, facts: Record<string, unknown>): void {
    const { name, network } = this.attachment;
    const expiration = seconds === Infinity ? "never" : new Date(Date.now() + seconds * 1000).toISOString();
    if (isNew) say(`${name}: lease acquired, expiration is ${expiration}`, facts);
    else sayRarely(`${network} renewed`, `${name}: lease renewed, expiration is ${expiration}`, facts);
  }

  /** Applies something to the link. A failure is logged, and the lease stays what it is. */
  protected applied(work: (handle: NetnsHandle) => void): void {
    try {
      work(this.netns());
    } catch (error) {
      if (error instanceof LinkGone) return void (this.sendFailure = errorText(error));
      say(`${this.attachment.name}: ${errorText(error)}`);
    }
  }

  /** A lease has ended: `remove` takes it from the link. */
  protected ends(address: Uint8Array, reason: string, remove: (handle: NetnsHandle) => void): void {
    say(`${this.attachment.name}: ${reason}`, { address: formatAddress(address) });
    this.close();
    this.applied(remove);
    this.close();
    this.attachment.record(false);
  }

  /** Sends a last message through sockets of its own, or through the host when the link is gone. */
  protected sendLast(
    open: (handle: NetnsHandle) => Sockets,
    work: (sockets: Sockets) => void,
    throughHost: () => void,
  ): void {
    this.close();
    try {
      const sockets = open(this.netns());
      try {
        work(sockets);
      } finally {
        sockets.close();
      }
    } catch (error) {
      if (!isOfLink(error)) throw error;
      throughHost();
    }
    this.close();
  }

  close(): void {
    this.probing?.close();
    this.sockets?.close();
    this.probing = this.sockets = undefined;
    this.listenUntil = Infinity;
    if (this.handle !== undefined) this.attachment.netns.close();
    this.handle = undefined;
  }
}

/** Whether the error is about the link, its namespace, or the kernel, and so no fault of ours. */
function isOfLink(error: unknown): boolean {
  return error instanceof SyscallError || error instanceof NetlinkError || error instanceof LinkGone;
}

export function random32(): number {
  return new DataView(randomBytes(4).buffer).getUint32(0);
}

/** Returns a number from 0 to less than 1. */
export function random(): number {
  return random32() / 2 ** 32;
}
