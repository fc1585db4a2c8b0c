/** An attachment with its leases: the requests for them, the link's location, and the record in the journal. */
import { errorText } from "../../cni/error.ts";
import type { Owner } from "../../contract/owner.ts";
import { setLink } from "../../ffi/netlink/route/link.ts";
import type { Surroundings } from "../../netavark/program/surroundings.ts";
import type { Holder } from "../../runtime/cli/answered-add.ts";
import type { Journal } from "../journal/journal.ts";
import { textOf } from "../journal/lease-text.ts";
import { textOf6 } from "../journal/lease-text6.ts";
import type { Clock, LeaseRecord } from "../journal/record.ts";
import type { FamilyName, LeaseOptions } from "../lease-options.ts";
import { NetnsHandle as Visit, type Place } from "../link/place.ts";
import { prepareForV6 } from "../link/sockets6.ts";
import { IPV4_TYPE, IPV6_TYPE } from "../link/through-host.ts";
import { type AcquireOrder, type Answer, failure, nameOf, ORDER_VERSION } from "../order.ts";
import { sendLastMessage } from "./last-message.ts";
import { say } from "./log.ts";
import { Settling } from "./settling.ts";
import { SharedVisit } from "./shared-visit.ts";
import type { Earlier, ServiceContext, Waiter } from "./surroundings.ts";
import { V4Lease } from "./v4-lease.ts";
import { V6Lease } from "./v6-lease.ts";
import { Waiters } from "./waiters.ts";

/** How long a lease that is not required is waited for when the others are there, in seconds. */
const GRACE_S = 5;

export class Attachment implements Holder {
  readonly name: string;
  readonly v4: V4Lease | undefined;
  readonly v6: V6Lease | undefined;
  private readonly waiters = new Waiters();
  private readonly visit: SharedVisit;
  private settling: Settling | undefined;
  private began = 0;
  /** What is wrong on our side. */
  private trouble: string | undefined;
  private graceUntil = Infinity;

  private constructor(
    readonly owner: Owner,
    readonly options: LeaseOptions,
    readonly place: Place & { mac: string },
    private readonly around: Surroundings,
    public isAwaited: boolean,
    visit?: Visit,
  ) {
    this.visit = new SharedVisit(place, visit);
    this.name = nameOf(owner);
    if (wishes.v4) this.v4 = new V4Lease(this, place.mac);
    if (wishes.v6 !== undefined) this.v6 = new V6Lease(this, wishes.v6);
  }

  /** For ADD. Throws PlaceGone. `netns` is an open descriptor of the namespace. */
  static begin({ owner, netnsPath, wishes }: AcquireOrder, netns: number, context: ServiceContext): Attachment {
    const visit = Visit.begin({ netnsPath, ifName: owner.ifName }, netns);
    const place = { netnsPath, cookie: visit.cookie, ifName: owner.ifName, mac: visit.link.mac };
    return new Attachment(owner, wishes, place, around, true, visit);
  }

  /** Goes on with a record of the journal. */
  static resume(record: LeaseRecord, spread: number, around: Surroundings): Attachment {
    const { netnsPath, cookie, ifName, mac, wishes, v4, v6 } = record, isSameBoot = record.bootId === around.bootId;
    const attachment = new Attachment(record, wishes, { netnsPath, cookie, ifName, mac }, around, false);
    const now = around.clock().boot;
    if (v4 !== undefined) attachment.v4?.resume(now, v4, isSameBoot, spread);
    if (v6 !== undefined) attachment.v6?.resume(now, v6, isSameBoot);
    return attachment;
  }

  get network(): string {
    return this.owner.network;
  }

  get cookie(): string | undefined {
    return this.place.cookie;
  }

  get pauses(): readonly number[] | undefined {
    return this.around.pauses;
  }

  get broadcasts(): boolean {
    return this.around.broadcasts;
  }

  clock(): Clock {
    return this.around.clock();
  }

  /** When `wake` is to be called, whether or not something has arrived. */
  get due(): number {
    const parts = Math.min(this.v4?.due ?? Infinity, this.v6?.due ?? Infinity);
    const grace = this.isAwaited ? this.graceUntil : Infinity;
    return Math.min(parts, this.settling?.until ?? Infinity, grace, this.waiters.due);
  }

  get fds(): number[] {
    return [...this.v4?.fds ?? [], ...this.v6?.fds ?? [], ...this.settling === undefined ? [] : [this.settling.fd]];
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
    return this.hasAny && !this.missing.some((family) => this.wishes.required.includes(family));
  }

  private get obstacle(): string {
    const missing = this.missing;
    return this.trouble ??
      [missing.includes("ipv4") && this.v4?.obstacle, missing.includes("ipv6") && this.v6?.obstacle]
        .filter((text) => text).join("; ");
  }

  start(now: number, { address, isOurs, lease6 }: Earlier = { isOurs: false }): void {
    this.began = now;
    say(`${this.name}: acquiring lease`);
    const visit = this.enter();
    this.setUp(visit);
    this.v4?.start(now, address, isOurs);
    this.v6?.start(now, lease6);
    this.leave();
  }

  private setUp(visit: Visit): void {
    if (this.v6 !== undefined) prepareForV6(visit);
    if (visit.link.up) return;
    say(`Link "${visit.link.name}" down. Attempting to set up`);
    setLink(visit.route, visit.link, { up: true });
  }

  had(): Earlier {
    const address = this.v4?.client.lease?.offered.address.bytes;
    return { address, isOurs: address !== undefined, lease6: this.v6?.client.lease };
  }

  /** A repeated ADD goes on with it. */
  isUsable(): boolean {
    return this.isAwaited || this.hasRequired;
  }

  wait(waiter: Waiter): void {
    if (this.isAwaited) return void this.waiters.add(waiter);
    // An ADD that is repeated may set the addresses anew.
    if (this.settling === undefined) this.settle();
    waiter.answer(this.answer());
  }

  /** The client has gone. Returns whether the attachment has no reason to be any more. */
  forget(waiter: Waiter): boolean {
    return this.waiters.forget(waiter) && this.isAwaited;
  }

  /** Something has arrived, or is due. Returns whether the attachment goes on. */
  wake(now: number): boolean {
    this.v4?.wake(now);
    this.v6?.wake(now);
    if (this.isAwaited && now >= this.graceUntil) this.answerAll();
    if (this.settling?.look(now, (visit) => this.limitLifetimes(visit, now))) this.stopSettling();
    const waited = `waited ${Math.round(now - this.began)} s`;
    this.waiters.answerDue(now, () => failure(`no more tries: ${this.obstacle}`, waited));
    if (this.isAwaited && this.waiters.isEmpty) {
      this.around.failed(this.network, this.obstacle);
      this.release();
      return false;
    }
    // Without a lease, only an attachment whose link is there goes on asking.
    return this.isAwaited || this.hasAny || this.visit.isPossible();
  }

  enter(): Visit {
    return this.visit.enter();
  }

  leave(): void {
    this.visit.leave();
  }

  record(durable: boolean): boolean {
    try {
      this.around.journal.write(this.toRecord(), durable);
      return true;
    } catch (error) {
      const problem = `cannot record the lease: ${errorText(error)}`;
      if (this.isAwaited) {
        this.refuse(problem);
        return false;
      }
      this.trouble = problem;
      say(`${this.name}: ${problem}`);
      return true;
    }
  }

  refuse(problem: string): void {
    this.trouble = problem;
    say(`${this.name}: ${problem}`);
    this.waiters.answerAll(failure(problem));
  }

  private toRecord(): LeaseRecord {
    const { owner, place, wishes, around, v4, v6 } = this;
    const { network, containerId, ifName } = owner, { netnsPath, cookie, mac } = place, { bootId } = around;
    const leases = { v4: v4?.toRecord(), v6: v6?.toRecord() };
    return { format: 1, network, containerId, ifName, netnsPath, cookie, mac, wishes, bootId, ...leases };
  }

  obtained(): void {
    this.around.obtained(this);
    if (!this.isAwaited) return;
    if (this.missing.length === 0) this.answerAll();
    else if (this.hasRequired) this.graceUntil = this.clock().boot + GRACE_S;
  }

  private answerAll(): void {
    this.isAwaited = false;
    this.settle();
    this.waiters.answerAll(this.answer());
  }

  answer(): Answer {
    const of4 = this.v4?.client.lease, of6 = this.v6?.client.lease;
    return {
      version: ORDER_VERSION,
      lease: of4 && textOf(of4.offered),
      lease6: of6 && textOf6(of6.offered),
    };
  }

  private settle(): void {
    try {
      this.settling = new Settling(this.enter(), this.clock().boot);
    } catch (error) {
      say(`${this.name}: ${errorText(error)}`);
    }
  }

  private limitLifetimes(visit: Visit, now: number): boolean {
    try {
      return [this.v4, this.v6].every((part) => part?.limitLifetime(visit, now) ?? true);
    } catch (error) {
      say(`${this.name}: ${errorText(error)}`);
      return true;
    }
  }

  private stopSettling(): void {
    this.settling?.close();
    this.settling = undefined;
    this.leave();
  }

  /** Gives the leases back, wherever the container is by now. */
  release(): void {
    say(`${this.name}: releasing lease`);
    // If we end in between, the next service gives them back again.
    this.inJournal((journal) => journal.giveUp(this.owner, false));
    const sender = { name: this.name, mac: this.place.mac, hostLink: this.wishes.hostLink };
    this.v4?.release((to, packet) => sendLastMessage(sender, to, IPV4_TYPE, packet));
    this.v6?.release(this.clock().boot, (to, packet) => sendLastMessage(sender, to, IPV6_TYPE, packet));
    this.abandon();
  }

  /** Its link is gone, and there is nothing to give back. */
  abandon(): void {
    this.close();
    this.inJournal((journal) => journal.remove(this.owner));
  }

  /** A directory that cannot be written to does not keep a lease from being given back. */
  private inJournal(work: (journal: Journal) => void): void {
    try {
      work(this.around.journal);
    } catch (error) {
      say(`${this.name}: ${errorText(error)}`);
    }
  }

  /** The container is another one now, or the service ends: nothing is given back. */
  close(): void {
    this.v4?.close();
    this.v6?.close();
    this.settling?.close();
    this.settling = undefined;
    this.visit.end();
    this.waiters.answerAll(failure("the container was deleted meanwhile"));
  }
}
