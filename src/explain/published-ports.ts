/** Ports of the host that lead to a container, of what tables of attachments show. */
import { gistOf, type KnownAttachment } from "../engine/operator/known-attachment.ts";

export interface PortOfHost {
  /** The only address of the host where it is published; undefined for all. */
  at?: string;
  port: number;
  protocol: "tcp" | "udp";
}

/** `8080->80/tcp`, or with the host's address before it. */
export function publishedPorts(attachment: KnownAttachment): PortOfHost[] {
  return gistOf(attachment).ports.flatMap((text) => {
    const [, at, port, protocol] = /^(?:(.*):)?([0-9]+)->[0-9]+\/(tcp|udp)$/.exec(text) ?? [];
    if (port === undefined) return [];
    return [{ at: at?.replace(/^\[|\]$/g, ""), port: Number(port), protocol: protocol as "tcp" | "udp" }];
  });
}
