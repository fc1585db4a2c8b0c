/**
 * `dhcp daemon`: holds the leases of all containers of the host in one process with one thread. It waits for messages,
 * for those who ask something of it, and for the earliest thing that is due; otherwise it sleeps.
 */
import { counted } from "../../../contract/counted.ts";
import { errorText } from "../../../cni/error.ts";
import type { Owner } from "../../../contract/owner.ts";
import { note } from "../../../contract/trace.ts";
import { bootId } from "../../../ffi/boot.ts";
import { Alarm, preciseSecondsSinceBoot } from "../../../ffi/clock.ts";
import { closeFile, identify } from "../../../ffi/files.ts";
import type { Daemon } from "../../daemon/daemon.ts";
import { expectLongLife } from "../../daemon/long-life.ts";
import type { Entry, Journal } from "../journal/journal.ts";
import { endOfLeases, type LeaseRecord } from "../journal/record.ts";
import { LinkGone } from "../link/netns-handle.ts";
import {
  type AcquireRequest,
  failure,
  type NetworkReport,
  ownerName,
  PROTOCOL_VERSION,
  type ServiceRequest,
} from "../service-protocol.ts";
import { parsePrefix } from "../../../net/address.ts";
import { Attachment } from "./attachment.ts";
import { FailedAdds } from "./failed-adds.ts";
import { type Client, Clients } from "./clients.ts";
import { type Flags, pausesOf } from "./flags.ts";
import { say, sayRarely } from "./log.ts";
import { FormerLeases, ReleasedAddresses } from "./former-leases.ts";
import { leaseOfRecord6 } from "./v6-lease.ts";
import type { FormerLease, ServiceContext } from "./service-context.ts";

const PATIENCE_S = 60;
/** How long renewals that are due after a start take turns, in seconds. */
const SPREAD_S = 10;
/** How long the address of a container of an earlier boot is remembered after its lease. */
const MEMORY_S = 7 * 24 * 3600;
const WAKES_BETWEEN_COLLECTIONS = 1000;
/** So many fit into an answer. */
const MOST_LISTED = 200;

export type ServiceSettings = Pick<
  Flags,
  "hostPrefix" | "broadcast" | "timeout" | "longestPause" | "patience" | "idleAfter"
>;

export class Service {
  /** By name. */
  private readonly attachments = new Map<string, Attachment>();
  private readonly formerLeases = new FormerLeases();
  private readonly releasedAddresses: ReleasedAddresses;
  private readonly failedAdds: FailedAdds;
  private readonly alarm = new Alarm();
  private lastRequest = preciseSecondsSinceBoot();
  private readonly ownNetns = identify("/proc/thread-self/ns/net").id;
  private readonly clients: Clients;
  private readonly context: ServiceContext;

  constructor(
    private readonly daemon: Daemon,
    listening: number,
    private readonly journal: Journal,
    private readonly settings: ServiceSettings,
  ) {
    this.failedAdds = new FailedAdds(this.patience);
    this.releasedAddresses = new ReleasedAddresses(journal);
    const clock = () => ({ boot: preciseSecondsSinceBoot(), wall: Date.now() / 1000 });
    this.context = {
      journal,
      bootId: bootId(),
      pauses: pausesOf(settings),
      broadcasts: settings.broadcast,
      clock,
      obtained: (client) => this.hasObtained(client),
      failed: (network, obstacle) => this.failedAdds.add(network, obstacle, clock().boot),
    };
    this.clients = new Clients(listening, (request, client, netns) => this.serve(request, client, netns));
    this.takeUp();
  }

  private get patience(): number {
    return this.settings.patience ?? PATIENCE_S;
  }

  /** Goes on with the leases of an earlier process. */
  private takeUp(): void {
    const entries = this.journal.entries((problem) => say(problem));
    for (const entry of entries) {
      try {
        this.takeUpOne(entry);
      } catch (error) {
        say(`${ownerName(entry.record)}: ${error instanceof Error ? error.stack : error}`);
      }
    }
    if (entries.length > 0) {
      const goOn = `${counted(this.attachments.size, "lease")} ${this.attachments.size === 1 ? "goes" : "go"} on`;
      const remembered = `${this.formerLeases.size} from before the boot ${
        this.formerLeases.size === 1 ? "is" : "are"
      }`;
      say(`${goOn}, ${remembered} remembered`);
    }
  }

  private takeUpOne({ record, isToBeReleased }: Entry): void {
    const { bootId, clock } = this.context, isSameBoot = record.bootId === bootId;
    if (isToBeReleased) return this.releaseAttachment(Attachment.resume(record, 0, this.context));
    if (isSameBoot) {
      this.attachments.set(ownerName(record), Attachment.resume(record, SPREAD_S, this.context));
    } else if (clock().wall < endOfLeases(record) + MEMORY_S) {
      this.formerLeases.add(record);
    } else {
      this.journal.remove(record);
    }
  }

  /** Runs until a signal ends the service, or nobody needs it. The leases stay. */
  run(): void {
    expectLongLife();
    for (let wakes = 0;;) {
      const attachments = [...this.attachments.values()];
      let due = Math.min(this.clients.due, this.idleUntil);
      for (const one of attachments) due = Math.min(due, one.due);
      this.alarm.set(due);
      const fds = [this.alarm.fd, ...this.clients.fds, ...attachments.flatMap((one) => one.fds)];
      const { ready, mustEnd } = this.daemon.wait(fds, Infinity);
      if (mustEnd) return;
      if (ready.has(this.alarm.fd)) this.alarm.silence();
      const { boot } = this.context.clock();
      const awake = attachments.filter((one) => boot >= one.due || one.fds.some((fd) => ready.has(fd)));
      for (const attachment of awake) this.wake(attachment, boot);
      this.clients.wake(ready, boot);
      if (boot >= this.idleUntil) return;
      wakes += awake.length;
      if (wakes < WAKES_BETWEEN_COLLECTIONS) continue;
      wakes = 0;
      // The runtime lets garbage add up by itself.
      Bun.gc(true);
    }
  }

  private wake(attachment: Attachment, now: number): void {
    try {
      if (!attachment.wake(now)) this.attachments.delete(attachment.name);
    } catch (error) {
      // One container's trouble is not the others'.
      say(`${attachment.name}: ${error instanceof Error ? error.stack : error}`);
    }
  }

  /** When to end, without a lease and without anybody who asks. */
  private get idleUntil(): number {
    const isNeeded = this.attachments.size > 0 || this.clients.areConnected;
    return isNeeded ? Infinity : this.lastRequest + (this.settings.idleAfter ?? Infinity);
  }

  private serve(request: ServiceRequest, client: Client, netns: number | undefined): void {
    this.lastRequest = this.context.clock().boot;
    note("dhcp request", { ...request });
    if (request.do === "acquire") return this.acquire(request, client, netns);
    if (netns !== undefined) closeFile(netns);
    switch (request.do) {
      case "check":
        return client.answer(this.check(request.owner));
      case "release":
        this.release(request.owner);
        return client.answer({ version: PROTOCOL_VERSION });
      case "list":
        return client.answer({ version: PROTOCOL_VERSION, owners: this.list(request.network, request.after) });
      case "report":
        return client.answer({ version: PROTOCOL_VERSION, report: this.report(request.network) });
    }
  }

  private acquire(request: AcquireRequest, client: Client, netns: number | undefined): void {
    if (netns === undefined) return client.answer(failure("the request has no namespace with it"));
    const { boot } = this.context.clock(),
      pending = { client, deadline: boot + (request.wishes.timeout ?? this.patience) };
    let attachment: Attachment;
    try {
      attachment = this.attachmentFor(request, netns, boot);
    } catch (error) {
      if (!(error instanceof LinkGone) && !(error instanceof Refused)) {
        say(`${ownerName(request.owner)}: ${errorText(error)}`);
      }
      return client.answer(failure(errorText(error)));
    }
    client.onGone = () => {
      if (!attachment.stopWaiting(pending)) return;
      this.attachments.delete(attachment.name);
      attachment.release();
    };
    attachment.wait(pending);
  }

  private attachmentsIn(network: string): Attachment[] {
    return [...this.attachments.values()].filter((one) => one.network === network);
  }

  /** The attachment's lease, held, being asked for, or begun now. */
  private attachmentFor(request: AcquireRequest, netns: number, now: number): Attachment {
    const { owner, wishes: { clientId } } = request, name = ownerName(owner), before = this.attachments.get(name);
    const rival = clientId === undefined
      ? undefined
      : this.attachmentsIn(owner.network).find((one) => one !== before && one.options.clientId === clientId);
    const isOwn = identify(netns).id === this.ownNetns;
    if (rival !== undefined || isOwn) closeFile(netns);
    if (isOwn) throw new Refused("the namespace of the request is the host's own");
    if (rival !== undefined) {
      throw new Refused(`${rival.name} has the same client id; servers tell clients of a network apart by it`);
    }
    const netnsPath = this.settings.hostPrefix + request.netnsPath;
    const attachment = Attachment.begin({ ...request, netnsPath }, netns, this.context);
    if (before !== undefined && before.location.cookie === attachment.location.cookie && before.isUsable()) {
      attachment.close();
      return before;
    }
    try {
      attachment.start(now, before === undefined ? this.recall(owner, clientId) : before.formerLease());
    } catch (error) {
      attachment.close();
      throw error;
    }
    before?.close();
    this.attachments.set(name, attachment);
    return attachment;
  }

  private recall(owner: Owner, clientId: string | undefined): FormerLease {
    const record = this.formerLeases.of(owner, clientId), clock = this.context.clock();
    if (record === undefined) return { address: this.releasedAddresses.of(owner, clientId), isOurs: false };
    const address = record.v4 && parsePrefix(record.v4.lease.address)!.bytes;
    const lease6 = record.v6 && leaseOfRecord6(record.v6, false, clock);
    return { address, isOurs: clock.wall < endOfLeases(record), lease6 };
  }

  private check(owner: Owner) {
    const attachment = this.attachments.get(ownerName(owner));
    if (attachment === undefined) return failure(`no lease is held for ${ownerName(owner)}`);
    return attachment.isUsable() ? attachment.answer() : failure(`the lease of ${ownerName(owner)} has ended`);
  }

  private hasObtained({ owner, options }: Pick<Attachment, "owner" | "options">): void {
    this.failedAdds.forget(owner.network);
    const record = this.formerLeases.take(owner, options.clientId);
    // A record of the same name has been replaced.
    if (record !== undefined && ownerName(record) !== ownerName(owner)) this.journal.remove(record);
  }

  private release(owner: Owner): void {
    const name = ownerName(owner), attachment = this.attachments.get(name);
    this.attachments.delete(name);
    if (attachment !== undefined) this.releaseAttachment(attachment);
    for (const record of this.formerLeases.takeNamed(name)) this.releaseFormer(record);
  }

  private releaseAttachment(attachment: Attachment): void {
    const { address } = attachment.formerLease();
    if (address !== undefined) this.releasedAddresses.add(attachment.owner, attachment.options.clientId, address);
    attachment.release();
  }

  /** Leases that are being asked for are not listed: somebody wants them now. */
  private list(network: string, after: string): Owner[] {
    const held = this.attachmentsIn(network).filter((one) => !one.isAwaited).map(({ owner }) => owner);
    const named = new Map([...this.formerLeases.all(), ...held].map((owner) => [ownerName(owner), owner]));
    return [...named.keys()].filter((name) => named.get(name)!.network === network && name > after).sort()
      .slice(0, MOST_LISTED).map((name) => {
        const { containerId, ifName } = named.get(name)!;
        return { network, containerId, ifName };
      });
  }

  /** Releases what a container of before the boot had. */
  private releaseFormer(record: LeaseRecord): void {
    if (this.context.clock().wall < endOfLeases(record)) {
      this.releaseAttachment(Attachment.resume(record, 0, this.context));
    } else {
      this.journal.remove(record);
    }
  }

  private report(network: string): NetworkReport {
    const unanswered =
      this.attachmentsIn(network).filter(({ v4, v6 }) => [v4, v6].some((part) => part?.client.state === "rebinding"))
        .length;
    return { ...this.failedAdds.of(network, this.context.clock().boot), unanswered };
  }

  /** The service ends, the leases go on with the next one. */
  close(): void {
    for (const attachment of this.attachments.values()) attachment.close();
    this.releasedAddresses.keep();
    this.journal.close();
    sayRarely("end", `${counted(this.attachments.size, "lease")} ${this.attachments.size === 1 ? "stays" : "stay"}`);
  }
}

class Refused extends Error {}
