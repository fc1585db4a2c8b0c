/**
 * One DHCPv4 lease in the world: does what its client says, with sockets that are open only while an answer is awaited.
 */
import { errorText } from "../../cni/error.ts";
import { SyscallError } from "../../ffi/errno.ts";
import { setLink } from "../../ffi/netlink/route/link.ts";
import { randomBytes } from "../../ffi/random.ts";
import { formatAddress } from "../../net/address.ts";
import { formatMac, parseMac } from "../../net/mac.ts";
import { offeredOf, textOf } from "../journal/lease-text.ts";
import type { V4Record } from "../journal/record.ts";
import { Probing } from "../link/arp.ts";
import { PlaceGone, type Visit } from "../link/place.ts";
import { Sockets } from "../link/sockets.ts";
import { endUse, exchangeLease, lowerMtu, setLifetime } from "../link/use.ts";
import { type Deed, endOf, type Lease, LeaseClient } from "../v4/lease/client.ts";
import type { Offered } from "../v4/message/offer.ts";
import { wrap } from "../v4/message/packet.ts";
import type { Wishes } from "../wishes.ts";
import { say, sayRarely } from "./log.ts";

/** Between two messages the sockets are closed, unless somebody waits: a server answers within this time. */
const LISTEN_S = 4;

/** What a lease needs of the attachment that it belongs to. */
export interface Holder {
  /** `container/network/interface`. */
  readonly name: string;
  readonly network: string;
  readonly wishes: Wishes;
  /** Somebody waits for ADD. */
  readonly isAwaited: boolean;
  /** Opens the container's namespace, or shares what is open. Throws PlaceGone. */
  enter(): Visit;
  /** Nothing of this lease needs the namespace now. */
  leave(): void;
  /** A new or changed lease, before anything else learns of it. False: it cannot be recorded, and has been given up. */
  record(durable: boolean): boolean;
  /** The lease can be used. */
  obtained(): void;
  readonly pauses: readonly number[] | undefined;
  readonly broadcasts: boolean;
}

export class V4Lease {
  readonly client: LeaseClient;
  private visit: Visit | undefined;
  private sockets: Sockets | undefined;
  private probing: Probing | undefined;
  private listenUntil = Infinity;
  private serverMac: Uint8Array | undefined;
  /** The last lease, after it has ended. */
  private lost: Offered | undefined;
  mtuBefore: number | undefined;
  /** Reasons why nothing could be sent. */
  private sendFailure: string | undefined;

  constructor(
    private readonly holder: Holder,
    private readonly clock: () => { boot: number; wall: number },
    mac: string,
  ) {
    const { wishes } = holder;
    const identity = {
      mac: parseMac(mac)!,
      clientId: wishes.clientId === undefined ? undefined : Uint8Array.fromHex(wishes.clientId),
      wanted: wishes.wanted,
      provided: new Map(wishes.provided.map(([number, hex]) => [number, Uint8Array.fromHex(hex)])),
      broadcast: wishes.broadcast || holder.broadcasts,
    };
    const random = () => new DataView(randomBytes(4).buffer).getUint32(0) / 2 ** 32;
    const settings = {
      probe: wishes.probe !== "none",
      allowsServer: (server: Uint8Array) => isAllowed(formatAddress(server), wishes),
      random,
      newXid: () => new DataView(randomBytes(4).buffer).getUint32(0),
      pauses: holder.pauses,
    };
    this.client = new LeaseClient(identity, settings, holder.isAwaited);
  }

  /** When `wake` is to be called, whether or not something has arrived. */
  get due(): number {
    return Math.min(this.client.due, this.probing?.due ?? Infinity, this.listenUntil);
  }

  get fds(): number[] {
    const found: number[] = [];
    if (this.sockets) found.push(this.sockets.fd);
    if (this.probing) found.push(this.probing.fd);
    return found;
  }

  get lease(): Lease | undefined {
    return this.client.lease;
  }

  /** What stands in the way of a lease. */
  get obstacle(): string {
    return this.sendFailure ?? this.client.obstacle;
  }

  /** `had`: the address of an earlier lease; `isOurs`: it may be ours still. */
  start(now: number, had?: Uint8Array, isOurs = false): void {
    this.run(had !== undefined && isOurs ? this.client.reboot(now, had) : this.client.start(now, had), now);
  }

  /** Goes on with a lease of an earlier process. */
  resume(now: number, { lease, sinceWall, since, serverMac }: V4Record, isSameBoot: boolean, spread: number): void {
    this.serverMac = parseMac(serverMac);
    const began = isSameBoot ? since : now - Math.max(0, this.clock().wall - sinceWall);
    this.client.resume(now, { offered: offeredOf(lease), since: began }, spread);
  }

  toRecord(): V4Record | undefined {
    const { lease } = this.client, serverMac = this.serverMac === undefined ? "" : formatMac(this.serverMac);
    if (lease !== undefined) {
      const { boot, wall } = this.clock();
      return { lease: textOf(lease.offered), since: lease.since, sinceWall: wall - (boot - lease.since), serverMac };
    }
    // One that has ended: whoever goes on with it asks for another.
    const { lost } = this;
    return lost && { lease: { ...textOf(lost), lease: 1, renew: 1, rebind: 1 }, since: 0, sinceWall: 0, serverMac };
  }

  /** Something has arrived, or is due. */
  wake(now: number): void {
    try {
      this.look(now);
      if (now >= this.client.due) this.run(this.client.tick(now), now);
    } catch (error) {
      if (!(error instanceof SyscallError) && !(error instanceof PlaceGone)) throw error;
      // A link that goes down or away is an error of the socket's; the next message opens another.
      this.sendFailure = errorText(error);
      this.close();
    }
    this.closeWhenIdle(now);
  }

  private look(now: number): void {
    const outcome = this.probing?.look(now);
    if (outcome !== undefined) {
      this.probing?.close();
      this.probing = undefined;
      this.run(this.client.probed(outcome === "taken", now), now);
    }
    for (let reply = this.sockets?.receive(); reply !== undefined; reply = this.sockets?.receive()) {
      const before = this.client.state, deeds = this.client.receive(reply.message, now);
      if (this.client.state !== before || deeds.some((deed) => deed.do === "use")) this.serverMac = reply.from;
      this.run(deeds, now);
    }
  }

  private closeWhenIdle(now: number): void {
    const { state } = this.client;
    const isOver = state === "bound" || state === "idle" || now >= this.listenUntil;
    if (isOver && this.probing === undefined) this.close();
  }

  close(): void {
    this.probing?.close();
    this.sockets?.close();
    this.probing = this.sockets = undefined;
    this.listenUntil = Infinity;
    if (this.visit !== undefined) this.holder.leave();
    this.visit = undefined;
  }

  private run(deeds: readonly Deed[], now: number): void {
    for (const deed of deeds) this.perform(deed, now);
  }

  private perform(deed: Deed, now: number): void {
    const { holder } = this, { name } = holder;
    switch (deed.do) {
      case "log":
        return sayRarely(`${holder.network} ${deed.text}`, `${name}: ${deed.text}`);
      case "broadcast":
        return this.send(now, (sockets) => sockets.broadcast(deed.bytes));
      case "unicast":
        return this.send(now, (sockets) => sockets.unicast(deed.bytes, deed.to, this.serverMac!));
      case "probe":
        this.probing = new Probing(this.enter(), deed.address, holder.wishes.probe, now);
        this.probing.look(now);
        return;
      case "use":
        return this.use(deed.lease, deed.before, now);
      case "stopUsing":
        return this.stopUsing(deed.lease, deed.reason);
    }
  }

  private send(now: number, work: (sockets: Sockets) => void): void {
    try {
      const visit = this.enter();
      this.sockets ??= new Sockets(visit, this.client.lease?.offered.address.bytes);
      work(this.sockets);
      this.sendFailure = undefined;
    } catch (error) {
      if (!(error instanceof SyscallError) && !(error instanceof PlaceGone)) throw error;
      this.sendFailure = errorText(error);
      this.close();
    }
    this.listenUntil = this.holder.isAwaited ? Infinity : now + LISTEN_S;
  }

  private enter(): Visit {
    if (this.visit !== undefined) return this.visit;
    const visit = this.visit = this.holder.enter(), { link } = visit;
    if (!link.up) {
      say(`Link "${link.name}" down. Attempting to set up`);
      setLink(visit.route, link, { up: true });
    }
    return visit;
  }

  private use(lease: Lease, before: Lease | undefined, now: number): void {
    const { holder } = this, { offered } = lease, seconds = endOf(lease) - now;
    const isNew = before === undefined,
      isMoved = isNew || formatAddress(before.offered.address.bytes) !== formatAddress(offered.address.bytes);
    if (!holder.record(isMoved)) return;
    const facts = { address: formatAddress(offered.address.bytes), server: formatAddress(offered.server), seconds };
    if (isMoved) say(`${holder.name}: lease acquired, expiration is ${expirationOf(seconds)}`, facts);
    else {sayRarely(
        `${holder.network} renewed`,
        `${holder.name}: lease renewed, expiration is ${expirationOf(seconds)}`,
        facts,
      );}
    this.applied(() => {
      const visit = this.enter();
      this.mtuBefore ??= lowerMtu(visit, offered, holder.wishes);
      // The plugin that made the link is about to give it the address.
      if (holder.isAwaited) return;
      exchangeLease(visit, { before: before?.offered, after: offered, seconds }, holder.wishes);
    });
    holder.obtained();
  }

  /** The address may have appeared. Answers whether it has, with its lifetime. */
  limitLifetime(visit: Visit, now: number): boolean {
    const { lease } = this.client;
    return lease === undefined || setLifetime(visit, lease.offered, endOf(lease) - now);
  }

  private stopUsing(lease: Lease, reason: string): void {
    const { holder } = this;
    say(`${holder.name}: ${reason}`, { address: formatAddress(lease.offered.address.bytes) });
    this.close();
    this.lost = lease.offered;
    this.applied(() => endUse(this.enter(), lease.offered, holder.wishes));
    this.close();
    holder.record(false);
  }

  /** What cannot be applied to the link is said; the lease stays what it is. */
  private applied(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (error instanceof PlaceGone) return void (this.sendFailure = errorText(error));
      say(`${this.holder.name}: ${errorText(error)}`);
    }
  }

  /** Gives the lease back. What holds the sockets may be gone: then `throughHost` sends in its name. */
  release(throughHost: (to: Uint8Array, packet: Uint8Array) => void): void {
    const deeds = this.client.release(), mac = this.serverMac;
    this.close();
    for (const deed of deeds) {
      if (deed.do !== "unicast" || mac === undefined) continue;
      try {
        const sockets = new Sockets(this.enter(), deed.from);
        try {
          sockets.unicastAtOnce(deed.bytes, deed.to, mac);
        } finally {
          sockets.close();
        }
      } catch (error) {
        if (!(error instanceof SyscallError) && !(error instanceof PlaceGone)) throw error;
        throughHost(mac, wrap(deed.from, deed.to, deed.bytes));
      }
    }
    this.close();
  }
}

function isAllowed(server: string, { servers, denied }: Wishes): boolean {
  return !denied.includes(server) && (servers.length === 0 || servers.includes(server));
}

function expirationOf(seconds: number): string {
  return seconds === Infinity ? "never" : new Date(Date.now() + seconds * 1000).toISOString();
}
