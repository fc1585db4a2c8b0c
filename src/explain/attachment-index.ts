/** Whose an address, a port of the host or a link of the host is, of what was made. */
import { gistOf, type KnownAttachment } from "../engine/operator/known-attachment.ts";
import { type PortOfHost, publishedPorts } from "./published-ports.ts";

/** Without the lengths of their prefixes. */
export function plainAddresses(attachment: KnownAttachment): string[] {
  return gistOf(attachment).addresses.map((address) => address.split("/")[0]!);
}

/** The host's links that were made for it. */
export function linksOnHost({ ledgers }: KnownAttachment): string[] {
  return ledgers.flatMap(({ adds }) => adds.flatMap(({ answer }) => answer?.links ?? []));
}

export interface Publisher extends PortOfHost {
  attachment: KnownAttachment;
}

export class AttachmentIndex {
  constructor(private readonly attachments: readonly KnownAttachment[]) {}

  private byAddress?: ReadonlyMap<string, KnownAttachment[]>;
  private byPort?: ReadonlyMap<string, Publisher[]>;
  private byLink?: ReadonlyMap<string, KnownAttachment[]>;

  /** Who was given which address, without the length of its prefix. */
  get holders(): ReadonlyMap<string, KnownAttachment[]> {
    return this.byAddress ??= this.grouped((each) => new Set(plainAddresses(each)));
  }

  publishersOf(port: number, protocol: string): readonly Publisher[] {
    this.byPort ??= Map.groupBy(
      this.attachments.flatMap((attachment) => publishedPorts(attachment).map((each) => ({ ...each, attachment }))),
      (each) => `${each.protocol}/${each.port}`,
    );
    return this.byPort.get(`${protocol}/${port}`) ?? [];
  }

  madeLink(name: string): KnownAttachment | undefined {
    this.byLink ??= this.grouped(linksOnHost);
    return this.byLink.get(name)?.[0];
  }

  private grouped(keysOf: (attachment: KnownAttachment) => Iterable<string>): Map<string, KnownAttachment[]> {
    const found = new Map<string, KnownAttachment[]>();
    for (const attachment of this.attachments) {
      for (const key of keysOf(attachment)) found.getOrInsertComputed(key, () => []).push(attachment);
    }
    return found;
  }
}
