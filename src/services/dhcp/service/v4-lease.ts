/** A DHCPv4 lease on a link: performs the actions of its client. */
import { ALL_CARDS } from "../../../ffi/socket/packet.ts";
import { formatAddress } from "../../../net/address.ts";
import { formatMac, parseMac } from "../../../net/mac.ts";
import { leaseTextOf, offeredOf } from "../journal/lease-text.ts";
import { beginningOf, LONG_AGO, stampsOf, type V4Record } from "../journal/record.ts";
import { arpProbing } from "../link/arp.ts";
import type { NetnsHandle } from "../link/netns-handle.ts";
import { EVERYBODY, Sockets } from "../link/sockets.ts";
import { exchangeLease, lowerMtu, removeLeaseFromLink, setLifetime } from "../link/use.ts";
import { type Action, endOf, type Lease, LeaseClient } from "../v4/lease/client.ts";
import type { Message } from "../v4/message/message.ts";
import type { Offered } from "../v4/message/offer.ts";
import { wrap } from "../v4/message/packet.ts";
import type { LeaseOptions } from "../lease-options.ts";
import { FamilyLease, type LeaseAttachment, random, random32 } from "./family-lease.ts";

export class V4Lease extends FamilyLease<Action, Message, Sockets> {
  readonly client: LeaseClient;
  private serverMac: Uint8Array | undefined;
  private origin: V4Record["origin"];
  /** The last lease, after it has ended. */
  private ended: Offered | undefined;
  /** The plugin that made the link has given it the address; from then on it is ours to do. */
  private isPlaced = false;

  constructor(attachment: LeaseAttachment, mac: string) {
    super(attachment);
    const { options } = attachment;
    const identity = {
      mac: parseMac(mac)!,
      clientId: options.clientId === undefined ? undefined : Uint8Array.fromHex(options.clientId),
      wanted: options.wanted,
      provided: new Map(options.provided.map(([number, hex]) => [number, Uint8Array.fromHex(hex)])),
      broadcast: options.broadcast || attachment.context.broadcasts,
    };
    const settings = {
      probe: options.probe !== "none",
      allowsServer: (server: Uint8Array) => isAllowed(formatAddress(server), options),
      random,
      newXid: random32,
      pauses: attachment.context.pauses,
    };
    this.client = new LeaseClient(identity, settings, attachment.isAwaited);
  }

  get obstacle(): string {
    return this.sendFailure ?? this.client.obstacle;
  }

  /** `had`: the address of an earlier lease; `isOurs`: it may be ours still. */
  start(now: number, had?: Uint8Array, isOurs = false): void {
    this.run(had !== undefined && isOurs ? this.client.reboot(now, had) : this.client.start(now, had), now);
  }

  /** Goes on with a lease of an earlier process. */
  resume(now: number, record: V4Record, isSameBoot: boolean, spread: number): void {
    this.serverMac = parseMac(record.serverMac);
    this.origin = record.origin;
    this.isPlaced = true;
    const since = beginningOf(record, isSameBoot, { ...this.attachment.context.clock(), boot: now });
    this.client.resume(now, { offered: offeredOf(record.lease), since }, spread);
  }

  toRecord(): V4Record | undefined {
    const { client: { lease }, origin } = this, serverMac = this.serverMac && formatMac(this.serverMac) || "";
    if (lease !== undefined) {
      return {
        lease: leaseTextOf(lease.offered),
        ...stampsOf(lease.since, this.attachment.context.clock()),
        serverMac,
        origin,
      };
    }
    // The lease has ended: the next service asks for another one.
    const { ended } = this;
    return ended &&
      { lease: { ...leaseTextOf(ended), lease: 1, renew: 1, rebind: 1 }, ...LONG_AGO, serverMac, origin };
  }

  protected open(handle: NetnsHandle): Sockets {
    const { lease } = this.client, sockets = new Sockets(handle, lease?.offered.address.bytes);
    if (lease === undefined || sockets.hasOwnEnd || !this.isPlaced) return sockets;
    // The server's answer comes to the address, which somebody in the container has removed.
    const { offered } = lease, seconds = this.lifetimeOf(lease, this.attachment.context.clock().boot);
    this.applied(() => exchangeLease(handle, { before: offered, after: offered, seconds }, this.attachment.options));
    sockets.close();
    return new Sockets(handle, offered.address.bytes);
  }

  protected receive(message: Message, from: Uint8Array, now: number): void {
    const before = this.client.state, actions = this.client.receive(message, now);
    if (this.client.state !== before || actions.some((action) => action.do === "use")) this.serverMac = from;
    this.run(actions, now);
  }

  protected perform(action: Action, now: number): void {
    switch (action.do) {
      case "log":
        return this.log(action.text);
      case "broadcast":
        return this.send(now, (sockets) => sockets.broadcast(action.bytes));
      case "unicast":
        return this.send(now, (sockets) => {
          // The kernel may not have found the server: a full table of neighbours, a filter in the container.
          if (action.isRepeated) sockets.unicastAtOnce(action.bytes, action.to, this.serverMac!);
          else sockets.unicast(action.bytes, action.to, this.serverMac!);
        });
      case "probe":
        return this.probe((handle) => arpProbing(handle, action.address, this.attachment.options.probe, now));
      case "use":
        return this.use(action.lease, action.before, now);
      case "stopUsing":
        return this.stopUsing(action.lease, action.reason, action.isRefused);
    }
  }

  private use(lease: Lease, before: Lease | undefined, now: number): void {
    const { attachment } = this, { offered } = lease, seconds = endOf(lease) - now;
    const address = formatAddress(offered.address.bytes), server = formatAddress(offered.server);
    if (attachment.isAwaited) this.origin ??= { server, mac: formatMac(this.serverMac!) };
    const isMoved = before === undefined || formatAddress(before.offered.address.bytes) !== address;
    if (!attachment.record(isMoved)) return;
    this.announceLease(isMoved, seconds, { address, server, seconds });
    this.applied((handle) => {
      lowerMtu(handle, offered, attachment.options);
      // The plugin that made the link is about to give it the address.
      if (attachment.isAwaited) return;
      const had = before?.offered ?? (attachment.options.onExpiry === "keep" ? this.ended : undefined);
      exchangeLease(
        handle,
        { before: had, after: offered, seconds: this.lifetimeOf(lease, now) },
        attachment.options,
      );
      this.isPlaced = true;
    });
    this.ended = undefined;
    attachment.obtained();
  }

  limitLifetime(handle: NetnsHandle, now: number): boolean {
    const { lease } = this.client;
    if (lease === undefined) return true;
    if (!setLifetime(handle, lease.offered, this.lifetimeOf(lease, now))) return false;
    return this.isPlaced = true;
  }

  /** The lifetime of the address, in seconds. */
  private lifetimeOf(lease: Lease, now: number): number {
    return this.attachment.options.onExpiry === "keep" ? Infinity : endOf(lease) - now;
  }

  private stopUsing(lease: Lease, reason: string, isRefused: boolean): void {
    const { options } = this.attachment, how = isRefused ? "remove" : options.onExpiry;
    this.ended = lease.offered;
    this.ends(
      lease.offered.address.bytes,
      reason,
      (handle) => removeLeaseFromLink(handle, lease.offered, how, options),
    );
  }

  /**
   * Releases the lease. Where the link is gone, `throughHost` sends in its name. Then nothing on the host looks at the
   * packet, and the container may have forged who its server is. So it goes to the server that ADD found, or to everybody.
   */
  release(throughHost: (to: Uint8Array, packet: Uint8Array) => void): void {
    const actions = this.client.release(), { serverMac: mac, origin } = this;
    for (const action of actions) {
      if (action.do !== "unicast" || mac === undefined) continue;
      const { bytes, from, to } = action;
      this.sendLast(
        (handle) => new Sockets(handle, from),
        (sockets) => sockets.unicastAtOnce(bytes, to, mac),
        () => {
          const isAsAtFirst = origin?.server === formatAddress(to) && origin.mac === formatMac(mac);
          if (isAsAtFirst) throughHost(mac, wrap(from, to, bytes));
          else throughHost(ALL_CARDS, wrap(from, EVERYBODY, bytes));
        },
      );
    }
  }
}

function isAllowed(server: string, { servers, denied }: LeaseOptions): boolean {
  return !denied.includes(server) && (servers.length === 0 || servers.includes(server));
}
