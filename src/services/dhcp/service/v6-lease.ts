/** A DHCPv6 lease on a link: performs the actions of its client. */
import { EADDRNOTAVAIL, isErrno } from "../../../ffi/errno.ts";
import { formatAddress } from "../../../net/address.ts";
import { leaseOf6, leaseTextOf6 } from "../journal/lease-text6.ts";
import { beginningOf, type Clock, LONG_AGO, stampsOf, type V6Record } from "../journal/record.ts";
import { neighbourProbing } from "../link/ndp.ts";
import type { NetnsHandle } from "../link/netns-handle.ts";
import { checkDuplicatesAgain, Sockets6 } from "../link/sockets6.ts";
import { exchangeBinding, removeBinding, setLifetimes } from "../link/use6.ts";
import { LeaseClient6 } from "../v6/lease/client.ts";
import { type Action6, endOf, type Lease6, type Offered6 } from "../v6/lease/lease.ts";
import type { Message6 } from "../v6/message/message.ts";
import { SERVERS_MAC, wrap } from "../v6/message/packet.ts";
import type { V6Options } from "../lease-options.ts";
import { FamilyLease, type LeaseAttachment, random, random32 } from "./family-lease.ts";

/** How often a link is looked at that has no link-local address yet, in seconds: while somebody waits, and else. */
const LOOK_S = 0.05, PATIENT_LOOK_S = 1;

export class V6Lease extends FamilyLease<Action6, Message6, Sockets6> {
  readonly client: LeaseClient6;
  private ended: Offered6 | undefined;
  private linkLocal: Uint8Array | undefined;
  /** A message that waits for the link-local address. */
  private unsent: { bytes: Uint8Array; at: number } | undefined;
  private isWithoutAddress = false;

  constructor(attachment: LeaseAttachment, { duid, iaid }: V6Options) {
    super(attachment);
    const { probe } = attachment.options;
    const identity = { duid: Uint8Array.fromHex(duid), iaid: Uint8Array.fromHex(iaid) };
    const settings = { probe: probe !== "none", random, newXid: random32 };
    this.client = new LeaseClient6(identity, settings, attachment.isAwaited);
  }

  get obstacle(): string {
    return `IPv6: ${this.sendFailure ?? this.client.obstacle}`;
  }

  override get due(): number {
    return Math.min(super.due, this.unsent?.at ?? Infinity);
  }

  /** `had`: a lease of before, for another namespace. */
  start(now: number, had?: Lease6): void {
    this.run(had === undefined ? this.client.start(now) : this.client.confirm(now, had), now);
  }

  /** Goes on with a lease of an earlier process. */
  resume(now: number, record: V6Record, isSameBoot: boolean): void {
    const { linkLocal } = record;
    this.linkLocal = linkLocal === "" ? undefined : Uint8Array.fromHex(linkLocal);
    this.run(
      this.client.resume(now, leaseOfRecord6(record, isSameBoot, { ...this.attachment.context.clock(), boot: now })),
      now,
    );
  }

  toRecord(): V6Record | undefined {
    const { lease } = this.client, linkLocal = this.linkLocal?.toHex() ?? "";
    if (lease !== undefined) {
      return {
        lease: leaseTextOf6(lease.offered),
        ...stampsOf(lease.since, this.attachment.context.clock()),
        linkLocal,
      };
    }
    // The lease has ended: the next service asks for another one.
    const { ended } = this;
    return ended && { lease: { ...leaseTextOf6(ended), valid: 1, preferred: 1 }, ...LONG_AGO, linkLocal };
  }

  override wake(now: number): void {
    const { unsent } = this;
    if (unsent !== undefined && now >= unsent.at) this.multicast(unsent.bytes, now);
    super.wake(now);
  }

  protected open(handle: NetnsHandle): Sockets6 {
    const sockets = new Sockets6(handle);
    // The first, which the link has before the container can change it.
    this.linkLocal ??= sockets.linkLocal;
    checkDuplicatesAgain(handle);
    return sockets;
  }

  protected receive(message: Message6, _from: Uint8Array, now: number): void {
    this.run(this.client.receive(message, now), now);
  }

  protected perform(action: Action6, now: number): void {
    switch (action.do) {
      case "log":
        return this.log(action.text);
      case "multicast":
        return this.multicast(action.bytes, now);
      case "probe":
        return this.probe((handle) => neighbourProbing(handle, action.address, this.attachment.options.probe, now));
      case "use":
        return this.use(action.lease, action.before, now);
      case "stopUsing":
        return this.stopUsing(action.lease, action.reason);
    }
  }

  private multicast(bytes: Uint8Array, now: number): void {
    this.unsent = undefined;
    this.isWithoutAddress = false;
    this.send(now, (sockets) => sockets.multicast(bytes));
    if (this.isWithoutAddress) {
      this.unsent = { bytes, at: now + (this.attachment.isAwaited ? LOOK_S : PATIENT_LOOK_S) };
    }
  }

  protected override failed(error: unknown): void {
    this.isWithoutAddress = isErrno(error, EADDRNOTAVAIL);
    super.failed(error);
  }

  private use(lease: Lease6, before: Lease6 | undefined, now: number): void {
    const { attachment } = this, { binding, server } = lease.offered, seconds = endOf(lease) - now;
    const address = formatAddress(binding.address);
    const isMoved = before === undefined || formatAddress(before.offered.binding.address) !== address;
    if (!attachment.record(isMoved)) return;
    this.announceLease(isMoved, seconds, { address, server: server.toHex(), seconds });
    // The plugin that made the link is about to give it the address.
    if (!attachment.isAwaited) {
      const exchange = { before: before?.offered.binding, after: binding, age: now - lease.since };
      this.applied((handle) => exchangeBinding(handle, exchange, attachment.options));
    }
    attachment.obtained();
  }

  limitLifetime(handle: NetnsHandle, now: number): boolean {
    const { lease } = this.client;
    return lease === undefined || setLifetimes(handle, lease.offered.binding, now - lease.since);
  }

  private stopUsing(lease: Lease6, reason: string): void {
    const { binding } = lease.offered;
    this.ended = lease.offered;
    this.ends(binding.address, reason, (handle) => removeBinding(handle, binding, this.attachment.options));
  }

  /** Sends one message, and does not wait for the server's answer: the link goes with the container. */
  release(throughHost: (to: Uint8Array, packet: Uint8Array) => void): void {
    const actions = this.client.release(), { linkLocal } = this;
    this.unsent = undefined;
    for (const action of actions) {
      if (action.do !== "multicast") continue;
      this.sendLast(
        (handle) => new Sockets6(handle),
        (sockets) => sockets.multicast(action.bytes),
        () => linkLocal && throughHost(SERVERS_MAC, wrap(linkLocal, action.bytes)),
      );
    }
  }
}

/** The lease of a record, on the clock of this boot. */
export function leaseOfRecord6(record: V6Record, isSameBoot: boolean, clock: Clock): Lease6 {
  return { offered: leaseOf6(record.lease), since: beginningOf(record, isSameBoot, clock) };
}
