/** This host's namespaces: its own, and those of attachments, which are opened when a packet comes to them. */
import { closedBridge, givenRoutes, madeKinds } from "../engine/operator/given-to-container.ts";
import type { KnownAttachment } from "../engine/operator/known-attachment.ts";
import { type OpenHost, openHost } from "../engine/open-host.ts";
import { undefinedOnError } from "../cni/error.ts";
import { closeFile } from "../ffi/files.ts";
import type { Link } from "../ffi/netlink/route/link.ts";
import { openOwnNetns } from "../ffi/netns.ts";
import { formatAddress, isSameBytes, parsePrefix } from "../net/address.ts";
import { AttachmentIndex, linksOnHost, plainAddresses } from "./attachment-index.ts";
import { type GivenByNetwork, linkAt, type LinkIn, type NetnsFacts, type World } from "./facts.ts";
import type { PortOfHost } from "./published-ports.ts";
import { Reading } from "./reading.ts";

export class HostWorld implements World {
  readonly host = new Reading("this host", (work) => work());
  private readonly opened = new Map<string, { open: OpenHost; facts: Reading } | undefined>();

  readonly index: AttachmentIndex;
  private ownFd?: number;

  /** `nameOf`: what a person types for its container. */
  constructor(
    private readonly attachments: readonly KnownAttachment[],
    private readonly nameOf: (attachment: KnownAttachment) => string,
  ) {
    this.index = new AttachmentIndex(attachments);
  }

  private get ownNetns(): number {
    return this.ownFd ??= openOwnNetns();
  }

  /** Undefined where its path does not lead to a namespace other than ours. */
  netnsOf(attachment: KnownAttachment): Reading | undefined {
    return this.opened.getOrInsertComputed(attachment.netnsPath, () => {
      const open = undefinedOnError(() => openHost(attachment.netnsPath)), inside = open?.container?.inside;
      if (open === undefined || inside === undefined) return undefined;
      const { netnsPath } = attachment, operand = this.nameOf(attachment);
      const all = this.attachments.filter((each) => each.netnsPath === netnsPath).map(asAttached);
      // Engines attach the loopback link, too.
      const addressed = all.filter(({ addresses }) => addresses.length > 0);
      const attached = addressed.length > 0 ? addressed : all;
      return { open, facts: new Reading(operand, inside, { netnsPath, operand, attached }) };
    })?.facts;
  }

  acrossFrom(netns: NetnsFacts, { index, link: other, linkNetnsId, kind }: Link): LinkIn | undefined {
    // Root of a container makes links above its own ones, too, and namespaces of its own, whose numbers are its own.
    if (other === undefined || linkNetnsId === undefined || netns === this.host) return undefined;
    if (linkNetnsId !== netns.netnsId(this.ownNetns)) return undefined;
    const link = linkAt(this.host, other);
    if (link === undefined || (kind === "veth" && link.link !== index)) return undefined;
    return { netns: this.host, link };
  }

  publisherOf(port: number, protocol: string, asked: string): { netns: NetnsFacts; at?: string } | undefined {
    const isMeant = ({ at = asked }: PortOfHost) => at === asked;
    const publishers = this.index.publishersOf(port, protocol).toSorted((a, b) =>
      Number(isMeant(b)) - Number(isMeant(a))
    );
    for (const { attachment, at } of publishers) {
      const netns = this.netnsOf(attachment);
      if (netns !== undefined) return { netns, at };
    }
    return undefined;
  }

  endOf({ name }: Link): string | undefined {
    const attachment = this.index.madeLink(name);
    return attachment && this.nameOf(attachment);
  }

  isSwitched({ name }: Link): boolean {
    const attachment = this.index.madeLink(name);
    return attachment !== undefined && madeKinds(attachment).includes("ovs-port");
  }

  holderOf(address: Uint8Array): LinkIn | undefined {
    for (const attachment of this.index.holders.get(formatAddress(address)) ?? []) {
      const netns = this.netnsOf(attachment);
      const own = netns?.addresses().find(({ bytes }) => isSameBytes(bytes, address));
      const link = own && linkAt(netns!, own.linkIndex);
      if (link !== undefined) return { netns: netns!, link };
    }
    return undefined;
  }

  /** To which packets came. */
  get containers(): Reading[] {
    return [...this.opened.values()].flatMap((each) => each?.facts ?? []);
  }

  /** This host's, and each that the walk has come to. */
  get namespaces(): Reading[] {
    return [this.host, ...this.containers];
  }

  close(): void {
    this.host.close();
    if (this.ownFd !== undefined) closeFile(this.ownFd);
    for (const each of this.opened.values()) {
      each?.facts.close();
      each?.open.close();
    }
    this.opened.clear();
  }
}

function asAttached(attachment: KnownAttachment): GivenByNetwork {
  const { network, ifName } = attachment;
  return {
    network,
    ifName,
    hostLinks: linksOnHost(attachment),
    addresses: plainAddresses(attachment),
    kinds: madeKinds(attachment),
    routes: givenRoutes(attachment)?.flatMap((dst) => parsePrefix(dst) ?? []),
    closed: closedBridge(attachment),
  };
}
