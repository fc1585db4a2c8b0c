/**
 * `dhcp daemon`: holds the leases of all containers of the host in one process with one thread. It waits for messages,
 * for those who ask something of it, and for the earliest thing that is due; otherwise it sleeps.
 */
import { errorText } from "../../cni/error.ts";
import { counted } from "../../contract/counted.ts";
import type { Owner } from "../../contract/owner.ts";
import { note } from "../../contract/trace.ts";
import { Alarm, preciseSecondsSinceBoot } from "../../ffi/clock.ts";
import { closeFile, identify, readTextFile } from "../../ffi/files.ts";
import { poll, POLLIN } from "../../ffi/poll.ts";
import { readSignals } from "../../ffi/signals.ts";
import { parsePrefix } from "../../net/address.ts";
import type { Surroundings } from "../../netavark/program/surroundings.ts";
import type { Entry, Journal } from "../journal/journal.ts";
import { endOf, type LeaseRecord } from "../journal/record.ts";
import { PlaceGone } from "../link/place.ts";
import { failure, nameOf, type Order, ORDER_VERSION, type Report } from "../order.ts";
import { Attachment } from "./attachment.ts";
import { type Asker, connections } from "./connections.ts";
import { FailedAdds } from "./failed-adds.ts";
import { type Flags, pausesOf } from "./flags.ts";
import { Held } from "./held.ts";
import { say, sayRarely } from "./log.ts";
import { GivenBack, Remembered } from "./remembered.ts";
import type { Earlier, Waiter } from "./surroundings.ts";
import { leaseOfRecord6 } from "./v6-lease.ts";

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
  private readonly held = new Held();
  private readonly remembered = new Remembered();
  private readonly givenBack: GivenBack;
  private readonly failedAdds: FailedAdds;
  private readonly alarm = new Alarm();
  private lastOrder = preciseSecondsSinceBoot();
  private readonly ownNetns = identify("/proc/thread-self/ns/net").id;
  private readonly callers: ReturnType<typeof connections>;
  private readonly around: Surroundings;

  constructor(
    listening: number,
    private readonly signals: number,
    private readonly journal: Journal,
    private readonly settings: ServiceSettings,
  ) {
    this.failedAdds = new FailedAdds(this.patience);
    this.givenBack = new GivenBack(journal);
    const clock = () => ({ boot: preciseSecondsSinceBoot(), wall: Date.now() / 1000 });
    this.around = {
      journal,
      bootId: (readTextFile("/proc/sys/kernel/random/boot_id") ?? "").trim(),
      pauses: pausesOf(settings),
      broadcasts: settings.broadcast,
      clock,
      obtained: (client) => this.hasObtained(client),
      failed: (network, obstacle) => this.failedAdds.add(network, obstacle, clock().boot),
    };
    this.callers = connections(listening, (order, asker, netns) => this.serve(order, asker, netns));
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
        say(`${nameOf(entry.record)}: ${error instanceof Error ? error.stack : error}`);
      }
    }
    if (entries.length > 0) {
      const goOn = `${counted(this.held.size, "lease")} ${this.held.size === 1 ? "goes" : "go"} on`;
      const remembered = `${this.remembered.size} of before the boot ${this.remembered.size === 1 ? "is" : "are"}`;
      say(`${goOn}, ${remembered} remembered`);
    }
  }

  private takeUpOne({ record, isGivenUp }: Entry): void {
    const { bootId, clock } = this.around, isSameBoot = record.bootId === bootId;
    if (isGivenUp) return this.giveBack(Attachment.resume(record, 0, this.around));
    if (isSameBoot) {
      this.held.set(Attachment.resume(record, SPREAD_S, this.around));
    } else if (clock().wall < endOf(record) + MEMORY_S) {
      this.remembered.add(record);
    } else {
      this.journal.remove(record);
    }
  }

  /** Runs until a signal ends the service, or nobody needs it. The leases stay. */
  run(): void {
    // The build's policy is for a process that ends soon.
    Bun.unsafe.setJITPolicy(1);
    for (let wakes = 0;;) {
      const owners = this.held.descriptors();
      this.alarm.set(Math.min(this.callers.due, this.held.earliest(), this.idleUntil));
      const fds = [this.signals, this.alarm.fd, ...this.callers.fds, ...owners.keys()];
      const ready = poll(fds.map((fd) => ({ fd, events: POLLIN })), -1);
      if (readSignals(this.signals).length > 0) return;
      if (ready.has(this.alarm.fd)) this.alarm.silence();
      const { boot } = this.around.clock(), awake = new Set(this.held.takeDue(boot));
      for (const fd of ready) if (owners.has(fd)) awake.add(owners.get(fd)!);
      for (const attachment of awake) this.wake(attachment, boot);
      this.callers.wake(ready, boot);
      if (boot >= this.idleUntil) return;
      wakes += awake.size;
      if (wakes < WAKES_BETWEEN_COLLECTIONS) continue;
      wakes = 0;
      // The runtime lets garbage add up by itself.
      Bun.gc(true);
    }
  }

  private wake(attachment: Attachment, now: number): void {
    try {
      if (!attachment.wake(now)) this.drop(attachment);
    } catch (error) {
      // One container's trouble is not the others'.
      say(`${attachment.name}: ${error instanceof Error ? error.stack : error}`);
    }
    this.held.hasChanged(attachment);
  }

  private drop(attachment: Attachment): void {
    this.held.delete(attachment.name);
    attachment.abandon();
  }

  /** When to end, without a lease and without anybody who asks. */
  private get idleUntil(): number {
    const isNeeded = this.held.size > 0 || this.callers.areConnected;
    return isNeeded ? Infinity : this.lastOrder + (this.settings.idleAfter ?? Infinity);
  }

  private serve(order: Order, asker: Asker, netns: number | undefined): void {
    this.lastOrder = this.around.clock().boot;
    note("dhcp order", { ...order });
    if (order.do === "acquire") return this.acquire(order, asker, netns);
    if (netns !== undefined) closeFile(netns);
    switch (order.do) {
      case "check":
        return asker.answer(this.check(order.owner));
      case "release":
        this.release(order.owner);
        return asker.answer({ version: ORDER_VERSION });
      case "list":
        return asker.answer({ version: ORDER_VERSION, owners: this.list(order.network, order.after) });
      case "report":
        return asker.answer({ version: ORDER_VERSION, report: this.report(order.network) });
    }
  }

  private acquire(order: Order & { do: "acquire" }, asker: Asker, netns: number | undefined): void {
    if (netns === undefined) return asker.answer(failure("the request has no namespace with it"));
    const { boot } = this.around.clock(), { timeout } = order.wishes;
    const waiter: Waiter = {
      deadline: boot + (timeout ?? this.patience),
      answer: (answer) => asker.answer(answer),
    };
    let attachment: Attachment;
    try {
      attachment = this.attachmentFor(order, netns, boot);
    } catch (error) {
      if (!(error instanceof PlaceGone) && !(error instanceof Refused)) {
        say(`${nameOf(order.owner)}: ${errorText(error)}`);
      }
      return asker.answer(failure(errorText(error)));
    }
    asker.onGone = () => {
      if (!attachment.forget(waiter)) return;
      this.held.delete(attachment.name);
      attachment.release();
    };
    attachment.wait(waiter);
    this.held.hasChanged(attachment);
  }

  /** The attachment's lease, held, being asked for, or begun now. */
  private attachmentFor(
    { owner, netnsPath, wishes }: Order & { do: "acquire" },
    netns: number,
    now: number,
  ): Attachment {
    const name = nameOf(owner), before = this.held.get(name);
    const rival = wishes.clientId === undefined
      ? undefined
      : this.held.of(owner.network).find((one) => one !== before && one.wishes.clientId === wishes.clientId);
    const isOwn = identify(netns).id === this.ownNetns;
    if (rival !== undefined || isOwn) closeFile(netns);
    if (isOwn) throw new Refused("the namespace of the request is the host's own");
    if (rival !== undefined) {
      throw new Refused(`${rival.name} has the same client id; servers tell clients of a network apart by it`);
    }
    const attachment = Attachment.begin(owner, wishes, this.settings.hostPrefix + netnsPath, netns, this.around);
    if (before !== undefined && before.cookie === attachment.cookie && before.isUsable()) {
      attachment.close();
      return before;
    }
    try {
      attachment.start(now, before === undefined ? this.recall(owner, wishes.clientId) : before.had());
    } catch (error) {
      attachment.close();
      throw error;
    }
    before?.close();
    this.held.set(attachment);
    return attachment;
  }

  private recall(owner: Owner, clientId: string | undefined): Earlier {
    const record = this.remembered.of(owner, clientId), clock = this.around.clock();
    if (record === undefined) return { address: this.givenBack.of(owner, clientId), isOurs: false };
    const address = record.v4 && parsePrefix(record.v4.lease.address)!.bytes;
    const lease6 = record.v6 && leaseOfRecord6(record.v6, false, clock);
    return { address, isOurs: clock.wall < endOf(record), lease6 };
  }

  private check(owner: Owner) {
    const attachment = this.held.get(nameOf(owner));
    if (attachment === undefined) return failure(`no lease is held for ${nameOf(owner)}`);
    return attachment.isUsable() ? attachment.answer() : failure(`the lease of ${nameOf(owner)} has ended`);
  }

  private hasObtained({ owner, wishes }: Pick<Attachment, "owner" | "wishes">): void {
    this.failedAdds.forget(owner.network);
    const record = this.remembered.take(owner, wishes.clientId);
    // A record of the same name has been replaced.
    if (record !== undefined && nameOf(record) !== nameOf(owner)) this.journal.remove(record);
  }

  private release(owner: Owner): void {
    const name = nameOf(owner), attachment = this.held.get(name);
    this.held.delete(name);
    if (attachment !== undefined) this.giveBack(attachment);
    for (const record of this.remembered.takeNamed(name)) this.forget(record);
  }

  private giveBack(attachment: Attachment): void {
    const { address } = attachment.had();
    if (address !== undefined) this.givenBack.add(attachment.owner, attachment.wishes.clientId, address);
    attachment.release();
  }

  /** Leases that are being asked for are not listed: somebody wants them now. */
  private list(network: string, after: string): Owner[] {
    const held = this.held.of(network).filter((one) => !one.isAwaited).map(({ owner }) => owner);
    const named = new Map([...this.remembered.all(), ...held].map((owner) => [nameOf(owner), owner]));
    return [...named.keys()].filter((name) => named.get(name)!.network === network && name > after).sort()
      .slice(0, MOST_LISTED).map((name) => {
        const { containerId, ifName } = named.get(name)!;
        return { network, containerId, ifName };
      });
  }

  /** Gives back what a container of before the boot had. */
  private forget(record: LeaseRecord): void {
    if (this.around.clock().wall < endOf(record)) {
      this.giveBack(Attachment.resume(record, 0, this.around));
    } else {
      this.journal.remove(record);
    }
  }

  private report(network: string): Report {
    const unanswered =
      this.held.of(network).filter(({ v4, v6 }) => [v4, v6].some((part) => part?.client.state === "rebinding"))
        .length;
    return { ...this.failedAdds.of(network, this.around.clock().boot), unanswered };
  }

  /** The service ends, the leases go on with the next one. */
  close(): void {
    for (const attachment of this.held.all()) attachment.close();
    this.givenBack.keep();
    this.journal.close();
    sayRarely("end", `${counted(this.held.size, "lease")} ${this.held.size === 1 ? "stays" : "stay"}`);
  }
}

class Refused extends Error {}
