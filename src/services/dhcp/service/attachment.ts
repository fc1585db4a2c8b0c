/** An attachment with its leases: the requests for them, the link's location, and the record in the journal. */
import { errorText } from "../../../cni/error.ts";
import type { Owner } from "../../../contract/owner.ts";
import { setLink } from "../../../ffi/netlink/route/link.ts";
import { leaseTextOf } from "../journal/lease-text.ts";
import { leaseTextOf6 } from "../journal/lease-text6.ts";
import type { LeaseRecord } from "../journal/record.ts";
import { type LinkLocation, NetnsHandle, SharedHandle } from "../link/netns-handle.ts";
import { prepareForV6 } from "../link/sockets6.ts";
import { type AcquireRequest, type Answer, failure, ownerName, PROTOCOL_VERSION } from "../service-protocol.ts";
import type { FamilyName, LeaseOptions } from "../lease-options.ts";
import type { LeaseAttachment } from "./family-lease.ts";
import { IPV4_TYPE, IPV6_TYPE, sendLastMessage } from "./last-message.ts";
import { say } from "./log.ts";
import { AddressWatch } from "./address-watch.ts";
import { type PendingRequest, PendingRequests } from "./pending-requests.ts";
import type { FormerLease, ServiceContext } from "./service-context.ts";
import { V4Lease } from "./v4-lease.ts";
import { V6Lease } from "./v6-lease.ts";

/** How long a lease that is not required is waited for when the others are there, in seconds. */
const GRACE_S = 5;

export class Attachment implements LeaseAttachment {
  readonly name: string;
  readonly v4: V4Lease | undefined;
  readonly v6: V6Lease | undefined;
  private readonly pending = new PendingRequests();
  readonly netns: SharedHandle;
  private addressWatch: AddressWatch | undefined;
  private began = 0;
  /** What is wrong on our side. */
  private trouble: string | undefined;
  private graceUntil = Infinity;

  private constructor(
    readonly owner: Owner,
    readonly options: LeaseOptions,
    readonly location: LinkLocation & { mac: string },
    readonly context: ServiceContext,
    public isAwaited: boolean,
    handle?: NetnsHandle,
  ) {
    this.netns = new SharedHandle(location, handle);
    this.name = ownerName(owner);
    if (options.v4) this.v4 = new V4Lease(this, location.mac);
    if (options.v6 !== undefined) this.v6 = new V6Lease(this, options.v6);
  }

  /** Begins an attachment of ADD. Throws LinkGone. `netns` is an open descriptor of the namespace. */
  static begin({ owner, netnsPath, wishes }: AcquireRequest, netns: number, context: ServiceContext): Attachment {
    const handle = NetnsHandle.open({ netnsPath, ifName: owner.ifName }, netns);
    const location = { netnsPath, cookie: handle.cookie, ifName: owner.ifName, mac: handle.link.mac };
    return new Attachment(owner, wishes, location, context, true, handle);
  }

  /** Goes on with a record of the journal. */
  static resume(record: LeaseRecord, spread: number, context: ServiceContext): Attachment {
    const { netnsPath, cookie, ifName, mac, wishes, v4, v6 } = record, isSameBoot = record.bootId === context.bootId;
    const attachment = new Attachment(record, wishes, { netnsPath, cookie, ifName, mac }, context, false);
    const now = context.clock().boot;
    if (v4 !== undefined) attachment.v4?.resume(now, v4, isSameBoot, spread);
    if (v6 !== undefined) attachment.v6?.resume(now, v6, isSameBoot);
    return attachment;
  }

  get network(): string {
    return this.owner.network;
  }

  /** When `wake` is to be called, whether or not something has arrived. */
  get due(): number {
    const parts = Math.min(this.v4?.due ?? Infinity, this.v6?.due ?? Infinity);
    const grace = this.isAwaited ? this.graceUntil : Infinity;
    return Math.min(parts, this.addressWatch?.until ?? Infinity, grace, this.pending.due);
  }

  get fds(): number[] {
    return [...this.v4?.fds ?? [], ...this.v6?.fds ?? [], ...this.addressWatch?.fds ?? []];
  }

  private get missing(): FamilyName[] {
    const missing: FamilyName[] = [];
    if (this.v4?.hasLease === false) missing.push("ipv4");
    if (this.v6?.hasLease === false) missing.push("ipv6");
    return missing;
  }

  private get hasAny(): boolean {
    return this.v4?.hasLease === true || this.v6?.hasLease === true;
  }

  private get hasRequired(): boolean {
    return this.hasAny && !this.missing.some((family) => this.options.required.includes(family));
  }

  private get obstacle(): string {
    const missing = this.missing;
    return this.trouble ??
      [missing.includes("ipv4") && this.v4?.obstacle, missing.includes("ipv6") && this.v6?.obstacle]
        .filter((text) => text).join("; ");
  }

  start(now: number, { address, isOurs, lease6 }: FormerLease): void {
    this.began = now;
    say(`${this.name}: acquiring lease`);
    this.setUp(this.netns.open());
    this.v4?.start(now, address, isOurs);
    this.v6?.start(now, lease6);
    this.netns.close();
  }

  private setUp(handle: NetnsHandle): void {
    if (this.v6 !== undefined) prepareForV6(handle);
    if (handle.link.up) return;
    say(`Link "${handle.link.name}" down. Attempting to set up`);
    setLink(handle.route, handle.link, { up: true });
  }

  formerLease(): FormerLease {
    const address = this.v4?.client.lease?.offered.address.bytes;
    return { address, isOurs: address !== undefined, lease6: this.v6?.client.lease };
  }

  /** A repeated ADD goes on with it. */
  isUsable(): boolean {
    return this.isAwaited || this.hasRequired;
  }

  wait(request: PendingRequest): void {
    if (this.isAwaited) return void this.pending.add(request);
    // An ADD that is repeated may set the addresses anew.
    if (this.addressWatch === undefined) this.watchAddresses();
    request.client.answer(this.answer());
  }

  /** The client has gone. Returns whether the attachment has no reason to be any more. */
  stopWaiting(request: PendingRequest): boolean {
    return this.pending.remove(request) && this.isAwaited;
  }

  /** Something has arrived, or is due. Returns whether the attachment goes on. */
  wake(now: number): boolean {
    this.v4?.wake(now);
    this.v6?.wake(now);
    if (this.isAwaited && now >= this.graceUntil) this.answerAll();
    if (this.addressWatch?.look(now, (handle) => this.limitLifetimes(handle, now))) this.stopWatching();
    const waited = `waited ${Math.round(now - this.began)} s`;
    this.pending.answerDue(now, () => failure(`no more tries: ${this.obstacle}`, waited));
    if (this.isAwaited && this.pending.isEmpty) {
      this.context.failed(this.network, this.obstacle);
      this.release();
      return false;
    }
    // Without a lease, only an attachment whose link is there goes on asking.
    if (this.isAwaited || this.hasAny || this.netns.canBeOpened()) return true;
    this.forget();
    return false;
  }

  record(durable: boolean): boolean {
    try {
      this.context.journal.write(this.toRecord(), durable);
      return true;
    } catch (error) {
      const problem = `cannot record the lease: ${errorText(error)}`;
      say(`${this.name}: ${problem}`);
      if (!this.isAwaited) return true;
      this.trouble = problem;
      this.pending.answerAll(failure(problem));
      return false;
    }
  }

  private toRecord(): LeaseRecord {
    const { owner, location, options, context, v4, v6 } = this;
    const { network, containerId, ifName } = owner, { netnsPath, cookie, mac } = location, { bootId } = context;
    const leases = { v4: v4?.toRecord(), v6: v6?.toRecord() };
    return { format: 1, network, containerId, ifName, netnsPath, cookie, mac, wishes: options, bootId, ...leases };
  }

  obtained(): void {
    this.context.obtained(this);
    if (!this.isAwaited) return;
    if (this.missing.length === 0) this.answerAll();
    else if (this.hasRequired) this.graceUntil = this.context.clock().boot + GRACE_S;
  }

  private answerAll(): void {
    this.isAwaited = false;
    this.v4?.client.goOnPatiently();
    this.v6?.client.goOnPatiently();
    this.watchAddresses();
    this.pending.answerAll(this.answer());
  }

  answer(): Answer {
    const of4 = this.v4?.client.lease, of6 = this.v6?.client.lease;
    return {
      version: PROTOCOL_VERSION,
      lease: of4 && leaseTextOf(of4.offered),
      lease6: of6 && leaseTextOf6(of6.offered),
    };
  }

  private watchAddresses(): void {
    this.addressWatch = this.orSay(() => new AddressWatch(this.netns.open(), this.context.clock().boot));
  }

  private limitLifetimes(handle: NetnsHandle, now: number): boolean {
    return this.orSay(() => [this.v4, this.v6].every((part) => part?.limitLifetime(handle, now) ?? true)) ?? true;
  }

  private stopWatching(): void {
    this.addressWatch?.close();
    this.addressWatch = undefined;
    this.netns.close();
  }

  /** Releases the leases, wherever the container is by now. */
  release(): void {
    say(`${this.name}: releasing lease`);
    // If we end in between, the next service releases them again.
    this.orSay(() => this.context.journal.releaseLater(this.owner, false));
    const sender = { name: this.name, mac: this.location.mac, hostLink: this.options.hostLink };
    this.v4?.release((to, packet) => sendLastMessage(sender, to, IPV4_TYPE, packet));
    this.v6?.release((to, packet) => sendLastMessage(sender, to, IPV6_TYPE, packet));
    this.forget();
  }

  /** Nothing is left to release. */
  private forget(): void {
    this.close();
    this.orSay(() => this.context.journal.remove(this.owner));
  }

  /** What fails is said, and keeps nothing else from being done: a full disk, for example, a lease from being released. */
  private orSay<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      say(`${this.name}: ${errorText(error)}`);
      return undefined;
    }
  }

  /** The container is another one now, or the service ends: nothing is released. */
  close(): void {
    this.v4?.close();
    this.v6?.close();
    this.addressWatch?.close();
    this.addressWatch = undefined;
    this.netns.closeForAll();
    this.pending.answerAll(failure("the container was deleted meanwhile"));
  }
}
