/** An attachment of the service in simulated time, on a simulated link: who asks for it, its journal, and its clock. */
import type { Journal } from "../../../src/services/dhcp/journal/journal.ts";
import { type LeaseRecord, readRecord } from "../../../src/services/dhcp/journal/record.ts";
import type { LeaseOptions } from "../../../src/services/dhcp/lease-options.ts";
import type { Answer } from "../../../src/services/dhcp/service-protocol.ts";
import { Attachment } from "../../../src/services/dhcp/service/attachment.ts";
import type { PendingRequest } from "../../../src/services/dhcp/service/pending-requests.ts";
import type { FormerLease, ServiceContext } from "../../../src/services/dhcp/service/service-context.ts";
import { owner, usualOptions } from "./lease-record.ts";
import type { SimulatedLink } from "./simulated-link.ts";

export const DUID = "000400112233445566778899aabbccddeeff", IAID = "01020304";
export const dualStack: Partial<LeaseOptions> = { v6: { duid: DUID, iaid: IAID }, required: ["ipv4", "ipv6"] };

/** What the attachment is asked for. */
export class SimulatedAttachment {
  now = 1000;
  /** Since 1970, at 0 of the clock. */
  wallOffset = 50_000;
  /** The attachment has come to its end. */
  isOver = false;
  /** The last record, as the next service reads it. */
  kept: LeaseRecord | undefined;
  journalFailure: Error | undefined;
  attachment!: Attachment;
  private readonly options: LeaseOptions;

  constructor(
    readonly link: SimulatedLink,
    options: Partial<LeaseOptions> = {},
    context: Partial<ServiceContext> = {},
  ) {
    this.options = { ...usualOptions, ...options };
    Object.assign(this.context, context);
  }

  readonly context: ServiceContext = {
    journal: this.journal(),
    bootId: "this boot",
    pauses: undefined,
    broadcasts: false,
    clock: () => ({ boot: this.now, wall: this.wallOffset + this.now }),
    obtained: ({ owner: { containerId } }) => this.tell(`${containerId} has a lease`),
    failed: (network, obstacle) => this.tell(`${network} has none: ${obstacle}`),
  };

  private tell(what: string): void {
    this.link.did.push(what);
  }

  private journal(): Journal {
    const write = (record: LeaseRecord, durable: boolean) => {
      this.tell(durable ? "journal: written durably" : "journal: written");
      if (this.journalFailure !== undefined) throw this.journalFailure;
      this.kept = readRecord(JSON.stringify(record));
    };
    const releaseLater = (_: unknown, durable: boolean) => {
      this.tell(durable ? "journal: to be released durably" : "journal: to be released");
      if (this.journalFailure !== undefined) throw this.journalFailure;
    };
    return { write, releaseLater, remove: () => this.tell("journal: removed") } as Partial<Journal> as Journal;
  }

  /** ADD: asks for the lease, and waits for it. */
  begin(patience = 60, former: FormerLease = { isOurs: false }): PendingRequest {
    const request = { do: "acquire", owner, netnsPath: "/run/netns/c1", wishes: this.options } as const;
    this.attachment = Attachment.begin(request, -1, this.context);
    this.attachment.start(this.now, former);
    return this.ask(patience);
  }

  /** One more ADD for the same attachment. */
  ask(patience = 60, name = "ADD"): PendingRequest {
    const request = {
      deadline: this.now + patience,
      client: { answer: (answer: Answer) => this.answered(name, answer), onGone: undefined },
    };
    this.attachment.wait(request);
    return request;
  }

  private answered(name: string, answer: Answer): void {
    if ("failure" in answer) {
      return this.tell([`${name} fails: ${answer.failure}`, ...answer.hint ? [answer.hint] : []].join(", "));
    }
    this.tell(
      `${name} gets ${[answer.lease?.address, answer.lease6?.address].filter(Boolean).join(" and ") || "nothing"}`,
    );
  }

  /** The next service goes on with the record. */
  resume(record = this.kept!, spread = 0): void {
    this.attachment = Attachment.resume(record, spread, this.context);
  }

  /** Lets the time pass, as the service does: who is due or has something to read is woken. */
  pass(seconds: number): string[] {
    const end = this.now + seconds, { attachment, link } = this;
    for (let count = 0; !this.isOver; count++) {
      if (count > 1000) throw new Error("a storm");
      const isReady = attachment.fds.some((fd) => link.ready().has(fd));
      if (!isReady && attachment.due > end) break;
      if (!isReady) this.now = Math.max(this.now, attachment.due);
      this.isOver = !attachment.wake(this.now);
    }
    this.now = end;
    return link.news();
  }

  /** Until the lease is to be renewed. */
  passToRenewal(): string[] {
    return this.pass(this.attachment.due - this.now);
  }

  /** ADD, a lease, and what another plugin makes of it. */
  bind(addresses = ["192.168.77.50/24"], routes = ["0.0.0.0/0 via 192.168.77.1"]): string[] {
    this.begin();
    const did = this.pass(1), { netlink, changes } = this.link;
    for (const one of addresses) netlink.addresses.set(one, 0);
    for (const one of routes) netlink.routes.add(one);
    changes.push({ bytes: new Uint8Array(), sentBytes: 0, sender: 0 });
    return [...did, ...this.pass(1)];
  }
}
