/**
 * `dhcp daemon`: holds the leases of all containers of the host in one process with one thread. It waits for messages,
 * for those who ask something of it, and for the earliest thing that is due; otherwise it sleeps.
 */
import { errorText } from "../../cni/error.ts";
import type { Owner } from "../../contract/owner.ts";
import { note } from "../../contract/trace.ts";
import { Alarm } from "../../ffi/alarm.ts";
import { preciseSecondsSinceBoot } from "../../ffi/clock.ts";
import { closeFile, readTextFile } from "../../ffi/files.ts";
import { poll, POLLIN } from "../../ffi/poll.ts";
import { readSignals } from "../../ffi/signals.ts";
import type { Journal } from "../journal/journal.ts";
import { endOf, type LeaseRecord } from "../journal/record.ts";
import { PlaceGone } from "../link/place.ts";
import { failure, nameOf, type Order, ORDER_VERSION, type Report } from "../order.ts";
import { parsePrefix } from "../../net/address.ts";
import { Attachment, type Surroundings, type Waiter } from "./attachment.ts";
import { type Asker, Connections } from "./connections.ts";
import type { Flags } from "./flags.ts";
import { say, sayRarely } from "./log.ts";

const PATIENCE_S = 60;
/** While renewals that are due after a start take turns, in seconds. */
const SPREAD_S = 10;
/** How long the address of a container of an earlier boot is remembered after its lease. */
const MEMORY_S = 7 * 24 * 3600;

export class Service {
  private readonly attachments = new Map<string, Attachment>();
  /** Leases of an earlier boot, whose containers are gone: who comes with the same client id is given the address again. */
  private readonly remembered = new Map<string, LeaseRecord>();
  /** Why the last attempt on a network failed. */
  private readonly obstacles = new Map<string, string>();
  private readonly alarm = new Alarm();
  private readonly connections: Connections;
  private readonly around: Surroundings;

  constructor(
    listening: number,
    private readonly signals: number,
    private readonly journal: Journal,
    private readonly flags: Flags,
  ) {
    this.connections = new Connections(listening, (order, asker, netns) => this.serve(order, asker, netns));
    const clock = () => ({ boot: preciseSecondsSinceBoot(), wall: Date.now() / 1000 });
    this.around = {
      journal,
      bootId: (readTextFile("/proc/sys/kernel/random/boot_id") ?? "").trim(),
      pauses: pausesOf(flags),
      broadcasts: flags.broadcast,
      clock,
      outcome: (network, obstacle) => {
        if (obstacle === undefined) this.obstacles.delete(network);
        else this.obstacles.set(network, obstacle);
      },
    };
    this.takeUp();
  }

  /** The leases of an earlier process. */
  private takeUp(): void {
    const { bootId, clock } = this.around, entries = this.journal.entries((problem) => say(problem));
    for (const { record, isGivenUp } of entries) {
      const isSameBoot = record.bootId === bootId;
      if (isGivenUp) Attachment.resume(record, 0, this.around).release();
      else if (isSameBoot) this.attachments.set(nameOf(record), Attachment.resume(record, SPREAD_S, this.around));
      else if (clock().wall < endOf(record) + MEMORY_S) {
        this.remembered.set(memoryKey(record), record);
      } else this.journal.remove(record);
    }
    if (entries.length > 0) {
      say(`${this.attachments.size} leases go on, ${this.remembered.size} of before the boot are remembered`);
    }
  }

  /** Until a signal ends it. The leases stay. */
  run(): void {
    for (;;) {
      let due = this.connections.due;
      const fds = [this.signals, this.alarm.fd, ...this.connections.fds];
      const owners = new Map<number, Attachment>();
      for (const attachment of this.attachments.values()) {
        due = Math.min(due, attachment.due);
        for (const fd of attachment.fds) owners.set(fd, attachment);
      }
      this.alarm.set(due);
      const ready = poll([...fds, ...owners.keys()].map((fd) => ({ fd, events: POLLIN })), -1);
      if (readSignals(this.signals).length > 0) return;
      if (ready.has(this.alarm.fd)) this.alarm.silence();
      const { boot } = this.around.clock(), awake = new Set<Attachment>();
      for (const [fd, attachment] of owners) if (ready.has(fd)) awake.add(attachment);
      for (const attachment of this.attachments.values()) if (boot >= attachment.due) awake.add(attachment);
      for (const attachment of awake) this.wake(attachment, boot);
      this.connections.wake(ready, boot);
    }
  }

  private wake(attachment: Attachment, now: number): void {
    try {
      if (!attachment.wake(now)) this.drop(attachment);
    } catch (error) {
      // One container's trouble is not the others'.
      say(`${attachment.name}: ${error instanceof Error ? error.stack : error}`);
    }
  }

  private drop(attachment: Attachment): void {
    attachment.close();
    this.attachments.delete(attachment.name);
    this.journal.remove(attachment.owner);
  }

  private serve(order: Order, asker: Asker, netns: number | undefined): void {
    note("dhcp order", { ...order });
    let given = netns;
    switch (order.do) {
      case "acquire":
        given = undefined;
        return this.acquire(order, asker, netns);
      case "check":
        asker.answer(this.check(order.owner));
        break;
      case "release":
        this.release(order.owner);
        asker.answer({ version: ORDER_VERSION });
        break;
      case "collect":
        this.collect(order.network, new Set(order.valid));
        asker.answer({ version: ORDER_VERSION });
        break;
      case "report":
        asker.answer({ version: ORDER_VERSION, report: this.report(order.network) });
        break;
      default:
        asker.answer(failure(`unknown request ${JSON.stringify((order as { do: unknown }).do)}`));
    }
    if (given !== undefined) closeFile(given);
  }

  private acquire(order: Order & { do: "acquire" }, asker: Asker, netns: number | undefined): void {
    if (netns === undefined) return asker.answer(failure("the request has no namespace with it"));
    const { boot } = this.around.clock(), { timeout } = order.wishes;
    const waiter: Waiter = {
      deadline: boot + (timeout ?? this.flags.patience ?? PATIENCE_S),
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
      attachment.release();
      this.attachments.delete(attachment.name);
    };
    attachment.wait(waiter);
  }

  /** The attachment's lease, held, being asked for, or begun now. */
  private attachmentFor(
    { owner, netnsPath, wishes }: Order & { do: "acquire" },
    netns: number,
    now: number,
  ): Attachment {
    const name = nameOf(owner), before = this.attachments.get(name);
    const rival = [...this.attachments.values()].find((one) =>
      one !== before && one.network === owner.network && wishes.clientId !== undefined &&
      one.wishes.clientId === wishes.clientId
    );
    if (rival !== undefined) {
      closeFile(netns);
      throw new Refused(`${rival.name} has the same client id; servers tell clients of a network apart by it`);
    }
    const attachment = Attachment.begin(owner, wishes, this.flags.hostPrefix + netnsPath, netns, this.around);
    if (before !== undefined && before.cookie === attachment.cookie && before.isUsable()) {
      attachment.close();
      return before;
    }
    before?.close();
    this.attachments.set(name, attachment);
    const held = before?.v4?.client.lease, memory = this.recall(owner, wishes.clientId);
    const had = held?.offered.address.bytes ?? memory?.address;
    attachment.start(now, had, held !== undefined || memory?.isOurs);
    return attachment;
  }

  /** What a client of this name had before the boot. */
  private recall(owner: Owner, clientId: string | undefined): { address: Uint8Array; isOurs: boolean } | undefined {
    const key = memoryKey({ ...owner, wishes: { clientId } }), record = this.remembered.get(key);
    if (record?.v4 === undefined) return undefined;
    this.remembered.delete(key);
    this.journal.remove(record);
    return {
      address: parsePrefix(record.v4.lease.address)!.bytes,
      isOurs: this.around.clock().wall < endOf(record),
    };
  }

  private check(owner: Owner) {
    const attachment = this.attachments.get(nameOf(owner));
    if (attachment === undefined) return failure(`no lease is held for ${nameOf(owner)}`);
    return attachment.isUsable() ? attachment.answer() : failure(`the lease of ${nameOf(owner)} has ended`);
  }

  private release(owner: Owner): void {
    const name = nameOf(owner), attachment = this.attachments.get(name);
    attachment?.release();
    this.attachments.delete(name);
    for (const [key, record] of this.remembered) if (nameOf(record) === name) this.forget(key, record);
  }

  private collect(network: string, valid: ReadonlySet<string>): void {
    const isStale = (owner: Owner) => owner.network === network && !valid.has(`${owner.containerId}/${owner.ifName}`);
    for (const attachment of this.attachments.values()) if (isStale(attachment.owner)) this.release(attachment.owner);
    for (const [key, record] of this.remembered) if (isStale(record)) this.forget(key, record);
  }

  /** Gives back what a container of before the boot had. */
  private forget(key: string, record: LeaseRecord): void {
    this.remembered.delete(key);
    if (this.around.clock().wall < endOf(record)) {
      Attachment.resume(record, 0, this.around).release();
    } else {
      this.journal.remove(record);
    }
  }

  private report(network: string): Report {
    const held = [...this.attachments.values()].filter((one) => one.network === network);
    const unanswered =
      held.filter(({ v4, v6 }) => [v4, v6].some((part) => part?.client.state === "rebinding")).length;
    return { obstacle: this.obstacles.get(network), unanswered };
  }

  /** The service ends, the leases go on with the next one. */
  close(): void {
    for (const attachment of this.attachments.values()) attachment.close();
    this.journal.close();
    sayRarely("end", `${this.attachments.size} leases stay`);
  }
}

class Refused extends Error {}

function memoryKey(
  { network, wishes: { clientId }, containerId, ifName }: Owner & { wishes: { clientId?: string } },
): string {
  return clientId === undefined ? nameOf({ network, containerId, ifName }) : `${network}\0${clientId}`;
}

function pausesOf({ timeout, longestPause }: Flags): number[] | undefined {
  if (timeout === undefined && longestPause === undefined) return undefined;
  const first = timeout ?? 1;
  return [1, 2, 4, 8, 16].map((factor) => Math.min(first * factor, longestPause ?? Infinity));
}
