/** An attachment with its lease: who waits for it, where its link is, and its record in the journal. */
import { errorText } from "../../cni/error.ts";
import type { Owner } from "../../contract/owner.ts";
import { openEvents } from "../../ffi/netlink/events.ts";
import type { KernelTransport } from "../../ffi/netlink/transport.ts";
import { RTNLGRP_IPV4_IFADDR } from "../../ffi/netlink/uapi/rtnetlink.ts";
import { parseMac } from "../../net/mac.ts";
import type { Journal } from "../journal/journal.ts";
import { textOf } from "../journal/lease-text.ts";
import type { LeaseRecord } from "../journal/record.ts";
import { type Place, PlaceGone, Visit } from "../link/place.ts";
import { sendThroughHost } from "../link/through-host.ts";
import { type Answer, failure, nameOf, ORDER_VERSION } from "../order.ts";
import type { Wishes } from "../wishes.ts";
import { say } from "./log.ts";
import { type Holder, V4Lease } from "./v4-lease.ts";

/** What all attachments share. */
export interface Surroundings {
  journal: Journal;
  bootId: string;
  /** Waits between messages while somebody waits, unless the usual ones are good. */
  pauses: readonly number[] | undefined;
  broadcasts: boolean;
  clock(): { boot: number; wall: number };
  /** How the last attempt on a network ended; undefined: well. */
  outcome(network: string, obstacle: string | undefined): void;
}

/** Somebody who waits for ADD. */
export interface Waiter {
  deadline: number;
  answer(answer: Answer): void;
}

/** For how long the address is looked out for after ADD, in seconds. */
const SETTLE_S = 30;

export class Attachment implements Holder {
  readonly name: string;
  readonly v4: V4Lease;
  private readonly waiters = new Set<Waiter>();
  private visit: Visit | undefined;
  private visitors = 0;
  private settling: { events: KernelTransport; until: number } | undefined;
  private began = 0;

  private constructor(
    readonly owner: Owner,
    readonly wishes: Wishes,
    private readonly place: Place & { mac: string },
    private readonly around: Surroundings,
    isAwaited: boolean,
  ) {
    this.name = nameOf(owner);
    this.isAwaited = isAwaited;
    this.v4 = new V4Lease(this, around.clock, place.mac);
  }

  isAwaited: boolean;

  /** For ADD. Throws PlaceGone. `netns` is an open descriptor of the namespace. */
  static begin(owner: Owner, wishes: Wishes, netnsPath: string, netns: number, around: Surroundings): Attachment {
    const visit = Visit.begin({ netnsPath, ifName: owner.ifName }, netns);
    const place = { netnsPath, cookie: visit.cookie, ifName: owner.ifName, mac: visit.link.mac };
    const attachment = new Attachment(owner, wishes, place, around, true);
    attachment.visit = visit;
    return attachment;
  }

  /** With what the journal says. */
  static resume(record: LeaseRecord, spread: number, around: Surroundings): Attachment {
    const { netnsPath, cookie, ifName, mac, wishes, v4 } = record;
    const attachment = new Attachment(record, wishes, { netnsPath, cookie, ifName, mac }, around, false);
    const now = around.clock().boot;
    if (v4 !== undefined) attachment.v4.resume(now, v4, record.bootId === around.bootId, spread);
    attachment.v4.mtuBefore = record.mtuBefore;
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

  /** When `wake` is to be called, whether or not something has arrived. */
  get due(): number {
    let due = Math.min(this.v4.due, this.settling?.until ?? Infinity);
    for (const { deadline } of this.waiters) due = Math.min(due, deadline);
    return due;
  }

  get fds(): number[] {
    return this.settling === undefined ? this.v4.fds : [...this.v4.fds, this.settling.events.fd];
  }

  /** `had`: the address of an earlier lease, which may be ours still when `isOurs`. */
  start(now: number, had?: Uint8Array, isOurs = false): void {
    this.began = now;
    say(`${this.name}: acquiring lease`);
    this.v4.start(now, had, isOurs);
  }

  /** A repeated ADD goes on with it. */
  isUsable(): boolean {
    return this.isAwaited || this.v4.lease !== undefined;
  }

  wait(waiter: Waiter): void {
    if (this.v4.lease === undefined) return void this.waiters.add(waiter);
    // An ADD that is repeated may set the address anew.
    if (this.settling === undefined) this.lookOutForAddress();
    waiter.answer(this.answer());
  }

  /** Nobody waits any more; answers whether the attachment has no reason to be. */
  forget(waiter: Waiter): boolean {
    return this.waiters.delete(waiter) && this.waiters.size === 0 && this.isAwaited;
  }

  /** Something has arrived, or is due. Answers whether it goes on. */
  wake(now: number): boolean {
    this.v4.wake(now);
    this.settle(now);
    for (const waiter of this.waiters) {
      if (now < waiter.deadline) continue;
      this.waiters.delete(waiter);
      waiter.answer(failure(`no more tries: ${this.v4.obstacle}`, `waited ${Math.round(now - this.began)} s`));
    }
    if (this.isAwaited && this.waiters.size === 0) {
      this.around.outcome(this.network, this.v4.obstacle);
      this.release();
      return false;
    }
    return this.isAwaited || this.v4.lease !== undefined || this.isThere();
  }

  /** Without a lease, only an attachment whose link is there goes on asking. */
  private isThere(): boolean {
    try {
      this.enter();
      this.leave();
      return true;
    } catch (error) {
      if (error instanceof PlaceGone) return false;
      throw error;
    }
  }

  enter(): Visit {
    this.visit ??= Visit.begin(this.place);
    this.visitors++;
    return this.visit;
  }

  leave(): void {
    this.visitors--;
    this.endVisit();
  }

  private endVisit(): void {
    if (this.visitors > 0 || this.settling !== undefined) return;
    this.visit?.end();
    this.visit = undefined;
  }

  record(durable: boolean): boolean {
    try {
      this.around.journal.write(this.toRecord(), durable);
      return true;
    } catch (error) {
      say(`${this.name}: cannot record the lease: ${errorText(error)}`);
      if (!this.isAwaited) return true;
      const problem = failure(`cannot record the lease: ${errorText(error)}`);
      for (const waiter of this.waiters) waiter.answer(problem);
      this.waiters.clear();
      return false;
    }
  }

  private toRecord(): LeaseRecord {
    const { owner, place, wishes, around, v4 } = this;
    const { network, containerId, ifName } = owner, { netnsPath, cookie, mac } = place;
    return {
      format: 1,
      network,
      containerId,
      ifName,
      netnsPath,
      cookie,
      mac,
      wishes,
      bootId: around.bootId,
      v4: v4.toRecord(),
      mtuBefore: v4.mtuBefore,
    };
  }

  obtained(): void {
    this.around.outcome(this.network, undefined);
    if (!this.isAwaited) return;
    this.isAwaited = false;
    this.lookOutForAddress();
    for (const waiter of this.waiters) waiter.answer(this.answer());
    this.waiters.clear();
  }

  answer(): Answer {
    return { version: ORDER_VERSION, lease: textOf(this.v4.lease!.offered) };
  }

  /** The plugin that made the link gives it the address without a lifetime. */
  private lookOutForAddress(): void {
    try {
      const visit = this.enter();
      const events = visit.inside(() => openEvents(RTNLGRP_IPV4_IFADDR));
      this.settling = { events, until: this.around.clock().boot + SETTLE_S };
      this.leave();
    } catch (error) {
      say(`${this.name}: ${errorText(error)}`);
    }
  }

  private settle(now: number): void {
    const { settling, visit } = this;
    if (settling === undefined || visit === undefined) return;
    const isSettled = this.attempted(() => {
      drain(settling.events);
      return this.v4.limitLifetime(visit, now);
    });
    if (isSettled || now >= settling.until) this.stopSettling();
  }

  private attempted(work: () => boolean): boolean {
    try {
      return work();
    } catch (error) {
      say(`${this.name}: ${errorText(error)}`);
      return true;
    }
  }

  private stopSettling(): void {
    this.settling?.events.close();
    this.settling = undefined;
    this.endVisit();
  }

  /** Gives the lease back, wherever the container is by now. */
  release(): void {
    say(`${this.name}: releasing lease`);
    // Whoever comes after us, if we end in between, gives it back again.
    this.around.journal.giveUp(this.owner, false);
    this.v4.release((to, packet) => this.sendThroughHost(to, packet));
    this.close();
    this.around.journal.remove(this.owner);
  }

  /** The container is another one now, or the service ends: nothing is given back. */
  close(): void {
    this.v4.close();
    this.stopSettling();
    this.visit?.end();
    this.visit = undefined;
    for (const waiter of this.waiters) waiter.answer(failure("the container was deleted meanwhile"));
    this.waiters.clear();
  }

  /** Its link is gone. */
  private sendThroughHost(to: Uint8Array, packet: Uint8Array): void {
    const { hostLink } = this.wishes;
    try {
      if (hostLink === undefined) throw new Error("its link is gone, and the configuration names none of the host");
      sendThroughHost(hostLink, parseMac(this.place.mac)!, to, packet);
    } catch (error) {
      say(`${this.name}: the server is not told that the lease is over: ${errorText(error)}`);
    }
  }
}

/** What changed does not matter, only that something did. */
function drain(events: KernelTransport): void {
  try {
    while (events.receive(0) !== undefined);
  } catch {
    // Notifications were lost: one more reason to look.
  }
}
